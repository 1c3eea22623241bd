"""The rows of one class, ready to be clustered at any number of clusters.

Knows which rows are equal, merges them into weighted rows when that pays, and starts large jobs on a sample. Everything
above this file asks for "this class in k clusters" and gets a partition with no empty cluster.
"""

from __future__ import annotations

import heapq
from functools import cached_property

import numpy as np

from c2tc_pipeline.clustering.engine import Engine, KMeansResult
from c2tc_pipeline.clustering.equal_rows import EqualRows, find_equal_rows
from c2tc_pipeline.clustering.relocation import relocate_centers

# Merging costs a copy of the distinct rows; below this share of distinct rows the saved distances repay it.
_MERGE_BELOW = 0.7
# A start is worked out on this many rows per centre: seeding, relocation and the first, largest moves need no more.
_START_ROWS_PER_CENTER = 24
_START_ROWS_LEAST = 5_000
# For very many centres the sample grows more slowly, or the start would cost more than the Lloyd steps that it saves.
_START_ROWS_MOST = 20_000
_START_ROWS_PER_CENTER_LEAST = 6


class ClassRows:
    """The encoded rows of one class.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows, C-contiguous; not copied and not changed.
    engine : Engine
        What computes the Lloyd steps.

    Examples
    --------
    >>> from c2tc_pipeline.clustering import make_engine
    >>> X = np.array([[0.0], [0.0], [0.0], [1.0]], dtype=np.float32)
    >>> rows = ClassRows(X, make_engine("cpu"))
    >>> rows.distinct, rows.cluster(3).counts.tolist()
    (2, [2.0, 1.0, 1.0])
    """

    def __init__(self, X: np.ndarray, engine: Engine) -> None:
        self.X = X
        self.engine = engine

    def __len__(self) -> int:
        return len(self.X)

    @cached_property
    def equal_rows(self) -> EqualRows:
        """Which rows are equal."""
        return find_equal_rows(self.X)

    @property
    def distinct(self) -> int:
        """Number of distinct rows."""
        return len(self.equal_rows.first)

    @cached_property
    def _merged(self) -> tuple[np.ndarray, np.ndarray] | None:
        if self.distinct >= _MERGE_BELOW * len(self.X):
            return None
        return self.X[self.equal_rows.first], self.equal_rows.sizes.astype(self.X.dtype)

    def cluster(
        self,
        k: int,
        *,
        init: np.ndarray | None = None,
        seed: int | np.random.SeedSequence = 0,
        max_iter: int = 100,
        tol: float = 5e-4,
        relocate: int = 6,
    ) -> KMeansResult:
        """Partition the class into ``k`` non-empty clusters.

        Parameters
        ----------
        k : int
            Number of clusters, from 1 to the number of rows.
        init, seed, max_iter, tol
            As in :meth:`Engine.fit`.
        relocate : int
            Rounds of relocation on a sample before Lloyd sees all rows; 0 goes straight to Lloyd.
        """
        if not 1 <= k <= len(self.X):
            raise ValueError(f"A class of {len(self.X)} rows cannot be cut into {k} clusters.")
        if k >= self.distinct:
            return self._split_equal_rows(k)
        X, weight = self.X, None
        if self._merged is not None:
            X, weight = self._merged
        sample_seed, fit_seed = np.random.SeedSequence(_entropy(seed)).spawn(2)
        if relocate:
            init = self._start(X, weight, k, init, sample_seed, max_iter, relocate)
        result = self.engine.fit(X, k, init=init, seed=fit_seed, weight=weight, max_iter=max_iter, tol=tol)
        if weight is None:
            return result
        labels = result.labels[self.equal_rows.group]
        return KMeansResult(result.centers, labels, result.counts, result.inertia, result.iterations)

    def _start(
        self,
        X: np.ndarray,
        weight: np.ndarray | None,
        k: int,
        init: np.ndarray | None,
        seed: np.random.SeedSequence,
        max_iter: int,
        rounds: int,
    ) -> np.ndarray:
        """Return good centres, worked out on a sample of the rows when the class is large."""
        pick_seed, fit_seed, move_seed = seed.spawn(3)
        size = max(
            _START_ROWS_LEAST, _START_ROWS_PER_CENTER_LEAST * k, min(_START_ROWS_PER_CENTER * k, _START_ROWS_MOST)
        )
        if 2 * size < len(X):
            picked = np.sort(np.random.default_rng(pick_seed).choice(len(X), size=size, replace=False))
            X, weight = X[picked], None if weight is None else weight[picked]
        first = self.engine.fit(X, k, init=init, seed=fit_seed, weight=weight, max_iter=max_iter, tol=1e-3)
        rng = np.random.default_rng(move_seed)
        return relocate_centers(X, first, self.engine, rng, weight=weight, rounds=rounds).centers

    def _split_equal_rows(self, k: int) -> KMeansResult:
        """Cut groups of equal rows into ``k`` clusters of loss zero: one each, the rest to the largest groups."""
        sizes = self.equal_rows.sizes
        pieces = np.ones(self.distinct, dtype=np.int64)
        # A heap, because a ratio of 1 on a table with many duplicates asks for as many pieces as there are rows.
        largest = [(-float(size), group) for group, size in enumerate(sizes)]
        heapq.heapify(largest)
        for _ in range(k - self.distinct):
            widest = largest[0][1]
            pieces[widest] += 1
            heapq.heapreplace(largest, (-sizes[widest] / pieces[widest], widest))
        offsets = np.concatenate([[0], np.cumsum(pieces)[:-1]])
        group = self.equal_rows.group
        order = np.argsort(group, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        rank = np.empty(len(group), dtype=np.int64)
        rank[order] = np.arange(len(group)) - np.repeat(starts, sizes)
        labels = (offsets[group] + rank % pieces[group]).astype(np.int32)
        centers = np.repeat(self.X[self.equal_rows.first], pieces, axis=0)
        return KMeansResult(centers, labels, np.bincount(labels, minlength=k).astype(np.float64), 0.0, 0)


def _entropy(seed: int | np.random.SeedSequence) -> int:
    if isinstance(seed, np.random.SeedSequence):
        return int(seed.generate_state(1, np.uint64)[0])
    return seed
