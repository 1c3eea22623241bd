"""The rows of one class, ready to be clustered at any number of clusters.

Knows which rows are equal, merges them into weighted rows when that pays, and starts large jobs on a sample. Everything
above this file asks for "this class in k clusters" and gets a partition with no empty cluster, wherever the rows are
and whoever computes.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from c2tc_pipeline.clustering.blocks import Block, cut_blocks, rows_per_block
from c2tc_pipeline.clustering.engine import Engine
from c2tc_pipeline.clustering.equal_rows import EqualRows, find_equal_rows, find_few_distinct, rarely_equal
from c2tc_pipeline.clustering.executor import LOCAL, Executor
from c2tc_pipeline.clustering.lloyd import KMeansResult, lloyd
from c2tc_pipeline.clustering.relocation import relocate_centers
from c2tc_pipeline.clustering.row_numbers import looked_up
from c2tc_pipeline.clustering.row_source import HeldRows, RowSource, rows_of
from c2tc_pipeline.clustering.seeding import extend_centers

# Merging costs a copy of the distinct rows; below this share of distinct rows the saved distances repay it.
_MERGE_BELOW = 0.7
# Distinct rows of a class of several blocks are merged if they and their hashes need no more memory than this.
_MERGED_BYTES = 256 * 2**20
_HASH_BYTES = 24
# A start is worked out on this many rows per centre: seeding, relocation and the first, largest moves need no more.
_START_ROWS_PER_CENTER = 24
_START_ROWS_LEAST = 5_000
# For very many centres the sample grows more slowly, or the start would cost more than the Lloyd steps that it saves.
_START_ROWS_MOST = 20_000
_START_ROWS_PER_CENTER_LEAST = 6
# Lloyd goes on on ever larger samples, each so many times the one before: steps on a quarter of the rows bring centres
# nearly where steps on all of them would. On Covertype's two large classes 10 full steps are left instead of 25.
_GROWTH = 4
_GROWN_TOL = 1e-3
# Lloyd on all rows stops at a step that lowers the loss by less than this share. Where a step costs fewer
# multiplications than a dear one, it may gain less in proportion: small classes settle for good in no time, large ones
# stop when most is gained.
_SETTLED_TOL = 1e-3
_SETTLED_TOL_LEAST = 1e-5
_DEAR_STEP = 2_000_000_000

Value = TypeVar("Value")


class ClassRows:
    """The encoded rows of one class.

    Parameters
    ----------
    X : ndarray of shape (n, d) or RowSource
        The rows, C-contiguous; not copied and not changed. Those of a memory-mapped file are read a block at a time.
    engine : Engine
        What computes the Lloyd steps.
    executor : Executor
        Where they are computed.

    Examples
    --------
    >>> from c2tc_pipeline.clustering.engine import make_engine
    >>> X = np.array([[0.0], [0.0], [0.0], [1.0]], dtype=np.float32)
    >>> rows = ClassRows(X, make_engine("cpu"))
    >>> rows.distinct, rows.cluster(3).counts.tolist()
    (2, [2.0, 1.0, 1.0])
    """

    def __init__(self, X: np.ndarray | RowSource, engine: Engine, executor: Executor = LOCAL) -> None:
        self.source = rows_of(X)
        self.engine = engine
        self.executor = executor

    def __len__(self) -> int:
        return len(self.source)

    def sample(self, positions: np.ndarray) -> ClassRows:
        """Return copies of some rows as a class of their own."""
        return ClassRows(self.source.take(positions), self.engine, self.executor)

    @cached_property
    def equal_rows(self) -> EqualRows | None:
        """Which rows are equal; None where a class of several blocks has too many distinct rows to tell."""
        if len(self) <= rows_per_block(self.source.shape[1], self.source.dtype):
            return find_equal_rows(self.source.read())
        row_bytes = self.source.shape[1] * self.source.dtype.itemsize + _HASH_BYTES
        return find_few_distinct(self.source, _MERGED_BYTES // row_bytes)

    @cached_property
    def _rarely_equal(self) -> bool:
        return "equal_rows" not in self.__dict__ and rarely_equal(self.source)

    @property
    def distinct(self) -> int:
        """Number of distinct rows; where there are too many to tell, that of all rows."""
        return len(self) if self.equal_rows is None else len(self.equal_rows.first)

    def _equal_rows_for(self, k: int) -> EqualRows | None:
        """Return which rows are equal, as far as it matters: to merge them, or where there is a cluster for each."""
        return None if 2 * k < len(self) and self._rarely_equal else self.equal_rows

    def _rows_to_cluster(self, equal: EqualRows | None) -> tuple[RowSource, np.ndarray | None, np.ndarray | None]:
        """Return the rows to cluster, and where equal ones are merged the weights and the first row behind each."""
        if equal is None or len(equal.first) >= _MERGE_BELOW * len(self):
            return self.source, None, None
        return HeldRows(self.source.take(equal.first)), equal.sizes.astype(self.source.dtype), equal.first

    def seeds(self, k: int, rng: np.random.Generator) -> np.ndarray:
        """Return ``k`` rows by k-means++; the first few of them are the seeds of so many clusters."""
        rows, weight, _ = self._rows_to_cluster(self._equal_rows_for(k))
        X = rows.read()
        return extend_centers(X, X[:0], k, rng, weight=weight)

    def start(
        self,
        k: int,
        *,
        init: np.ndarray | None = None,
        seed: int | np.random.SeedSequence = 0,
        max_iter: int = 100,
        relocate: int = 6,
    ) -> np.ndarray | None:
        """Return centres for :meth:`settle` to begin with, worked out on a sample where the class is large.

        It keeps one core busy, so that several classes can be started at once. The parameters are those of
        :meth:`cluster`.
        """
        self._check(k)
        equal = self._equal_rows_for(k)
        if equal is not None and k >= len(equal.first):
            return None
        rows, weight, _ = self._rows_to_cluster(equal)
        if not relocate and len(rows) <= rows_per_block(rows.shape[1], rows.dtype):
            return init
        return self._start(rows, weight, k, init, _seeds(seed)[0], max_iter, relocate)

    def settle(
        self,
        k: int,
        start: np.ndarray | None,
        *,
        seed: int | np.random.SeedSequence = 0,
        max_iter: int = 100,
        tol: float | None = None,
    ) -> KMeansResult:
        """Partition the class into ``k`` non-empty clusters, from what :meth:`start` returned for the same seed."""
        self._check(k)
        equal = self._equal_rows_for(k)
        if equal is not None and k >= len(equal.first):
            return self._split_equal_rows(k, equal)
        rows, weight, positions = self._rows_to_cluster(equal)
        blocks = cut_blocks(rows, weight, positions)
        if tol is None:
            tol = settled_tolerance(len(rows), rows.shape[1], k)
        if len(blocks) > 1:
            assert start is not None
            result = lloyd(self.engine, blocks, start, executor=self.executor, max_iter=max_iter, tol=tol)
        else:
            result = self._call(_fit, self.engine, blocks[0], k, start, _seeds(seed)[1], max_iter, tol)
        if weight is None or equal is None:
            return result
        return replace(result, labels=looked_up(result.labels, equal.group))

    def cluster(
        self,
        k: int,
        *,
        init: np.ndarray | None = None,
        seed: int | np.random.SeedSequence = 0,
        max_iter: int = 100,
        tol: float | None = None,
        relocate: int = 6,
    ) -> KMeansResult:
        """Partition the class into ``k`` non-empty clusters.

        Parameters
        ----------
        k : int
            Number of clusters, from 1 to the number of rows.
        init, seed, max_iter
            As in :meth:`Engine.fit`.
        tol : float, optional
            As in :meth:`Engine.fit`; by default smaller where steps cost less, see :func:`settled_tolerance`.
        relocate : int
            Rounds of relocation on a sample before Lloyd sees all rows; 0 goes straight to Lloyd, unless the class has
            several blocks: these begin on a sample in any case.
        """
        start = self.start(k, init=init, seed=seed, max_iter=max_iter, relocate=relocate)
        return self.settle(k, start, seed=seed, max_iter=max_iter, tol=tol)

    def _check(self, k: int) -> None:
        if not 1 <= k <= len(self):
            raise ValueError(f"A class of {len(self)} rows cannot be cut into {k} clusters.")

    def _call(self, function: Callable[..., Value], engine: Engine, *arguments: Any) -> Value:
        """Compute something in one go, wherever this class is computed."""
        return self.executor.call(function, engine, *arguments, device=engine.device)

    def _start(
        self,
        rows: RowSource,
        weight: np.ndarray | None,
        k: int,
        init: np.ndarray | None,
        seed: np.random.SeedSequence,
        max_iter: int,
        rounds: int,
    ) -> np.ndarray:
        """Return good centres, worked out on a sample of the rows when the class is large."""
        pick_seed, *fit_seeds = seed.spawn(3)
        size = max(
            _START_ROWS_LEAST, _START_ROWS_PER_CENTER_LEAST * k, min(_START_ROWS_PER_CENTER * k, _START_ROWS_MOST)
        )
        sizes: list[int] = []
        # A sample is held in memory; one of the size of a block is large enough for any class.
        while 2 * size < len(rows) and (not sizes or size <= rows_per_block(rows.shape[1], rows.dtype)):
            sizes.append(size)
            size *= _GROWTH
            if self.engine.looks_around(size, k):
                # Steps among near centres are cheap on all rows, too.
                break
        if sizes:
            picked = np.random.default_rng(pick_seed).choice(len(rows), size=sizes[-1], replace=False)
            # A smaller sample is the beginning of the larger ones, so that there is one copy of the largest.
            for start, stop in itertools.pairwise([0, *sizes]):
                picked[start:stop].sort()
            rows, weight = HeldRows(rows.take(picked)), None if weight is None else weight[picked]
        sample = Block(rows, weight=weight)
        return self._call(_good_start, self.engine.alone(), sample, sizes, k, init, fit_seeds, max_iter, rounds)

    def _split_equal_rows(self, k: int, equal: EqualRows) -> KMeansResult:
        """Cut groups of equal rows into ``k`` clusters of loss zero: one each, the rest to the largest groups."""
        sizes = equal.sizes
        distinct = len(equal.first)
        pieces = np.ones(distinct, dtype=np.int64)
        # A heap, because a ratio of 1 on a table with many duplicates asks for as many pieces as there are rows.
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
        centers = np.repeat(self.source.take(equal.first), pieces, axis=0)
        # The members of a piece are those of its group at every so many places, beginning with this one.
        piece = np.arange(k) - np.repeat(offsets, pieces)
        nearest = order[np.repeat(starts, pieces) + piece]
        return KMeansResult(
            centers=centers,
            inertia=0.0,
            iterations=0,
            labels=labels,
            counts=np.bincount(labels, minlength=k).astype(np.float64),
            nearest=nearest,
        )


def settled_tolerance(rows: int, columns: int, k: int) -> float:
    """Return the share of the loss that a Lloyd step must gain for another one to follow.

    Parameters
    ----------
    rows, columns, k : int
        Size of the class and number of clusters: what a step costs.

    Examples
    --------
    >>> settled_tolerance(300_000, 54, 200), settled_tolerance(300, 54, 20)
    (0.001, 1e-05)
    """
    return max(_SETTLED_TOL * min(1.0, rows * columns * k / _DEAR_STEP), _SETTLED_TOL_LEAST)


def _fit(
    engine: Engine,
    block: Block,
    k: int,
    init: np.ndarray | None,
    seed: np.random.SeedSequence,
    max_iter: int,
    tol: float,
) -> KMeansResult:
    """Cluster a class of one block."""
    return engine.fit_block(block, k, init=init, seed=seed, max_iter=max_iter, tol=tol)


def _good_start(
    engine: Engine,
    sample: Block,
    sizes: Sequence[int],
    k: int,
    init: np.ndarray | None,
    seeds: Sequence[np.random.SeedSequence],
    max_iter: int,
    rounds: int,
) -> np.ndarray:
    """Cluster the first rows, move centres that are hardly needed to where the loss is, and go on with more rows."""
    rows = sample.open()
    fit_seed, move_seed = seeds
    few, *more = [(rows.X[:size], None if rows.weight is None else rows.weight[:size]) for size in sizes or [len(rows)]]
    first = engine.descend(few[0], k, init=init, seed=fit_seed, weight=few[1], max_iter=max_iter, tol=1e-3)
    rng = np.random.default_rng(move_seed)
    centers = relocate_centers(few[0], first, engine, rng, weight=few[1], rounds=rounds).centers
    for X, weight in more:
        centers = engine.descend(X, k, init=centers, weight=weight, max_iter=max_iter, tol=_GROWN_TOL).centers
    return centers


def _seeds(seed: int | np.random.SeedSequence) -> list[np.random.SeedSequence]:
    """Return the seeds of the start and of what follows it; the same ones whenever they are asked for."""
    entropy = int(seed.generate_state(1, np.uint64)[0]) if isinstance(seed, np.random.SeedSequence) else seed
    return np.random.SeedSequence(entropy).spawn(2)
