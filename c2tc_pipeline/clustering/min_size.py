"""Clusters with a minimum number of rows: Lloyd steps in which clusters that are too small take rows from others."""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.clustering.kernels import Kernel
from c2tc_pipeline.clustering.lloyd import ClassClusters
from c2tc_pipeline.clustering.sums import chunks, cluster_sums, nearest_members, own_distances

_MAX_STEPS = 20
_MIN_GAIN = 5e-4


def enlarge_small_clusters(X: np.ndarray, start: ClassClusters, min_rows: int, kernel: Kernel) -> ClassClusters:
    """Return as many clusters as before with at least ``min_rows`` rows each; those that have them stay as they are."""
    k = len(start.centers)
    if k * min_rows > len(X):
        raise ValueError(f"{len(X)} rows are too few for {k} clusters of at least {min_rows} rows.")
    if np.bincount(start.labels, minlength=k).min() >= min_rows:
        return start
    rows = kernel.load(X, None)
    centers = start.centers
    best: ClassClusters | None = None
    for steps in range(1, _MAX_STEPS + 1):
        labels = fill_small_clusters(X, centers, kernel.assign(rows, centers), min_rows)
        sums = cluster_sums(X, labels, k)
        means = sums.means()
        distances = own_distances(X, labels, means)
        inertia = float(distances.sum())
        gained = np.inf if best is None else best.inertia - inertia
        centers = means.astype(X.dtype)
        if gained > 0:
            best = ClassClusters(
                centers=centers,
                inertia=inertia,
                iterations=steps,
                labels=labels,
                counts=sums.counts,
                nearest=nearest_members(labels, distances, k),
            )
        if gained <= _MIN_GAIN * inertia:
            break
    assert best is not None
    return best


def fill_small_clusters(X: np.ndarray, centers: np.ndarray, nearest: np.ndarray, min_rows: int) -> np.ndarray:
    """Move rows to clusters with fewer than ``min_rows``, the smallest first: those that add the least to the loss.

    A cluster gives rows only while it keeps ``min_rows``; there are enough if ``k * min_rows`` is at most the number of
    rows.
    """
    labels = nearest.astype(np.int32)
    sizes = np.bincount(labels, minlength=len(centers))
    if sizes.min() >= min_rows:
        return labels
    own = own_distances(X, labels, centers)
    small = np.flatnonzero(sizes < min_rows)
    for cluster in small[np.argsort(sizes[small], kind="stable")].tolist():
        spare = np.flatnonzero(sizes[labels] > min_rows)
        cost = np.empty(len(spare))
        for part in chunks(len(spare), X.shape[1]):
            offsets = X[spare[part]] - centers[cluster].astype(np.float64)
            cost[part] = np.einsum("ij,ij->i", offsets, offsets)
        for place in np.argsort(cost - own[spare], kind="stable").tolist():
            if sizes[cluster] >= min_rows:
                break
            row = spare[place]
            if sizes[labels[row]] > min_rows:
                sizes[labels[row]] -= 1
                sizes[cluster] += 1
                labels[row], own[row] = cluster, cost[place]
    return labels
