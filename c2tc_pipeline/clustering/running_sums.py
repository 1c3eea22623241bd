"""Sums of clusters that are kept up to date while rows move from one to another.

After its first steps Lloyd moves few rows, and adding up all of them again takes about as long as finding where they
belong. What moved is taken from one cluster and given to another instead, in float64, on one thread and in the order of
the rows, so that the sums do not depend on who found the labels.
"""

from __future__ import annotations

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
        k = len(self.sums.counts)
        moved = np.flatnonzero(labels != self.labels)
        if len(moved) > _FEW * len(labels):
            self.sums = partition_sums(self.X, labels, k, self.weight, power=False)
        else:
            # Adding to the sums costs as many cells as there are; more rows at once would be a copy that counts.
            for run in chunks(len(moved), self.X.shape[1], cells=CHUNK_CELLS + 8 * self.sums.sums.size):
                self._carry(moved[run], labels)
        self.labels = labels
        return self.sums

    def _carry(self, moved: np.ndarray, labels: np.ndarray) -> None:
        """Take some rows from the clusters that they had and give them to those that they have now."""
        rows, weight, k = self.X[moved], self.weight[moved], len(self.sums.counts)
        gone, come = (partition_sums(rows, side[moved], k, weight, power=False) for side in (self.labels, labels))
        sums, counts = self.sums.sums + (come.sums - gone.sums), self.sums.counts + (come.counts - gone.counts)
        self.sums = PartitionSums(sums, counts, self.sums.power)
