"""The CPU engine: scikit-learn's compiled Lloyd step.

The kernel is private to scikit-learn, so this file is the only one that may touch it. It is worth that: the public
``KMeans`` copies and centres the rows on every call and offers neither a warm-started step nor our stopping rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.cluster._k_means_lloyd import lloyd_iter_chunked_dense
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from threadpoolctl import ThreadpoolController

from c2tc_pipeline.clustering.engine import Engine
from c2tc_pipeline.clustering.near_steps import NEIGHBOURS, NearSteps
from c2tc_pipeline.clustering.partition import PartitionSums, own_gaps, partition_sums

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


@cache
def _thread_pools() -> ThreadpoolController:
    """Find the loaded thread pools once: the search reads the process's memory map and takes milliseconds."""
    return ThreadpoolController()


def _threads(rows: _Rows, centers: np.ndarray) -> int:
    """Return how many threads a step is worth."""
    return 1 if rows.X.size * len(centers) < _SMALL_STEP else int(_openmp_effective_n_threads())


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

    Examples
    --------
    >>> X = np.array([[0.0], [0.2], [1.0]], dtype=np.float32)
    >>> CpuEngine().fit(X, 2).labels.tolist() in ([0, 0, 1], [1, 1, 0])
    True
    """

    def load(self, X: np.ndarray, weight: np.ndarray | None) -> _Rows:
        weight = np.ones(len(X), X.dtype) if weight is None else weight.astype(X.dtype)
        return _Rows(np.ascontiguousarray(X), weight, np.empty(len(X), dtype=np.int32))

    def update(self, rows: _Rows, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if len(rows.X) >= _MANY_ROWS and len(centers) >= _MANY_CENTERS:
            return self._update_near(rows, centers)
        if _threads(rows, centers) > _MOST_REPEATABLE_THREADS:
            # Sums that are added in a fixed order, on any number of threads.
            labels = self.assign(rows, centers)
            return _moved(rows, centers, labels, partition_sums(rows.X, labels, len(centers), rows.weight))
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

    def _run(
        self, rows: _Rows, centers: np.ndarray, updated: np.ndarray, counts: np.ndarray, *, update_centers: bool
    ) -> None:
        shift = np.zeros(len(centers), dtype=rows.X.dtype)
        # The kernel runs one small matrix product per thread; BLAS threads inside OpenMP threads would fight.
        with _thread_pools().limit(limits=1, user_api="blas"):
            lloyd_iter_chunked_dense(
                rows.X,
                rows.weight,
                centers,
                updated,
                counts,
                rows.labels,
                shift,
                _threads(rows, centers),
                update_centers=update_centers,
            )
