"""Sums of clusters that are kept up to date while rows move from one to another.

After its first steps Lloyd moves few rows, and adding up all of them again takes about as long as finding where they
belong. What moved is taken from one cluster and given to another instead, in float64, on one thread and in the order of
the rows, so that the sums do not depend on who found the labels.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from c2tc_pipeline.clustering.partition import CHUNK_CELLS, PartitionSums, chunks, partition_sums

# The share of rows up to which moving them, once out and once in, takes less than adding up all.
_FEW = 1 / 3


class RunningSums:
    """Rows with their present clusters, and the sums of these.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows.
    weight : ndarray of shape (n,)
        Their weights: whole numbers, so that a cluster that lost all its rows weighs nothing.
    labels : ndarray of int
        The clusters that they are in.
    k : int
        Number of clusters.

    Examples
    --------
    >>> X = np.array([[0.0], [0.2], [0.9], [1.0]], dtype=np.float32)
    >>> kept = RunningSums(X, np.ones(4), np.array([0, 0, 0, 1]), 2)
    >>> kept.move(np.array([0, 0, 1, 1])).counts.tolist()
    [2.0, 2.0]
    """

    def __init__(self, X: np.ndarray, weight: np.ndarray, labels: np.ndarray, k: int) -> None:
        self.X = X
        self.weight = weight
        self.labels = labels
        self.sums = partition_sums(X, labels, k, weight, power=False)

    def move(self, labels: np.ndarray) -> PartitionSums:
        """Let every row go to the cluster that it has now, and return the sums."""
        self.sums = moved_sums(self.X, self.weight, self.labels, self.sums, labels)
        self.labels = labels
        return self.sums


def moved_sums(
    X: np.ndarray, weight: np.ndarray | None, before: np.ndarray, sums: PartitionSums, labels: np.ndarray
) -> PartitionSums:
    """Return the sums of clusters after rows went from those that they had before to others.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows.
    weight : ndarray of shape (n,), optional
        Their weights: whole numbers.
    before, labels : ndarray of int
        The clusters that they had and those that they have.
    sums : PartitionSums
        Those of the clusters before.

    Examples
    --------
    >>> X, before = np.array([[0.0], [0.5], [1.0]]), np.array([0, 0, 0])
    >>> moved_sums(X, None, before, partition_sums(X, before, 2), np.array([0, 0, 1])).sums.tolist()
    [[0.5], [1.0]]
    """
    k = len(sums.counts)
    moved = np.flatnonzero(labels != before)
    if len(moved) > _FEW * len(labels):
        return replace(partition_sums(X, labels, k, weight, power=False), power=sums.power)
    # Adding to the sums costs as many cells as there are; more rows at once would be a copy that counts.
    for run in chunks(len(moved), X.shape[1], cells=CHUNK_CELLS + 8 * sums.sums.size):
        some = moved[run]
        rows, some_weight = X[some], None if weight is None else weight[some]
        gone, come = (partition_sums(rows, side[some], k, some_weight, power=False) for side in (before, labels))
        sums = replace(sums, sums=sums.sums + (come.sums - gone.sums), counts=sums.counts + (come.counts - gone.counts))
    return sums
