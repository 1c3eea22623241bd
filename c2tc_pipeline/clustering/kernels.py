"""Kernels: the arithmetic of a Lloyd step on one kind of processor. The CPU kernel is here, torch's in its own file.

A row is nearest to the centre with the largest ``x.c - |c|^2 / 2``, found by matrix products of row ranges whose scores
fit a processor's cache. Ranges do not depend on the number of threads, and sums are added on one thread in row order,
so that results are the same bytes for any number of threads.
"""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np

from c2tc_pipeline.clustering.sums import ClusterSums, cluster_sums, moved_sums, own_distances
from c2tc_pipeline.common.devices import resolve_device
from c2tc_pipeline.common.processes import cores, one_blas_thread

# Centres that a row is compared with in a step among neighbours. At 1 % of Covertype and Airlines the objective ends
# within 0.01 % of that with 128 centres; with 64 it was 0.05 % higher on Airlines.
NEIGHBOURS = 96
# Steps after which the neighbours of each centre are searched again.
REFRESH_STEPS = 4
# Rows and centres from which on steps among neighbours are faster than full ones.
_NEIGHBOUR_ROWS = 40_000
_NEIGHBOUR_CENTERS = 3 * NEIGHBOURS
# Multiplications below which a second thread costs more than it saves.
_THREADED_WORK = 20_000_000
# Bytes of scores that a thread holds at once.
_SCORE_BYTES = 2**21
# Rows of one cluster scored at once among its neighbours, and multiplications per range from which threads pay.
_NEIGHBOUR_RANGE_ROWS = 2_048
_NEIGHBOUR_RANGE_WORK = 500_000

Item = TypeVar("Item")


