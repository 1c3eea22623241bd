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


@dataclass(frozen=True)
class _Rows:
    X: np.ndarray
    weight: np.ndarray
    labels: np.ndarray


@cache
def _thread_pools() -> ThreadpoolController:
    """Find the loaded thread pools once: the search reads the process's memory map and takes milliseconds."""
    return ThreadpoolController()


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
        updated = np.zeros_like(centers)
        counts = np.zeros(len(centers), dtype=rows.X.dtype)
        self._run(rows, centers, updated, counts, update_centers=True)
        return updated, counts.astype(np.float64)

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
                _openmp_effective_n_threads(),
                update_centers=update_centers,
            )
