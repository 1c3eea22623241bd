"""The CPU engine: scikit-learn's compiled Lloyd step.

The kernel is private to scikit-learn, so this file is the only one that may touch it. It is worth that: the public
``KMeans`` copies and centres the rows on every call and offers neither a warm-started step nor our stopping rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.cluster._k_means_lloyd import lloyd_iter_chunked_dense

from c2tc_pipeline.clustering.engine import Engine
from c2tc_pipeline.clustering.near_steps import NEIGHBOURS, REFRESH, NearSteps, nearest_around, neighbours
from c2tc_pipeline.clustering.partition import PartitionSums, own_gaps, partition_sums
from c2tc_pipeline.threads import cores, one_blas_thread

# The kernel adds the sums of its threads in the order in which they finish. Two summands commute to the bit, three do
# not; beyond two threads the sums are made outside the kernel, so that a seed gives the same bytes every time.
_MOST_REPEATABLE_THREADS = 2
# Multiplications below which waking a second thread takes longer than it saves.
_SMALL_STEP = 20_000_000


# From so many rows and centres on, looking at the centres around one's own saves more than it costs to sort rows by it.
_MANY_ROWS = 40_000
_MANY_CENTERS = 4 * NEIGHBOURS


@dataclass
class _Rows:
    X: np.ndarray
    weight: np.ndarray
    labels: np.ndarray
    near: NearSteps | None = None


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
        Threads of a large step, instead of as many as OpenMP would take here: the last bits of a class that is computed
        elsewhere are then those of a class computed here.

    Examples
    --------
    >>> X = np.array([[0.0], [0.2], [1.0]], dtype=np.float32)
    >>> CpuEngine().fit(X, 2).labels.tolist() in ([0, 0, 1], [1, 1, 0])
    True
    """

    refresh = REFRESH

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads

    def pinned(self) -> CpuEngine:
        """Return the engine that does elsewhere what this one does here, to the bit."""
        return CpuEngine(self.threads or cores())

    def alone(self) -> CpuEngine:
        return CpuEngine(1)

    def looks_around(self, rows: int, k: int) -> bool:
        return rows >= _MANY_ROWS and k >= _MANY_CENTERS

    def around(self, centers: np.ndarray) -> np.ndarray:
        return neighbours(centers, NEIGHBOURS)

    def assign_around(self, X: np.ndarray, labels: np.ndarray, centers: np.ndarray, around: np.ndarray) -> np.ndarray:
        return nearest_around(X, labels, centers, around)

    def load(self, X: np.ndarray, weight: np.ndarray | None) -> _Rows:
        weight = np.ones(len(X), X.dtype) if weight is None else weight.astype(X.dtype)
        return _Rows(np.ascontiguousarray(X), weight, np.empty(len(X), dtype=np.int32))

    def update(self, rows: _Rows, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.looks_around(len(rows.X), len(centers)):
            return self._update_near(rows, centers)
        if self._threads(rows, centers) > _MOST_REPEATABLE_THREADS:
            # Sums that are added in a fixed order, on any number of threads.
            labels = self.assign(rows, centers)
            sums = partition_sums(rows.X, labels, len(centers), rows.weight, power=False)
            return _moved(rows, centers, labels, sums)
        updated = np.zeros_like(centers)
        counts = np.zeros(len(centers), dtype=rows.X.dtype)
        self._run(rows, centers, updated, counts, update_centers=True)
        return updated, counts.astype(np.float64)

    def _update_near(self, rows: _Rows, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Do a step in full, as the first, or among the centres around those that the rows have from the last one."""
        if rows.near is None:
            labels = self.assign(rows, centers)
            rows.near = NearSteps(rows.X, rows.weight, labels, len(centers))
            return _moved(rows, centers, labels, rows.near.sums)
        sums = rows.near.step(centers)
        return _moved(rows, centers, rows.near.labels, sums)

    def assign(self, rows: _Rows, centers: np.ndarray) -> np.ndarray:
        # Means of blocks come in float64 and slices of rows with gaps; the kernel takes neither.
        centers = np.ascontiguousarray(centers, dtype=rows.X.dtype)
        self._run(rows, centers, centers.copy(), np.zeros(len(centers), rows.X.dtype), update_centers=False)
        return rows.labels.copy()

    def _threads(self, rows: _Rows, centers: np.ndarray) -> int:
        """Return how many threads a step is worth."""
        if rows.X.size * len(centers) < _SMALL_STEP:
            return 1
        return self.threads or cores()

    def _run(
        self, rows: _Rows, centers: np.ndarray, updated: np.ndarray, counts: np.ndarray, *, update_centers: bool
    ) -> None:
        shift = np.zeros(len(centers), dtype=rows.X.dtype)
        # The kernel runs one small matrix product per thread; BLAS threads inside OpenMP threads would fight.
        with one_blas_thread():
            lloyd_iter_chunked_dense(
                rows.X,
                rows.weight,
                centers,
                updated,
                counts,
                rows.labels,
                shift,
                self._threads(rows, centers),
                update_centers=update_centers,
            )
