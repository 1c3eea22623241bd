"""Sums over a partition: the arithmetic that every clustering engine and every block of rows shares."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

# Cells handled at once where float64 copies of rows are made: 2 MiB, which stay in a processor's cache.
CHUNK_CELLS = 2**18


@dataclass(frozen=True)
class PartitionSums:
    """What a block of rows contributes to the clusters it is assigned to; blocks add up.

    Parameters
    ----------
    sums : ndarray of shape (k, d)
        Weighted sums of the rows of each cluster, in float64.
    counts : ndarray of shape (k,)
        Total weight of each cluster.
    power : float
        Weighted sum of squared norms of all rows; NaN where nobody asked for it.

    Examples
    --------
    >>> X = np.array([[0.0], [2.0], [5.0]], dtype=np.float32)
    >>> s = partition_sums(X, np.array([0, 0, 1]), 2)
    >>> s.means().ravel(), s.wcss()
    (array([1., 5.]), 2.0)
    """

    sums: np.ndarray
    counts: np.ndarray
    power: float

    def __add__(self, other: PartitionSums) -> PartitionSums:
        return PartitionSums(self.sums + other.sums, self.counts + other.counts, self.power + other.power)

    def means(self) -> np.ndarray:
        """Return the clusters' means; an empty cluster gets zeros."""
        return self.sums / np.maximum(self.counts, np.finfo(np.float64).tiny)[:, None]

    def wcss(self) -> float:
        """Return the within-cluster sum of squares around the means.

        A difference of two large sums, so its error is some 1e-16 of ``power``; where the rows are at hand,
        :func:`own_gaps` loses nothing.
        """
        explained = float(np.einsum("ij,ij->", self.sums, self.means()))
        return max(self.power - explained, 0.0)


def partition_sums(
    X: np.ndarray, labels: np.ndarray, k: int, weight: np.ndarray | None = None, *, power: bool = True
) -> PartitionSums:
    """Sum rows by cluster in float64, whatever the precision of ``X``; their power takes as long, and can be left."""
    total = PartitionSums(np.zeros((k, X.shape[1])), np.zeros(k), 0.0)
    # Adding up the sums of a chunk costs as many cells as there are sums.
    runs = list(chunks(*X.shape, cells=CHUNK_CELLS + 4 * k * X.shape[1]))
    # One copy that is written over: memory that is new for each chunk would take as long to get as to fill.
    held = np.empty((runs[0].stop if runs else 0, X.shape[1]))
    for rows in runs:
        block = held[: rows.stop - rows.start]
        block[:] = X[rows]
        block_weight = np.ones(len(block)) if weight is None else weight[rows].astype(np.float64)
        squares = float(np.einsum("ij,ij,i->", block, block, block_weight)) if power else math.nan
        sums = _picks(labels[rows], block_weight, k) @ block
        total = total + PartitionSums(sums, np.bincount(labels[rows], block_weight, k), squares)
    return total


def _picks(labels: np.ndarray, weight: np.ndarray, k: int) -> sparse.csc_array:
    """Return the matrix whose product with rows is their sums by cluster."""
    # Indices of one width, and the one that labels have: otherwise they are all copied.
    ends = np.arange(len(labels) + 1, dtype=np.int32)
    return sparse.csc_array((weight, labels.astype(np.int32, copy=False), ends), shape=(k, len(labels)))


def own_gaps(X: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return each row's squared distance to the centre of its own cluster, in float64.

    Examples
    --------
    >>> own_gaps(np.array([[0.0], [2.0], [5.0]]), np.array([0, 0, 1]), np.array([[1.0], [5.0]]))
    array([1., 1., 0.])
    """
    gaps = np.empty(len(X))
    centers = centers.astype(np.float64, copy=False)
    for rows in chunks(*X.shape):
        # Written over the looked-up centres: no third copy of the chunk.
        offsets = centers[labels[rows]]
        np.subtract(X[rows], offsets, out=offsets)
        gaps[rows] = np.einsum("ij,ij->i", offsets, offsets)
    return gaps


def nearest_members(labels: np.ndarray, gaps: np.ndarray, k: int) -> np.ndarray:
    """Return the row of each cluster with the smallest distance, of several the first; every cluster has some.

    Examples
    --------
    >>> nearest_members(np.array([1, 0, 1]), np.array([0.5, 2.0, 0.25]), 2)
    array([1, 2])
    """
    order = np.lexsort((gaps, labels))
    return np.asarray(order[np.searchsorted(labels[order], np.arange(k))])


def chunks(rows: int, columns: int, *, cells: int | None = None) -> Iterator[slice]:
    """Yield runs of rows that have so many cells, one row at least: as many as stay in a cache by default.

    Examples
    --------
    >>> list(chunks(5, 3, cells=6))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, (CHUNK_CELLS if cells is None else cells) // max(columns, 1))
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))
