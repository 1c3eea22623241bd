"""imbalanced-learn's ClusterCentroids with the budgets that all rivals have."""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.bench.models import bench_package
from c2tc_pipeline.bench.rivals import CondensedRows, Rival


class ClusterCentroidsRows(Rival):
    """``imblearn.under_sampling.ClusterCentroids`` with the counts of the other rivals, and no weights."""

    def condense(self, X: np.ndarray, edges: np.ndarray, budget: int) -> CondensedRows:
        sizes = np.diff(edges)
        counts = self.counts(sizes, budget)
        centroids, codes = cluster_centroids(X, edges, counts, seed=self.random_state)
        return CondensedRows(centroids.astype(X.dtype, copy=False), codes)


def cluster_centroids(
    X: np.ndarray, edges: np.ndarray, counts: np.ndarray, *, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return imbalanced-learn's centroids of rows sorted by class, and their class codes."""
    sizes = np.diff(edges)
    # Classes that are not named pass through; k-means with a cluster per row would be long and change nothing.
    strategy = {code: int(counts[code]) for code in np.flatnonzero(counts < sizes).tolist()}
    sampler = bench_package("imblearn.under_sampling").ClusterCentroids(sampling_strategy=strategy, random_state=seed)
    centroids, codes = sampler.fit_resample(X, np.repeat(np.arange(len(sizes)), sizes))
    return centroids, codes
