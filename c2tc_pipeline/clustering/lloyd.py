"""Lloyd's algorithm with momentum over blocks: each block contributes to the clusters, and sums are added in order.

A class of one block is the special case in which the kernel does the whole step. The functions of a block depend on
their arguments alone, so that any process may run or repeat them; they read rows that are not in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from c2tc_pipeline.clustering.engines import LOCAL, Engine, retry_lost_blocks
from c2tc_pipeline.clustering.kernels import REFRESH_STEPS, Kernel, nearest_neighbours
from c2tc_pipeline.clustering.rows import RowBlock, RowSource, release_pages, row_array
from c2tc_pipeline.clustering.sums import ClusterSums, cluster_sums, moved_sums, own_distances

# Share of a step by which centres move further. Lloyd converges slowly along long valleys: on classes of Jannis and
# Airlines 10 to 15 such steps reach what 50 plain ones reach, and end at 0.1 to 0.3 % less loss.
_MOMENTUM = 0.85

# The clusters of a block's rows, and what the rows contribute to them.
Labelled = tuple[np.ndarray, ClusterSums]


@dataclass(frozen=True, kw_only=True)
class Descent:
    """Centres (k, d) after some Lloyd steps, and their loss, without the clusters of the rows."""

    centers: np.ndarray
    inertia: float
    iterations: int


@dataclass(frozen=True, kw_only=True)
class ClassClusters(Descent):
    """The clusters of a class: none is empty, every centre is the mean of its members, and inertia is in float64.

    ``labels`` has the int32 cluster of each row, ``counts`` the total weight of each cluster, and ``nearest`` the
    position of the first member with the smallest distance to the mean.
    """

    labels: np.ndarray
    counts: np.ndarray
    nearest: np.ndarray


def lloyd(
    kernel: Kernel,
    blocks: Sequence[RowBlock],
    centers: np.ndarray,
    *,
    engine: Engine = LOCAL,
    max_iter: int = 100,
    tol: float = 1e-4,
) -> ClassClusters:
    """Cluster the rows of some blocks from given centres, until a step lowers the loss by less than a share ``tol``."""
    if len(blocks) == 1:
        return _OneBlock(kernel, blocks[0]).cluster(centers, max_iter, tol)
    # From the start, because steps among neighbours depend on the labels before: the same bytes.
    return retry_lost_blocks(lambda: _Blocks(kernel, blocks, engine).cluster(centers, max_iter, tol))


def descend(
    kernel: Kernel,
    X: np.ndarray,
    centers: np.ndarray,
    *,
    weight: np.ndarray | None = None,
    max_iter: int = 100,
    tol: float = 1e-4,
) -> Descent:
    """Take the steps of :func:`lloyd` without its final assignment; the loss, from sums, is that of the last step."""
    return _descend(_OneBlock(kernel, RowBlock(RowSource(X), weight=weight)), centers, max_iter, tol)


def _descend(rows: _Blocks, centers: np.ndarray, max_iter: int, tol: float) -> Descent:
    """Take steps with momentum, and a plain step from the best means so far where the loss rose."""
    best = centers
    weights: np.ndarray | None = None
    least = np.inf
    steps = 0
    while steps < max_iter:
        steps += 1
        plain = centers is best
        means, counts, power = rows.update(centers)
        inertia = power - float(counts @ np.einsum("ij,ij->i", means, means, dtype=np.float64))
        if inertia > least and not plain:
            centers = best
            continue
        gained = least - inertia
        if gained < 0:
            break
        centers = means if weights is None else _extrapolate(means, counts, best, weights)
        best, weights, least = means, counts, inertia
        if gained <= tol * inertia:
            break
    return Descent(centers=best, inertia=least, iterations=steps)


def _extrapolate(means: np.ndarray, counts: np.ndarray, before: np.ndarray, counts_before: np.ndarray) -> np.ndarray:
    """Move means further along their step, except those of clusters that are new or have one row."""
    steady = (np.minimum(counts, counts_before) > 1) & (np.abs(counts - counts_before) <= counts_before / 2)
    step = np.where(steady[:, None], means - before, np.zeros((), means.dtype))
    return means + np.asarray(_MOMENTUM, means.dtype) * step


class _Blocks:
    """Steps over the rows of several blocks."""

    def __init__(self, kernel: Kernel, blocks: Sequence[RowBlock], engine: Engine) -> None:
        self.kernel = kernel
        self.engine = engine
        self.lengths = [len(block) for block in blocks]
        self.dtype = blocks[0].rows.dtype
        self.placed = engine.place(blocks)
        # The squared norms of the rows do not change; the first step computes them.
        self._power = math.nan
        self._before: list[Any] | None = None
        self._near, self._neighbour_steps = np.empty(0), 0

    def update(self, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Do one step; return the new centres, the weight of each cluster and the rows' squared norms."""
        labelled = self._step(centers)
        sums = self._total(labelled)
        updated = sums.means().astype(self.dtype)
        empty = np.flatnonzero(sums.counts <= 0)
        if len(empty):
            updated[empty] = self._farthest(labelled, centers, len(empty))[1][: len(empty)]
        if math.isnan(self._power):
            self._power = sums.power
        return updated, sums.counts, self._power

    def _step(self, centers: np.ndarray) -> list[Any]:
        """Assign rows in full, or among the neighbours of the centres that they have."""
        if not self.kernel.uses_neighbours(sum(self.lengths), len(centers)):
            return self._assign(centers)
        if self._before is None:
            self._before = self._assign(centers)
            return self._before
        if self._neighbour_steps % REFRESH_STEPS == 0:
            self._near = nearest_neighbours(centers)
        self._neighbour_steps += 1
        shared = (self.kernel, centers, self._near)
        self._before = self._map(assign_among, self.placed, self._before, shared=shared)
        return self._before

    def _assign(self, centers: np.ndarray) -> list[Any]:
        return self._map(assign, self.placed, shared=(self.kernel, centers, math.isnan(self._power)))

    def cluster(self, centers: np.ndarray, max_iter: int, tol: float) -> ClassClusters:
        """Take steps, then assign every row in full, fill empty clusters, and measure the clusters."""
        done = _descend(self, centers, max_iter, tol)
        centers = done.centers
        self._before = None
        labelled = self._assign(centers)
        sums = self._total(labelled)
        if (sums.counts <= 0).any():
            labelled = self._fill_empty(labelled, centers)
            sums = self._total(labelled)
        means = sums.means()
        inertia, least, nearest = zip(*self._fetch_map(measure, self.placed, labelled, shared=(means,)), strict=True)
        tied = np.stack(least) == np.min(least, axis=0)
        return ClassClusters(
            centers=means.astype(self.dtype),
            labels=self._labels(labelled),
            counts=sums.counts,
            inertia=reduce(add, inertia),
            iterations=done.iterations,
            nearest=np.where(tied, nearest, np.iinfo(np.int64).max).min(axis=0),
        )

    def _labels(self, labelled: list[Any]) -> np.ndarray:
        labels = row_array(sum(self.lengths))
        end = 0
        for handle, length in zip(labelled, self.lengths, strict=True):
            labels[end : end + length] = self.engine.fetch([handle], 0)[0]
            release_pages(labels)
            end += length
        return labels

    def _fill_empty(self, labelled: list[Any], centers: np.ndarray) -> list[Any]:
        """Give each empty cluster a row of its own."""
        sizes = reduce(add, self._fetch_map(cluster_sizes, labelled))
        empty = np.flatnonzero(sizes == 0)
        # A row is skipped only if its cluster has no other, so this many are enough.
        labels, _, block, position = self._farthest(labelled, centers, len(empty) + len(sizes))
        chosen = rows_for_empty_clusters(sizes, labels)
        moves = [
            (position[chosen[block[chosen] == number]], empty[: len(chosen)][block[chosen] == number])
            for number in range(len(self.lengths))
        ]
        return self._map(relabel, self.placed, labelled, moves)

    def _farthest(
        self, labelled: list[Any], centers: np.ndarray, count: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows farthest from their centres: cluster, row, block number and position in the block."""
        found = self._fetch_map(farthest_rows, self.placed, labelled, shared=(centers, count))
        distances, labels, rows, positions = (np.concatenate(column) for column in zip(*found, strict=True))
        block = np.repeat(np.arange(len(found)), [len(part[0]) for part in found])
        order = np.argsort(-distances, kind="stable")[:count]
        return labels[order], rows[order], block[order], positions[order]

    def _total(self, labelled: list[Any]) -> ClusterSums:
        return reduce(add, self.engine.fetch(labelled, 1))

    def _map(self, function: Any, *columns: Sequence[Any], shared: Sequence[Any] = ()) -> list[Any]:
        return self.engine.map(function, *columns, shared=shared, device=self.kernel.device)

    def _fetch_map(self, function: Any, *columns: Sequence[Any], shared: Sequence[Any] = ()) -> list[Any]:
        return self.engine.fetch(self._map(function, *columns, shared=shared))


class _OneBlock(_Blocks):
    """Steps over a single block, which the kernel loads once."""

    def __init__(self, kernel: Kernel, block: RowBlock) -> None:
        super().__init__(kernel, [block.open()], LOCAL)
        X, weight = self.placed[0].rows.read(), block.weight
        self._rows = kernel.load(X, weight)
        norms = np.einsum("ij,ij->i", X, X)
        self._power = float(norms.sum(dtype=np.float64) if weight is None else norms @ weight.astype(np.float64))

    def update(self, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        return *self.kernel.update(self._rows, centers), self._power

    def _assign(self, centers: np.ndarray) -> list[Any]:
        labels = self.kernel.assign(self._rows, centers)
        block = self.placed[0]
        return [(labels, cluster_sums(block.rows.read(), labels, len(centers), block.weight, power=False))]

    def _labels(self, labelled: list[Any]) -> np.ndarray:
        return np.asarray(labelled[0][0])


def assign(block: RowBlock, kernel: Kernel, centers: np.ndarray, power: bool = True) -> Labelled:
    """Assign the rows of a block to their nearest centres."""
    X = block.rows.read()
    labels = kernel.assign(kernel.load(X, block.weight), centers)
    return labels, cluster_sums(X, labels, len(centers), block.weight, power=power)


def assign_among(block: RowBlock, before: Labelled, kernel: Kernel, centers: np.ndarray, near: np.ndarray) -> Labelled:
    """Assign the rows of a block among the neighbours of the centres that they had."""
    X = block.rows.read()
    labels = kernel.assign_among(X, before[0], centers, near)
    return labels, moved_sums(X, block.weight, *before, labels)


def farthest_rows(
    block: RowBlock, labelled: Labelled, centers: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return squared distance, cluster, row and position of the rows farthest from their centres."""
    X = block.rows.read()
    distances = own_distances(X, labelled[0], centers)
    order = np.argsort(-distances, kind="stable")[:count]
    return distances[order], labelled[0][order], X[order], order


def cluster_sizes(labelled: Labelled) -> np.ndarray:
    """Return the number of rows in each cluster, whatever their weights."""
    return np.bincount(labelled[0], minlength=len(labelled[1].counts))


def relabel(block: RowBlock, labelled: Labelled, moves: tuple[np.ndarray, np.ndarray]) -> Labelled:
    """Move the rows at some positions of the block to other clusters."""
    positions, clusters = moves
    if not len(positions):
        return labelled
    labels = labelled[0].copy()
    labels[positions] = clusters
    return labels, cluster_sums(block.rows.read(), labels, len(labelled[1].counts), block.weight)


def measure(block: RowBlock, labelled: Labelled, means: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the loss around the means, and for each cluster the smallest squared distance and that row's position."""
    labels = labelled[0]
    distances = own_distances(block.rows.read(), labels, means)
    inertia = float(distances.sum() if block.weight is None else distances @ block.weight.astype(np.float64))
    least = np.full(len(means), np.inf)
    np.minimum.at(least, labels, distances)
    tied = np.flatnonzero(distances == least[labels])
    nearest = np.full(len(means), np.iinfo(np.int64).max)
    np.minimum.at(nearest, labels[tied], block.class_positions(tied))
    return inertia, least, nearest


def rows_for_empty_clusters(sizes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Choose a row for each empty cluster, the first ones whose clusters have another row."""
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
