"""K-means of one class at any number of clusters, if wished with a minimum number of rows in each.

Equal rows are merged, and large classes start on a sample.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from c2tc_pipeline.clustering.engines import LOCAL, Engine
from c2tc_pipeline.clustering.equal_rows import EqualRows, find_equal_rows, find_few_distinct, rarely_equal
from c2tc_pipeline.clustering.kernels import Kernel
from c2tc_pipeline.clustering.lloyd import ClassClusters, lloyd
from c2tc_pipeline.clustering.rows import RowBlock, RowSource, cut_blocks, lookup, rows_per_block
from c2tc_pipeline.clustering.seeding import extend_centers, start_on_sample
from c2tc_pipeline.clustering.sums import chunks, cluster_sums, nearest_members, own_distances

# Below this share of distinct rows the saved distances repay the copy that merging makes.
_MERGE_BELOW = 0.7
# Distinct rows of a class of several blocks are merged if they and their hashes need no more memory than this.
_MERGED_BYTES = 256 * 2**20
_HASH_BYTES = 24
# Sample rows per centre for seeding, relocation and the first steps. For very many centres the sample grows more
# slowly, or the start would cost more than the Lloyd steps that it saves.
_START_ROWS_PER_CENTER = 24
_MIN_START_ROWS = 5_000
_MAX_START_ROWS = 20_000
_MIN_START_ROWS_PER_CENTER = 6
# Lloyd continues on samples that grow by this factor. On Covertype's two large classes 10 full steps are left of 25.
_GROWTH = 4
# Lloyd on all rows stops at a step that lowers the loss by less than this share, which falls with the cost of a step:
# small classes converge fully, large ones stop when most is gained.
_MAX_TOL = 1e-3
_MIN_TOL = 1e-5
_COSTLY_STEP = 2_000_000_000

Value = TypeVar("Value")
Seed = int | np.random.SeedSequence


class ClassKMeans:
    """K-means of one class's encoded rows (an array or :class:`RowSource`), on a kernel and an engine."""

    def __init__(self, X: np.ndarray | RowSource, kernel: Kernel, engine: Engine = LOCAL) -> None:
        self.source = RowSource.of(X)
        self.kernel = kernel
        self.engine = engine

    def __len__(self) -> int:
        return len(self.source)

    def sample(self, positions: np.ndarray) -> ClassKMeans:
        """Return k-means of copies of some rows."""
        return ClassKMeans(self.source.take(positions), self.kernel, self.engine)

    @cached_property
    def equal_rows(self) -> EqualRows | None:
        """Groups of equal rows; None for a class of several blocks with too many distinct rows."""
        if len(self) <= rows_per_block(self.source):
            return find_equal_rows(self.source.read())
        return find_few_distinct(self.source, _MERGED_BYTES // (self.source.row_bytes + _HASH_BYTES))

    @cached_property
    def _rarely_equal(self) -> bool:
        return "equal_rows" not in self.__dict__ and rarely_equal(self.source)

    @property
    def distinct(self) -> int:
        """Number of distinct rows, or of all rows if that is unknown."""
        return len(self) if self.equal_rows is None else len(self.equal_rows.first)

    def _equal_rows_for(self, k: int) -> EqualRows | None:
        """Return equal rows if they are to be merged, or if each distinct row may get a cluster."""
        if not 1 <= k <= len(self):
            raise ValueError(f"A class of {len(self)} rows cannot be cut into {k} clusters.")
        return None if 2 * k < len(self) and self._rarely_equal else self.equal_rows

    def _merged(self, equal: EqualRows | None) -> tuple[RowSource, np.ndarray | None, np.ndarray | None]:
        """Return the rows to cluster; of merged ones also their weights and first positions."""
        if equal is None or len(equal.first) >= _MERGE_BELOW * len(self):
            return self.source, None, None
        return RowSource(self.source.take(equal.first)), equal.sizes.astype(self.source.dtype), equal.first

    def seeds(self, k: int, rng: np.random.Generator) -> np.ndarray:
        """Return ``k`` rows by k-means++; the first of them are the seeds of fewer clusters."""
        rows, weight, _ = self._merged(self._equal_rows_for(k))
        return extend_centers(rows.read(), None, k, rng, weight=weight)

    def start(
        self, k: int, *, init: np.ndarray | None = None, seed: Seed = 0, max_iter: int = 100, relocate: int = 6
    ) -> np.ndarray | None:
        """Return centres for :meth:`cluster_from`, computed on one core and on a sample of a large class."""
        equal = self._equal_rows_for(k)
        if equal is not None and k >= len(equal.first):
            return None
        rows, weight, _ = self._merged(equal)
        if not relocate and len(rows) <= rows_per_block(rows):
            return init
        pick_seed, *fit_seeds = _seeds(seed)[0].spawn(3)
        size = max(_MIN_START_ROWS, _MIN_START_ROWS_PER_CENTER * k, min(_START_ROWS_PER_CENTER * k, _MAX_START_ROWS))
        sizes: list[int] = []
        # The sample is in memory, and one of the size of a block is enough for any class.
        while 2 * size < len(rows) and (not sizes or size <= rows_per_block(rows)):
            sizes.append(size)
            size *= _GROWTH
            if self.kernel.uses_neighbours(size, k):
                break
        if sizes:
            picked = np.random.default_rng(pick_seed).choice(len(rows), size=sizes[-1], replace=False)
            # A smaller sample is the beginning of the larger one.
            for begin, end in itertools.pairwise([0, *sizes]):
                picked[begin:end].sort()
            rows, weight = RowSource(rows.take(picked)), None if weight is None else weight[picked]
        sample = RowBlock(rows, weight=weight)
        kernel = self.kernel.single_threaded()
        return self._call(start_on_sample, kernel, sample, sizes, k, init, fit_seeds, max_iter, relocate)

    def cluster_from(
        self,
        k: int,
        start: np.ndarray | None,
        *,
        seed: Seed = 0,
        max_iter: int = 100,
        tol: float | None = None,
        min_rows: int = 1,
    ) -> ClassClusters:
        """Return ``k`` clusters of at least ``min_rows`` rows, from what :meth:`start` returned for the same seed."""
        found = self._clusters_from(k, start, seed, max_iter, tol)
        if min_rows == 1 or found.counts.min() >= min_rows:
            return found
        # Rows move all over the class, so that it has to be in memory.
        return enlarge_small_clusters(self.source.read(), found, min_rows, self.kernel)

    def cluster(
        self,
        k: int,
        *,
        init: np.ndarray | None = None,
        seed: Seed = 0,
        max_iter: int = 100,
        tol: float | None = None,
        relocate: int = 6,
    ) -> ClassClusters:
        """Return ``k`` non-empty clusters, starting from ``init`` extended by k-means++.

        ``relocate`` is the number of relocation rounds on a sample; ``tol`` is smaller where steps cost less, see
        :func:`default_tolerance`.
        """
        start = self.start(k, init=init, seed=seed, max_iter=max_iter, relocate=relocate)
        return self.cluster_from(k, start, seed=seed, max_iter=max_iter, tol=tol)

    def _clusters_from(
        self, k: int, start: np.ndarray | None, seed: Seed, max_iter: int, tol: float | None
    ) -> ClassClusters:
        equal = self._equal_rows_for(k)
        if equal is not None and k >= len(equal.first):
            return self._split_equal_rows(k, equal)
        rows, weight, positions = self._merged(equal)
        blocks = cut_blocks(rows, weight, positions)
        if tol is None:
            tol = default_tolerance(len(rows), rows.shape[1], k)
        if len(blocks) > 1:
            assert start is not None
            result = lloyd(self.kernel, blocks, start, engine=self.engine, max_iter=max_iter, tol=tol)
        else:
            result = self._call(cluster_block, self.kernel, blocks[0], k, start, _seeds(seed)[1], max_iter, tol)
        if weight is None or equal is None:
            return result
        return replace(result, labels=lookup(result.labels, equal.group))

    def _call(self, function: Callable[..., Value], kernel: Kernel, *arguments: Any) -> Value:
        return self.engine.call(function, kernel, *arguments, device=kernel.device)

    def _split_equal_rows(self, k: int, equal: EqualRows) -> ClassClusters:
        """Cut groups of equal rows into ``k`` clusters of loss zero: one each, the rest to the largest groups."""
        sizes = equal.sizes
        distinct = len(equal.first)
        pieces = np.ones(distinct, dtype=np.int64)
        # A heap, because a ratio of 1 on a table with many duplicates needs a piece per row.
        largest = [(-float(size), group) for group, size in enumerate(sizes)]
        heapq.heapify(largest)
        for _ in range(k - distinct):
            widest = largest[0][1]
            pieces[widest] += 1
            heapq.heapreplace(largest, (-sizes[widest] / pieces[widest], widest))
        offsets = np.concatenate([[0], np.cumsum(pieces)[:-1]])
        group = equal.group
        order = np.argsort(group, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        rank = np.empty(len(group), dtype=np.int64)
        rank[order] = np.arange(len(group)) - np.repeat(starts, sizes)
        labels = (offsets[group] + rank % pieces[group]).astype(np.int32)
        # The first member of a piece has the rank of the piece in its group.
        piece = np.arange(k) - np.repeat(offsets, pieces)
        return ClassClusters(
            centers=np.repeat(self.source.take(equal.first), pieces, axis=0),
            inertia=0.0,
            iterations=0,
            labels=labels,
            counts=np.bincount(labels, minlength=k).astype(np.float64),
            nearest=order[np.repeat(starts, pieces) + piece],
        )


def default_tolerance(rows: int, columns: int, k: int) -> float:
    """Return the share of the loss that a Lloyd step must gain for another one to follow."""
    return max(_MAX_TOL * min(1.0, rows * columns * k / _COSTLY_STEP), _MIN_TOL)


def cluster_block(
    kernel: Kernel, block: RowBlock, k: int, init: np.ndarray | None, seed: Seed, max_iter: int = 100, tol: float = 1e-4
) -> ClassClusters:
    """Cluster the rows of one block, from centres extended by k-means++."""
    block = block.open()
    start = extend_centers(block.rows.read(), init, k, np.random.default_rng(seed), weight=block.weight)
    return lloyd(kernel, [block], start, max_iter=max_iter, tol=tol)


def _seeds(seed: Seed) -> list[np.random.SeedSequence]:
    """Return the seeds of the start and of what follows; spawned anew, so that they are the same on every call."""
    entropy = int(seed.generate_state(1, np.uint64)[0]) if isinstance(seed, np.random.SeedSequence) else seed
    return np.random.SeedSequence(entropy).spawn(2)


_MAX_STEPS = 20
_MIN_GAIN = 5e-4


def enlarge_small_clusters(X: np.ndarray, start: ClassClusters, min_rows: int, kernel: Kernel) -> ClassClusters:
    """Return as many clusters as before with at least ``min_rows`` rows each; those that have them stay as they are."""
    k = len(start.centers)
    if k * min_rows > len(X):
        raise ValueError(f"{len(X)} rows are too few for {k} clusters of at least {min_rows} rows.")
    if np.bincount(start.labels, minlength=k).min() >= min_rows:
        return start
    rows = kernel.load(X, None)
    centers = start.centers
    best: ClassClusters | None = None
    for steps in range(1, _MAX_STEPS + 1):
        labels = fill_small_clusters(X, centers, kernel.assign(rows, centers), min_rows)
        sums = cluster_sums(X, labels, k)
        means = sums.means()
        distances = own_distances(X, labels, means)
        inertia = float(distances.sum())
        gained = np.inf if best is None else best.inertia - inertia
        centers = means.astype(X.dtype)
        if gained > 0:
            best = ClassClusters(
                centers=centers,
                inertia=inertia,
                iterations=steps,
                labels=labels,
                counts=sums.counts,
                nearest=nearest_members(labels, distances, k),
            )
        if gained <= _MIN_GAIN * inertia:
            break
    assert best is not None
    return best


def fill_small_clusters(X: np.ndarray, centers: np.ndarray, nearest: np.ndarray, min_rows: int) -> np.ndarray:
    """Move rows to clusters with fewer than ``min_rows``, the smallest first: those that add the least to the loss.

    A cluster gives rows only while it keeps ``min_rows``; there are enough if ``k * min_rows`` is at most the number of
    rows.
    """
    labels = nearest.astype(np.int32)
    sizes = np.bincount(labels, minlength=len(centers))
    if sizes.min() >= min_rows:
        return labels
    own = own_distances(X, labels, centers)
    small = np.flatnonzero(sizes < min_rows)
    for cluster in small[np.argsort(sizes[small], kind="stable")].tolist():
        spare = np.flatnonzero(sizes[labels] > min_rows)
        cost = np.empty(len(spare))
        for part in chunks(len(spare), X.shape[1]):
            offsets = X[spare[part]] - centers[cluster].astype(np.float64)
            cost[part] = np.einsum("ij,ij->i", offsets, offsets)
        for place in np.argsort(cost - own[spare], kind="stable").tolist():
            if sizes[cluster] >= min_rows:
                break
            row = spare[place]
            if sizes[labels[row]] > min_rows:
                sizes[labels[row]] -= 1
                sizes[cluster] += 1
                labels[row], own[row] = cluster, cost[place]
    return labels
