"""Sums over a partition: the arithmetic that every clustering engine and every block of rows shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

# Rows handled at once where float64 copies are made; keeps the copy near the size of a processor cache.
CHUNK_ROWS = 65_536


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
        Weighted sum of squared norms of all rows.

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


def partition_sums(X: np.ndarray, labels: np.ndarray, k: int, weight: np.ndarray | None = None) -> PartitionSums:
    """Sum rows by cluster in float64, whatever the precision of ``X``."""
    total = PartitionSums(np.zeros((k, X.shape[1])), np.zeros(k), 0.0)
    for start in range(0, len(X), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        block = X[rows].astype(np.float64)
        block_weight = np.ones(len(block)) if weight is None else weight[rows].astype(np.float64)
        picks = sparse.csr_array((block_weight, labels[rows], np.arange(len(block) + 1)), shape=(len(block), k)).T
        power = float(np.einsum("ij,ij,i->", block, block, block_weight))
        total = total + PartitionSums(picks @ block, np.bincount(labels[rows], block_weight, k), power)
    return total


def own_gaps(X: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return each row's squared distance to the centre of its own cluster, in float64.

    Examples
    --------
    >>> own_gaps(np.array([[0.0], [2.0], [5.0]]), np.array([0, 0, 1]), np.array([[1.0], [5.0]]))
    array([1., 1., 0.])
    """
    gaps = np.empty(len(X))
    for start in range(0, len(X), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        offsets = X[rows].astype(np.float64) - centers[labels[rows]]
        gaps[rows] = np.einsum("ij,ij->i", offsets, offsets)
    return gaps
