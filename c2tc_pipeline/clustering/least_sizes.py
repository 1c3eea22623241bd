"""A partition in which every cluster has at least so many rows: k-means under a lower limit of sizes.

Lloyd under the limit, after Bradley, Bennett and Demiriz (2000): rows go to centres by the cheapest assignment that
meets the limit, centres to the means of their rows, and the loss never rises. It begins twice and the better end wins:
once from the centres as they are, whose small clusters grow, and once with the small clusters dissolved and large ones
split in their place, because a centre that sits on one outlier does little for anybody else.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from c2tc_pipeline.clustering.engine import Engine
from c2tc_pipeline.clustering.least_assignment import assign_at_least
from c2tc_pipeline.clustering.lloyd import KMeansResult
from c2tc_pipeline.clustering.partition import chunks, nearest_members, own_gaps, partition_sums

_MOST_ROUNDS = 20
_LEAST_GAIN = 5e-4
_DIRECTION_ROWS = 4_096


def with_least_sizes(X: np.ndarray, start: KMeansResult, least: int, engine: Engine) -> KMeansResult:
    """Return a partition like another one, but with at least ``least`` rows in every cluster.

    A partition that meets the limit already is returned as it is.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows that ``start`` partitions.
    start : KMeansResult
        A partition into k clusters, with ``k * least <= n``.
    least : int
        Rows that each cluster must have.
    engine : Engine
        What finds the nearest centres.

    Examples
    --------
    >>> from c2tc_pipeline.clustering.engine import make_engine
    >>> X = np.array([[0.0], [0.1], [0.2], [0.3], [9.0]], dtype=np.float32)
    >>> engine = make_engine("cpu")
    >>> sorted(with_least_sizes(X, engine.fit(X, 2), 2, engine).counts.tolist())
    [2.0, 3.0]
    """
    k = len(start.centers)
    if k * least > len(X):
        raise ValueError(f"A class of {len(X)} rows cannot be cut into {k} clusters of at least {least} rows.")
    sizes = np.bincount(start.labels, minlength=k)
    if (sizes >= least).all():
        return start
    grown = _settle(X, start.centers, least, engine)
    divided = _small_ones_dissolved(X, start, sizes, least)
    if divided is None:
        return grown
    other = _settle(X, divided, least, engine)
    return other if other.inertia < grown.inertia else grown


def _settle(X: np.ndarray, centers: np.ndarray, least: int, engine: Engine) -> KMeansResult:
    """Assign and average in turn until the loss hardly falls."""
    rows = engine.load(X, None)
    best: KMeansResult | None = None
    for steps in range(1, _MOST_ROUNDS + 1):
        labels = assign_at_least(X, centers, engine.assign(rows, centers), least)
        sums = partition_sums(X, labels, len(centers))
        means = sums.means()
        gaps = own_gaps(X, labels, means)
        inertia = float(gaps.sum())
        before = np.inf if best is None else best.inertia
        centers = means.astype(X.dtype)
        # Beyond some hundreds of centres an assignment is not quite the cheapest, so that the loss might rise.
        if inertia < before:
            nearest = nearest_members(labels, gaps, len(centers))
            best = KMeansResult(
                centers=centers,
                inertia=inertia,
                iterations=steps,
                labels=labels,
                counts=sums.counts,
                nearest=nearest,
            )
        if before - inertia <= _LEAST_GAIN * inertia:
            break
    assert best is not None
    return best


def _small_ones_dissolved(X: np.ndarray, start: KMeansResult, sizes: np.ndarray, least: int) -> np.ndarray | None:
    """Return the centres with those of small clusters moved into halves of the worst large ones; None if none is."""
    gaps = own_gaps(X, start.labels, start.centers)
    losses = np.bincount(start.labels, gaps, len(sizes))
    order = np.argsort(start.labels, kind="stable")
    edges = np.searchsorted(start.labels[order], np.arange(len(sizes) + 1))
    worst = [(-losses[c], c, order[edges[c] : edges[c + 1]]) for c in np.flatnonzero(sizes >= 2 * least).tolist()]
    heapq.heapify(worst)
    centers = start.centers.copy()
    moved = 0
    for place in np.lexsort((losses, sizes))[: int((sizes < least).sum())].tolist():
        if not worst:
            break
        _, cluster, members = heapq.heappop(worst)
        for target, half in zip((cluster, place), _halves(X, members, least), strict=True):
            mean, loss = _mean_and_loss(X, half)
            centers[target] = mean
            if len(half) >= 2 * least:
                heapq.heappush(worst, (-loss, target, half))
        moved += 1
    return centers if moved else None


def _halves(X: np.ndarray, members: np.ndarray, least: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut rows in two along their widest direction, where it lowers the loss most and leaves enough on both sides."""
    # Some thousands of rows tell the direction of many.
    sample = X[members[:: 1 + len(members) // _DIRECTION_ROWS]].astype(np.float64)
    sample -= sample.mean(axis=0)
    # A few power iterations from the farthest row find it well enough.
    direction = sample[np.einsum("ij,ij->i", sample, sample).argmax()]
    for _ in range(5):
        length = np.linalg.norm(direction)
        if length == 0:
            break
        direction = sample.T @ (sample @ (direction / length))
    along = np.concatenate([block @ direction for block in _blocks(X, members)])
    along -= along.mean()
    order = np.argsort(along, kind="stable")
    left = np.arange(least, len(members) - least + 1)
    sums = np.cumsum(along[order])[left - 1]
    # Both parts have opposite sums around the common mean; what their means explain is largest at the best cut.
    cut = left[int((sums**2 * (1 / left + 1 / (len(members) - left))).argmax())]
    return np.sort(members[order[:cut]]), np.sort(members[order[cut:]])


def _mean_and_loss(X: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, float]:
    mean = sum(block.sum(axis=0) for block in _blocks(X, members)) / len(members)
    return np.asarray(mean), float(sum(((block - mean) ** 2).sum() for block in _blocks(X, members)))


def _blocks(X: np.ndarray, members: np.ndarray) -> Iterator[np.ndarray]:
    """Yield rows in double precision, few at a time: a cluster may hold most of a large class."""
    for run in chunks(len(members), X.shape[1]):
        yield X[members[run]].astype(np.float64)
