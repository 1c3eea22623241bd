"""The CPU engine: which of the ways to do a step is the fastest for so many rows and centres.

Whichever it is, a seed gives the same bytes on any number of threads: what is added up is added on one thread, in the
order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from c2tc_pipeline.clustering.assignment import nearest_centers
from c2tc_pipeline.clustering.bounded_steps import BoundedSteps
from c2tc_pipeline.clustering.engine import Engine
from c2tc_pipeline.clustering.few_centers import nearest_of_few, step_of_few
from c2tc_pipeline.clustering.near_steps import NEIGHBOURS, REFRESH, NearSteps, nearest_around, neighbours
from c2tc_pipeline.clustering.partition import PartitionSums, own_gaps
from c2tc_pipeline.clustering.running_sums import RunningSums
from c2tc_pipeline.common.threads import cores

# Multiplications below which waking a second thread takes longer than it saves.
_SMALL_STEP = 20_000_000
# Centres up to which scikit-learn's kernel is faster than numpy, and multiplications up to which it does a whole step
# on one thread: from there on it saves more to share the search for labels than it costs to sum rows apart from it.
_FEW_CENTERS = 120
_SMALL_STEP_OF_FEW = 50_000_000
# From so many rows on, knowing which of them may move saves more than it costs to find out; from so many centres on,
# looking at the centres around one's own saves more than it costs to sort rows by it.
_MANY_ROWS = 40_000
# Columns from which on comparing a row costs more than its bounds: with ten, steps took half as long again.
_MANY_COLUMNS = 32
_MANY_CENTERS = 3 * NEIGHBOURS


@dataclass
class _Rows:
    X: np.ndarray
    weight: np.ndarray
    near: NearSteps | None = None
    bounded: BoundedSteps | None = None
    kept: RunningSums | None = None

    def work(self, centers: np.ndarray) -> int:
        """Return how many multiplications a full step takes."""
        return int(self.X.size * len(centers))


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

    def keeps_bounds(self, rows: int, columns: int, k: int) -> bool:
        """Tell whether it pays to know which rows may move."""
        return rows >= _MANY_ROWS and columns >= _MANY_COLUMNS and k > _FEW_CENTERS

    def around(self, centers: np.ndarray) -> np.ndarray:
        return neighbours(centers, NEIGHBOURS)

    def assign_around(self, X: np.ndarray, labels: np.ndarray, centers: np.ndarray, around: np.ndarray) -> np.ndarray:
        return nearest_around(X, labels, centers, around, self.threads or cores())

    def load(self, X: np.ndarray, weight: np.ndarray | None) -> _Rows:
        weight = np.ones(len(X), X.dtype) if weight is None else weight.astype(X.dtype)
        return _Rows(np.ascontiguousarray(X), weight)

    def update(self, rows: _Rows, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.looks_around(len(rows.X), len(centers)):
            return self._update_near(rows, centers)
        if len(centers) <= _FEW_CENTERS and rows.work(centers) < _SMALL_STEP_OF_FEW:
            return step_of_few(rows.X, rows.weight, centers)
        if rows.bounded is None and self.keeps_bounds(len(rows.X), rows.X.shape[1], len(centers)):
            rows.bounded = BoundedSteps(rows.X, self.threads or cores())
        labels = self.assign(rows, centers)
        if rows.kept is None or len(rows.kept.sums.counts) != len(centers):
            rows.kept = RunningSums(rows.X, rows.weight, labels, len(centers))
        return _moved(rows, centers, labels, rows.kept.move(labels))

    def _update_near(self, rows: _Rows, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Do a step in full, as the first, or among the centres around those that the rows have from the last one."""
        if rows.near is None:
            labels = self.assign(rows, centers)
            kept = RunningSums(rows.X, rows.weight, labels, len(centers))
            rows.near = NearSteps(kept, self.threads or cores())
            return _moved(rows, centers, labels, rows.near.kept.sums)
        sums = rows.near.step(centers)
        return _moved(rows, centers, rows.near.kept.labels, sums)

    def assign(self, rows: _Rows, centers: np.ndarray) -> np.ndarray:
        # Means of blocks come in float64 and slices of rows with gaps; the kernel takes neither.
        centers = np.ascontiguousarray(centers, dtype=rows.X.dtype)
        threads = 1 if rows.work(centers) < _SMALL_STEP else self.threads or cores()
        if len(centers) <= _FEW_CENTERS:
            return nearest_of_few(rows.X, rows.weight, centers, threads)
        if rows.bounded is not None:
            return rows.bounded.nearest(centers)
        return nearest_centers(rows.X, centers, threads)
