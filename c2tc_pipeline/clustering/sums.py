"""Float64 sums, means and distances of clusters: the arithmetic that all kernels and blocks share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

# Cells handled at once where float64 copies of rows are made: 2 MiB, which stay in a processor's cache.
CHUNK_CELLS = 2**18
# Share of moved rows up to which updating sums is cheaper than summing all rows again.
_MOVED_SHARE = 1 / 3


@dataclass(frozen=True)
class ClusterSums:
    """Contribution of a block of rows to its clusters: sums, total weights, and the rows' squared norms.

    ``power`` is NaN where it was not computed. Contributions of blocks are added with ``+``.
    """

    sums: np.ndarray
    counts: np.ndarray
    power: float

    def __add__(self, other: ClusterSums) -> ClusterSums:
        return ClusterSums(self.sums + other.sums, self.counts + other.counts, self.power + other.power)

    def means(self) -> np.ndarray:
        """Return the means of the clusters; zeros for an empty one."""
        return self.sums / np.maximum(self.counts, np.finfo(np.float64).tiny)[:, None]


def cluster_sums(
    X: np.ndarray, labels: np.ndarray, k: int, weight: np.ndarray | None = None, *, power: bool = True
) -> ClusterSums:
    """Sum rows by cluster in float64 and in row order; ``power=False`` skips the squared norms."""
    total = ClusterSums(np.zeros((k, X.shape[1])), np.zeros(k), 0.0)
    # Adding the sums of a chunk costs k * d additions.
    parts = list(chunks(*X.shape, cells=CHUNK_CELLS + 4 * k * X.shape[1]))
    # One reused buffer: allocating a new one per chunk takes as long as filling it.
    buffer = np.empty((parts[0].stop if parts else 0, X.shape[1]))
    for rows in parts:
        block = buffer[: rows.stop - rows.start]
        block[:] = X[rows]
        block_weight = np.ones(len(block)) if weight is None else weight[rows].astype(np.float64)
        squares = float(np.einsum("ij,ij,i->", block, block, block_weight)) if power else math.nan
        sums = _indicator(labels[rows], block_weight, k) @ block
        total = total + ClusterSums(sums, np.bincount(labels[rows], block_weight, k), squares)
    return total


def moved_sums(
    X: np.ndarray, weight: np.ndarray | None, before: np.ndarray, sums: ClusterSums, labels: np.ndarray
) -> ClusterSums:
    """Update sums after rows moved from the clusters ``before`` to ``labels``; weights are integers."""
    k = len(sums.counts)
    moved = np.flatnonzero(labels != before)
    if len(moved) > _MOVED_SHARE * len(labels):
        return replace(cluster_sums(X, labels, k, weight, power=False), power=sums.power)
    for part in chunks(len(moved), X.shape[1], cells=CHUNK_CELLS + 8 * sums.sums.size):
        some = moved[part]
        rows, some_weight = X[some], None if weight is None else weight[some]
        left, joined = (cluster_sums(rows, side[some], k, some_weight, power=False) for side in (before, labels))
        sums = replace(
            sums, sums=sums.sums + (joined.sums - left.sums), counts=sums.counts + (joined.counts - left.counts)
        )
    return sums


def own_distances(X: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return each row's squared distance to the centre of its own cluster, in float64."""
    distances = np.empty(len(X))
    centers = centers.astype(np.float64, copy=False)
    for rows in chunks(*X.shape):
        offsets = centers[labels[rows]]
        np.subtract(X[rows], offsets, out=offsets)
        distances[rows] = np.einsum("ij,ij->i", offsets, offsets)
    return distances


def nearest_members(labels: np.ndarray, distances: np.ndarray, k: int) -> np.ndarray:
    """Return the first row of each cluster with the smallest distance; every cluster has a row."""
    order = np.lexsort((distances, labels))
    return np.asarray(order[np.searchsorted(labels[order], np.arange(k))])


def chunks(rows: int, columns: int, *, cells: int | None = None) -> Iterator[slice]:
    """Yield ranges of at least one row and at most ``cells`` cells, by default ``CHUNK_CELLS``."""
    size = max(1, (CHUNK_CELLS if cells is None else cells) // max(columns, 1))
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def _indicator(labels: np.ndarray, weight: np.ndarray, k: int) -> sparse.csc_array:
    """Return the sparse matrix whose product with rows is their weighted sums by cluster."""
    # int32 indices, as labels have: scipy would copy all of them otherwise.
    ends = np.arange(len(labels) + 1, dtype=np.int32)
    return sparse.csc_array((weight, labels.astype(np.int32, copy=False), ends), shape=(k, len(labels)))