class Kernel(ABC):
    """The steps of k-means on one kind of processor."""

    device: str = "cpu"

    @abstractmethod
    def load(self, X: np.ndarray, weight: np.ndarray | None) -> Any:
        """Bring rows to the device once, for :meth:`update` and :meth:`assign`."""

    @abstractmethod
    def update(self, rows: Any, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Do one Lloyd step; return the new centres and the weight of each cluster."""

    @abstractmethod
    def assign(self, rows: Any, centers: np.ndarray) -> np.ndarray:
        """Return the nearest centre of each row, as int32."""

    def single_threaded(self) -> Kernel:
        """Return the kernel on one thread, for tasks that run side by side."""
        return self

    def uses_neighbours(self, rows: int, k: int) -> bool:
        """Tell whether steps compare rows only with the centres next to their own."""
        return False

    def assign_among(self, X: np.ndarray, labels: np.ndarray, centers: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Return for each row the nearest of its own centre's neighbours."""
        raise NotImplementedError


def make_kernel(device: str = "auto") -> Kernel:
    """Return the kernel for a device setting: numpy on the CPU, torch elsewhere."""
    resolved = resolve_device(device)
    if resolved == "cpu":
        return CpuKernel()
    from c2tc_pipeline.clustering.torch_kernel import TorchKernel

    return TorchKernel(resolved)


@dataclass
class _Rows:
    """Rows and the results of the last step on them."""

    X: np.ndarray
    weight: np.ndarray
    labels: np.ndarray | None = None
    sums: ClusterSums | None = None
    near: np.ndarray | None = None
    neighbour_steps: int = 0


class CpuKernel(Kernel):
    """Lloyd steps in numpy, on the given number of threads or as many as :func:`cores` allows."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads

    def single_threaded(self) -> CpuKernel:
        return CpuKernel(1)

    def uses_neighbours(self, rows: int, k: int) -> bool:
        return rows >= _NEIGHBOUR_ROWS and k >= _NEIGHBOUR_CENTERS

    def assign_among(self, X: np.ndarray, labels: np.ndarray, centers: np.ndarray, near: np.ndarray) -> np.ndarray:
        return nearest_among(X, labels, centers, near, self.threads or cores())

    def load(self, X: np.ndarray, weight: np.ndarray | None) -> _Rows:
        weight = np.ones(len(X), X.dtype) if weight is None else weight.astype(X.dtype)
        return _Rows(np.ascontiguousarray(X), weight)

    def update(self, rows: _Rows, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k = len(centers)
        if rows.labels is None or rows.sums is None or len(rows.sums.counts) != k:
            labels = self.assign(rows, centers)
            rows.sums = cluster_sums(rows.X, labels, k, rows.weight, power=False)
        else:
            if self.uses_neighbours(len(rows.X), k):
                if rows.near is None or rows.neighbour_steps % REFRESH_STEPS == 0:
                    rows.near = nearest_neighbours(centers)
                rows.neighbour_steps += 1
                labels = self.assign_among(rows.X, rows.labels, centers, rows.near)
            else:
                labels = self.assign(rows, centers)
            rows.sums = moved_sums(rows.X, rows.weight, rows.labels, rows.sums, labels)
        rows.labels = labels
        updated = rows.sums.means().astype(rows.X.dtype)
        empty = np.flatnonzero(rows.sums.counts <= 0)
        if len(empty):
            farthest = np.argsort(-own_distances(rows.X, labels, centers), kind="stable")
            updated[empty] = rows.X[farthest[: len(empty)]]
        return updated, rows.sums.counts

    def assign(self, rows: _Rows, centers: np.ndarray) -> np.ndarray:
        # Means of blocks are float64.
        centers = np.ascontiguousarray(centers, dtype=rows.X.dtype)
        small = rows.X.size * len(centers) < _THREADED_WORK
        return nearest_centers(rows.X, centers, 1 if small else self.threads or cores())


def nearest_centers(X: np.ndarray, centers: np.ndarray, threads: int = 1) -> np.ndarray:
    """Return the nearest centre of each row, as int32; the first of several."""
    labels = np.empty(len(X), dtype=np.int32)
    max_rows = max(_SCORE_BYTES // X.dtype.itemsize // max(*centers.shape, 1), 1)
    # Ranges of equal length, and an even number of them for two threads.
    size = max(len(X), 1) if len(X) <= max_rows else -(-len(X) // (2 * -(-len(X) // (2 * max_rows))))
    ranges = [slice(start, start + size) for start in range(0, len(X), size)]
    share_work(partial(_label_ranges, X, centers, labels, size), ranges, threads)
    return labels


def _label_ranges(X: np.ndarray, centers: np.ndarray, labels: np.ndarray, size: int, ranges: Iterator[slice]) -> None:
    k, d = centers.shape
    # A column of ones subtracts the half norms within the product: one pass over the scores less.
    factor = np.concatenate([centers.T, -np.einsum("ij,ij->i", centers, centers)[None, :] / 2])
    extended = np.ones((size, d + 1), X.dtype)
    scores = np.empty((size, k), X.dtype)
    for part in ranges:
        rows = X[part]
        here = slice(len(rows))
        extended[here, :d] = rows
        labels[part] = np.matmul(extended[here], factor, out=scores[here]).argmax(axis=1)


def nearest_neighbours(centers: np.ndarray) -> np.ndarray:
    """Return for each centre the nearest centres, itself included, in no particular order."""
    k = len(centers)
    count = min(NEIGHBOURS, k)
    closeness = centers @ centers.T
    closeness -= _half_norms(centers)
    # Rounding must not exclude a centre from its own neighbours.
    np.fill_diagonal(closeness, np.inf)
    return np.argpartition(closeness, k - count, axis=1)[:, k - count :]


def nearest_among(
    X: np.ndarray, labels: np.ndarray, centers: np.ndarray, near: np.ndarray, threads: int = 1
) -> np.ndarray:
    """Return for each row the nearest of the neighbours ``near`` of its own centre.

    With thousands of centres a full step spends nearly all distances on centres far away. The own centre is among the
    neighbours, so that no step raises the loss, but a row may miss a nearer centre: finish with a full assignment.
    """
    # Sorting two-byte labels takes a tenth of the time.
    order = np.argsort(labels.astype(np.min_scalar_type(len(centers)), copy=False), kind="stable")
    edges = np.cumsum(np.bincount(labels, minlength=len(centers)))
    ranges = [
        (cluster, slice(start, min(start + _NEIGHBOUR_RANGE_ROWS, edge)))
        for cluster, (first, edge) in enumerate(itertools.pairwise([0, *edges.tolist()]))
        for start in range(first, edge, _NEIGHBOUR_RANGE_ROWS)
    ]
    nearest = np.empty(len(X), dtype=np.int32)
    threaded = X.size * near.shape[1] >= _NEIGHBOUR_RANGE_WORK * len(ranges)
    share_work(partial(_label_among, X, order, centers, near, nearest), ranges, threads if threaded else 1)
    return nearest


def _label_among(
    X: np.ndarray,
    order: np.ndarray,
    centers: np.ndarray,
    near: np.ndarray,
    nearest: np.ndarray,
    ranges: Iterator[tuple[int, slice]],
) -> None:
    half_norms = _half_norms(centers)
    # Reused buffers: allocating takes as long as filling.
    rows = np.empty((_NEIGHBOUR_RANGE_ROWS, X.shape[1]), X.dtype)
    scores = np.empty((_NEIGHBOUR_RANGE_ROWS, near.shape[1]), X.dtype)
    for cluster, part in ranges:
        own, candidates = order[part], near[cluster]
        here = slice(len(own))
        # mode="clip" avoids the copy that checking the positions makes.
        np.take(X, own, axis=0, out=rows[here], mode="clip")
        closeness = np.matmul(rows[here], centers[candidates].T, out=scores[here])
        closeness -= half_norms[candidates]
        nearest[own] = candidates[closeness.argmax(axis=1)]


def _half_norms(centers: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", centers, centers) / 2


def share_work(work: Callable[[Iterator[Item]], None], items: Sequence[Item], threads: int) -> None:
    """Call ``work`` in each thread, this one included, with an iterator over the items that are left."""
    # A list iterator may be advanced from several threads.
    left = iter(list(items))
    helpers = min(threads, len(items)) - 1
    with one_blas_thread():
        if helpers < 1:
            work(left)
            return
        pool = _thread_pool(os.getpid(), threads - 1)
        tasks = [pool.submit(work, left) for _ in range(helpers)]
        try:
            work(left)
        finally:
            # A task that cannot be cancelled has begun.
            for task in [task for task in tasks if not task.cancel()]:
                task.result()


@cache
def _thread_pool(pid: int, threads: int) -> ThreadPoolExecutor:
    """Return threads that stay between steps; a forked process has none of its parent's and gets its own."""
    return ThreadPoolExecutor(threads, thread_name_prefix="c2tc-kernel")
