"""Lloyd's algorithm with momentum, over blocks: each says what it adds to the clusters, and sums are added in order.

A class of one block is the special case in which the processor does the whole step in one go. The loop, its stopping
rule, the repair of empty clusters and what is measured in the end are written once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from c2tc_pipeline.clustering import block_tasks
from c2tc_pipeline.clustering.blocks import Block, OpenBlock
from c2tc_pipeline.clustering.executor import LOCAL, Executor, LostBlocks
from c2tc_pipeline.clustering.partition import PartitionSums
from c2tc_pipeline.clustering.row_numbers import let_go, row_numbers

if TYPE_CHECKING:
    from c2tc_pipeline.clustering.engine import Engine

# How often a class is begun again when its blocks got lost with the workers that had them.
_TRIES = 3
# The share of a step's way that centres go further before the next one. Lloyd creeps along long valleys: on classes of
# Jannis and Airlines such steps reach after 10 to 15 what plain ones reach after 50, and end at 0.1 to 0.3 % less loss.
_MOMENTUM = 0.85


@dataclass(frozen=True, kw_only=True)
class Descent:
    """Where Lloyd's steps led: enough to go on from, without knowing which row is in which cluster.

    Parameters
    ----------
    centers : ndarray of shape (k, d)
        Means of the clusters, in the precision of the rows.
    inertia : float
        Within-cluster sum of squares.
    iterations : int
        Lloyd steps taken.
    """

    centers: np.ndarray
    inertia: float
    iterations: int


@dataclass(frozen=True, kw_only=True)
class KMeansResult(Descent):
    """A partition of rows: every cluster has a member, every centre is the mean of its members.

    The inertia is computed in float64.

    Parameters
    ----------
    centers, inertia, iterations
        As for :class:`Descent`.
    labels : ndarray of int32
        The cluster of each row.
    counts : ndarray of shape (k,)
        Total weight of each cluster.
    nearest : ndarray of int of shape (k,)
        The member next to each mean; of several the first.
    """

    labels: np.ndarray
    counts: np.ndarray
    nearest: np.ndarray


def lloyd(
    engine: Engine,
    blocks: Sequence[Block | OpenBlock],
    centers: np.ndarray,
    *,
    executor: Executor = LOCAL,
    max_iter: int = 100,
    tol: float = 1e-4,
) -> KMeansResult:
    """Cluster the rows of some blocks, beginning with given centres.

    Parameters
    ----------
    engine : Engine
        Computes distances.
    blocks : sequence of Block
        All rows; several blocks are read when they are needed.
    centers : ndarray of shape (k, d)
        Where to begin, in the precision of the rows; at most as many as there are distinct rows.
    executor : Executor
        Computes what several blocks contribute; one block is computed here.
    max_iter : int
        Most steps.
    tol : float
        Stop when a step lowers the inertia by less than this share of it.

    Examples
    --------
    >>> from c2tc_pipeline.clustering.engine import make_engine
    >>> from c2tc_pipeline.clustering.row_source import HeldRows
    >>> rows = HeldRows(np.array([[0.0], [0.2], [1.0], [1.2]], dtype=np.float32))
    >>> halves = [Block(rows.part(0, 2)), Block(rows.part(2, 4), first=2)]
    >>> done = lloyd(make_engine("cpu"), halves, np.array([[0.0], [1.0]], dtype=np.float32))
    >>> done.labels.tolist(), done.nearest.tolist(), round(done.inertia, 4)
    ([0, 0, 1, 1], [0, 2], 0.04)
    """
    if len(blocks) == 1:
        return _settled(_OneBlock(engine, blocks[0]), centers, max_iter, tol)
    for further in reversed(range(_TRIES)):
        try:
            return _settled(_Blocks(engine, blocks, executor), centers, max_iter, tol)
        except LostBlocks:
            # From the beginning, since rows may look at the centres around those that they had: the same bytes.
            if not further:
                raise
    raise AssertionError("There is one try at least.")


def descend(
    engine: Engine, block: OpenBlock, centers: np.ndarray, *, max_iter: int = 100, tol: float = 1e-4
) -> Descent:
    """Take the steps of :func:`lloyd` on one block, and leave it at that: nobody asks for the clusters of its rows.

    That saves a last assignment and what is measured after it. The inertia is that of the last step, from sums, whose
    rounding is some 1e-7 of the rows' own squares.
    """
    return _descend(_OneBlock(engine, block), centers, max_iter, tol)


def _settled(rows: _Blocks, centers: np.ndarray, max_iter: int, tol: float) -> KMeansResult:
    """Take steps, and say which row is where in the end."""
    done = _descend(rows, centers, max_iter, tol)
    return rows.settle(done.centers, done.iterations)


def _descend(rows: _Blocks, centers: np.ndarray, max_iter: int, tol: float) -> Descent:
    """Take steps with momentum, and a plain one from the best means so far wherever momentum went too far."""
    best = centers
    weights: np.ndarray | None = None
    least = np.inf
    steps = 0
    while steps < max_iter:
        steps += 1
        plain = centers is best
        means, counts, power = rows.update(centers)
        # The step's own inertia for free: around their means, rows keep what the means do not explain.
        inertia = power - float(counts @ np.einsum("ij,ij->i", means, means, dtype=np.float64))
        if inertia > least and not plain:
            centers = best
            continue
        gained = least - inertia
        if gained < 0:
            break
        centers = means if weights is None else _ahead(means, counts, best, weights)
        best, weights, least = means, counts, inertia
        if gained <= tol * inertia:
            break
    return Descent(centers=best, inertia=least, iterations=steps)


def _ahead(means: np.ndarray, counts: np.ndarray, before: np.ndarray, counts_before: np.ndarray) -> np.ndarray:
    """Return means moved on the way that they came; clusters that are new, or have one row, stay where they are."""
    steady = (np.minimum(counts, counts_before) > 1) & (np.abs(counts - counts_before) <= counts_before / 2)
    way = np.where(steady[:, None], means - before, np.zeros((), means.dtype))
    return means + np.asarray(_MOMENTUM, means.dtype) * way


class _Blocks:
    """The rows of several blocks, and what is done with all of them in one go."""

    def __init__(self, engine: Engine, blocks: Sequence[Block | OpenBlock], executor: Executor) -> None:
        self.engine = engine
        self.executor = executor
        self.lengths = [len(block) for block in blocks]
        self.dtype = blocks[0].dtype
        self.placed = executor.place(blocks)
        # Not a number until the first step has told it; the rows' power does not change.
        self._power = math.nan
        self._before: list[Any] | None = None
        self._around: np.ndarray | None = None
        self._steps = 0

    def update(self, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Do one step and return the new centres, the weight of each cluster and that of the rows' squares."""
        labelled = self._step(centers)
        sums: PartitionSums = reduce(add, self.executor.fetch(labelled, 1))
        updated = sums.means().astype(self.dtype)
        empty = np.flatnonzero(sums.counts <= 0)
        if len(empty):
            # A centre that lost all its rows moves to the worst-served ones and finds its rows in the next step.
            updated[empty] = self._farthest(labelled, centers, len(empty))[2][: len(empty)]
        if math.isnan(self._power):
            self._power = sums.power
        return updated, sums.counts, self._power

    def _step(self, centers: np.ndarray) -> list[Any]:
        """Assign rows in full, or among the centres around those that they have from the step before."""
        if not self.engine.looks_around(sum(self.lengths), len(centers)):
            return self._assigned(centers)
        if self._before is None:
            self._before = self._assigned(centers)
            return self._before
        if self._steps % self.engine.refresh == 0:
            self._around = self.engine.around(centers)
        self._steps += 1
        shared = (self.engine, centers, self._around)
        self._before = self._map(block_tasks.assign_around, self.placed, self._before, shared=shared)
        return self._before

    def _assigned(self, centers: np.ndarray) -> list[Any]:
        """Assign rows in full."""
        return self._map(block_tasks.assign, self.placed, shared=(self.engine, centers, math.isnan(self._power)))

    def settle(self, centers: np.ndarray, steps: int) -> KMeansResult:
        """Assign every row in full, leave no cluster empty, and measure the partition."""
        self._before = None
        labelled = self._assigned(centers)
        sums: PartitionSums = reduce(add, self.executor.fetch(labelled, 1))
        if (sums.counts <= 0).any():
            labelled = self._filled(labelled, centers)
            sums = reduce(add, self.executor.fetch(labelled, 1))
        means = sums.means()
        measured = self._map(block_tasks.measure, self.placed, labelled, shared=(means,))
        inertia, least, nearest = zip(*self.executor.fetch(measured), strict=True)
        # Of the members at the smallest distance the first in the class, whichever block it is in.
        tied = np.stack(least) == np.min(least, axis=0)
        return KMeansResult(
            centers=means.astype(self.dtype),
            labels=self._labels(labelled),
            counts=sums.counts,
            inertia=reduce(add, inertia),
            iterations=steps,
            nearest=np.where(tied, nearest, np.iinfo(np.int64).max).min(axis=0),
        )

    def _labels(self, labelled: list[Any]) -> np.ndarray:
        """Bring the clusters of all rows together, those of one block at a time."""
        labels = row_numbers(sum(self.lengths))
        end = 0
        for handle, length in zip(labelled, self.lengths, strict=True):
            labels[end : end + length] = self.executor.fetch([handle], 0)[0]
            let_go(labels)
            end += length
        return labels

    def _filled(self, labelled: list[Any], centers: np.ndarray) -> list[Any]:
        """Give each empty cluster a row of its own."""
        sizes = reduce(add, self.executor.fetch(self._map(block_tasks.sizes, labelled)))
        # A row is passed over only where its cluster has no other, so as many more as there are clusters are enough.
        empty = np.flatnonzero(sizes == 0)
        _, labels, _, block, position = self._farthest(labelled, centers, len(empty) + len(sizes))
        given = rows_for_empty_clusters(sizes, labels)
        moves = [
            (position[given[block[given] == number]], empty[: len(given)][block[given] == number])
            for number in range(len(self.lengths))
        ]
        return self._map(block_tasks.relabel, self.placed, labelled, moves)

    def _farthest(
        self, labelled: list[Any], centers: np.ndarray, most: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows farthest from their centres: distance, cluster, row, block and position in the block."""
        found = self._map(block_tasks.farthest, self.placed, labelled, shared=(centers, most))
        gaps, labels, rows, positions = zip(*self.executor.fetch(found), strict=True)
        block = np.repeat(np.arange(len(gaps)), [len(g) for g in gaps])
        all_gaps = np.concatenate(gaps)
        order = np.argsort(-all_gaps, kind="stable")[:most]
        columns = (all_gaps, np.concatenate(labels), np.concatenate(rows), block, np.concatenate(positions))
        return tuple(column[order] for column in columns)  # type: ignore[return-value]

    def _map(self, function: Any, *columns: Sequence[Any], shared: Sequence[Any] = ()) -> list[Any]:
        return self.executor.map(function, *columns, shared=shared, device=self.engine.device)


class _OneBlock(_Blocks):
    """The rows of a single block: a step is the processor's own, with nothing to add up."""

    def __init__(self, engine: Engine, block: Block | OpenBlock) -> None:
        super().__init__(engine, [block], LOCAL)
        rows = block.open()
        self.placed = [rows]
        self._rows = engine.load(rows.X, rows.weight)
        self._power = _weighted_power(rows.X, rows.weight)

    def update(self, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        return *self.engine.update(self._rows, centers), self._power

    def _assigned(self, centers: np.ndarray) -> list[Any]:
        # The rows may have been brought to a device; that is done once. So is their power.
        labels = self.engine.assign(self._rows, centers)
        return [block_tasks.label(self.placed[0], labels, len(centers), power=False)]

    def _labels(self, labelled: list[Any]) -> np.ndarray:
        return np.asarray(labelled[0][0])


def rows_for_empty_clusters(sizes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Choose rows for empty clusters, each from a cluster that can spare it.

    Parameters
    ----------
    sizes : ndarray of int
        Rows in each cluster.
    labels : ndarray of int
        The clusters of the rows to choose from, the first choice first.

    Returns
    -------
    ndarray of int
        The chosen rows, one for each empty cluster.

    Examples
    --------
    >>> rows_for_empty_clusters(np.array([1, 2, 0]), np.array([0, 1, 1]))
    array([1])
    """
    sizes = sizes.copy()
    wanted = int((sizes == 0).sum())
    chosen: list[int] = []
    for row, cluster in enumerate(labels):
        if len(chosen) == wanted:
            break
        if sizes[cluster] > 1:
            sizes[cluster] -= 1
            chosen.append(row)
    return np.array(chosen, dtype=np.int64)


def _weighted_power(X: np.ndarray, weight: np.ndarray | None) -> float:
    norms = np.einsum("ij,ij->i", X, X)
    return float(norms.sum(dtype=np.float64) if weight is None else norms @ weight.astype(np.float64))
