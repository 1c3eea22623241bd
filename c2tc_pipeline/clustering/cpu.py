"""The CPU engine: full steps by :mod:`~c2tc_pipeline.clustering.assignment`, then steps among near centres where many.

Sums are made after all rows have their labels, in float64 and in the order of the rows: a seed gives the same bytes on
any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from c2tc_pipeline.clustering.assignment import nearest_centers, wants_columns
from c2tc_pipeline.clustering.engine import Engine
from c2tc_pipeline.clustering.near_steps import NEIGHBOURS, REFRESH, NearSteps, nearest_around, neighbours
from c2tc_pipeline.clustering.partition import PartitionSums, RepeatedSums, own_gaps, partition_sums
from c2tc_pipeline.threads import cores

# Work below which waking a second thread takes longer than it saves: multiplications, and for each score as many again
# as it takes to find the largest.
_SMALL_STEP = 8_000_000
_WORK_PER_SCORE = 16
# From so many rows and centres on, looking at the centres around one's own saves more than it costs to sort rows by it.
_MANY_ROWS = 40_000
_MANY_CENTERS = 4 * NEIGHBOURS


# Cells up to which rows are held in two more forms that steps want: 24 MiB for rows in float32.
_SMALL_CELLS = 2**21


@dataclass
class _Rows:
    X: np.ndarray
    weight: np.ndarray
    near: NearSteps | None = None
    columns: np.ndarray | None = None
    repeated: RepeatedSums | None = None

    def prepare(self, k: int) -> None:
        """Bring rows that steps will be repeated on to the forms that steps want."""
        if self.X.size > _SMALL_CELLS:
            return
        if self.columns is None and wants_columns(len(self.X), k):
            self.columns = np.ascontiguousarray(self.X.T)
        if self.repeated is None:
            self.repeated = RepeatedSums(self.X, self.weight)

    def sums(self, labels: np.ndarray, k: int) -> PartitionSums:
        if self.repeated is None:
            return partition_sums(self.X, labels, k, self.weight, power=False)
        return self.repeated.over(labels, k)


def _moved(rows: _Rows, centers: np.ndarray, labels: np.ndarray, sums: PartitionSums) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of the clusters, and their weights; an empty cluster moves to a row that is served worst."""
    updated = sums.means().astype(rows.X.dtype)
    empty = np.flatnonzero(sums.counts <= 0)
    if len(empty):
        worst_served = np.argsort(-own_gaps(rows.X, labels, centers), kind="stable")
        updated[empty] = rows.X[worst_served[: len(empty)]]
    return updated, sums.counts


class CpuEngine(Engine):
    """Lloyd on all cores that OpenMP may use.

    Parameters
    ----------
    threads : int, optional
        Threads of a large step, instead of as many as OpenMP would take here. The result is the same to the bit.

    Examples
    --------
    >>> X = np.array([[0.0], [0.2], [1.0]], dtype=np.float32)
    >>> CpuEngine().fit(X, 2).labels.tolist() in ([0, 0, 1], [1, 1, 0])
    True
    """

    refresh = REFRESH

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads

    def alone(self) -> CpuEngine:
        return CpuEngine(1)

    def looks_around(self, rows: int, k: int) -> bool:
        return rows >= _MANY_ROWS and k >= _MANY_CENTERS

    def around(self, centers: np.ndarray) -> np.ndarray:
        return neighbours(centers, NEIGHBOURS)

    def assign_around(self, X: np.ndarray, labels: np.ndarray, centers: np.ndarray, around: np.ndarray) -> np.ndarray:
        return nearest_around(X, labels, centers, around)

    def load(self, X: np.ndarray, weight: np.ndarray | None) -> _Rows:
        weight = np.ones(len(X)) if weight is None else weight.astype(np.float64)
        return _Rows(np.ascontiguousarray(X), weight)

    def update(self, rows: _Rows, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.looks_around(len(rows.X), len(centers)):
            return self._update_near(rows, centers)
        rows.prepare(len(centers))
        labels = self.assign(rows, centers)
        return _moved(rows, centers, labels, rows.sums(labels, len(centers)))

    def _update_near(self, rows: _Rows, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Do a step in full, as the first, or among the centres around those that the rows have from the last one."""
        if rows.near is None:
            labels = self.assign(rows, centers)
            rows.near = NearSteps(rows.X, rows.weight, labels, len(centers))
            return _moved(rows, centers, labels, rows.near.sums)
        sums = rows.near.step(centers)
        return _moved(rows, centers, rows.near.labels, sums)

    def assign(self, rows: _Rows, centers: np.ndarray) -> np.ndarray:
        # Means of blocks come in float64.
        centers = centers.astype(rows.X.dtype, copy=False)
        return nearest_centers(rows.X, centers, self._threads(rows, centers), columns=rows.columns)

    def _threads(self, rows: _Rows, centers: np.ndarray) -> int:
        """Return how many threads a step is worth."""
        n, d = rows.X.shape
        if n * len(centers) * (d + _WORK_PER_SCORE) < _SMALL_STEP:
            return 1
        return self.threads or cores()
