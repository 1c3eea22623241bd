"""Clusters of all classes: as many as the plan gives each class, with means, sizes and members."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from c2tc_pipeline.allocation.optimal import bound_of_tables
from c2tc_pipeline.allocation.problem import Allocation, AllocationProblem, CurveLosses
from c2tc_pipeline.clustering.class_kmeans import ClassKMeans
from c2tc_pipeline.clustering.engines import open_engine
from c2tc_pipeline.clustering.lloyd import ClassClusters
from c2tc_pipeline.clustering.rows import RowSource, lookup, release_pages, row_array, row_chunks
from c2tc_pipeline.clustering.sums import cluster_sums
from c2tc_pipeline.common.stages import StageClock
from c2tc_pipeline.condensation.plan import AllocationPlan, ClusterSettings, class_rows

# Rows read at once to compute means.
_PART_ROWS = 65_536


class SingletonWarning(UserWarning):
    """Some condensed rows stand for one source row each, and so repeat a real record."""


def singleton_message(singletons: int, rows: int) -> str:
    """Return the notice about condensed rows that repeat a source row."""
    verbs = ("stands", "repeats") if singletons == 1 else ("stand", "repeat")
    return (
        f"{singletons} of {rows} condensed rows {verbs[0]} for a single source row and {verbs[1]} it; "
        "choose a smaller ratio if records must not show."
    )


@dataclass(frozen=True)
class Clusters:
    """The clusters of all classes; cluster i is condensed row i."""

    allocation: Allocation
    centers: np.ndarray
    weights: np.ndarray
    labels: np.ndarray
    nearest: np.ndarray

    @classmethod
    def joined(cls, allocation: Allocation, edges: np.ndarray, results: Sequence[ClassClusters]) -> Clusters:
        """Join the clusters of each class."""
        labels = row_array(int(edges[-1]))
        first = 0
        for start, result in zip(edges[:-1].tolist(), results, strict=True):
            for run in row_chunks(len(result.labels)):
                labels[start + run.start : start + run.stop] = result.labels[run] + np.int32(first)
                release_pages(labels)
                release_pages(result.labels)
            first += len(result.centers)
        return cls(
            allocation=allocation,
            centers=np.vstack([result.centers for result in results]),
            weights=np.concatenate([result.counts for result in results]).astype(np.int64),
            labels=labels,
            nearest=np.concatenate([start + result.nearest for start, result in zip(edges[:-1], results, strict=True)]),
        )

    def with_means_of(self, rows: RowSource) -> Clusters:
        """Return the same clusters around their means in other columns of the same rows."""
        sums = np.zeros((len(self.weights), rows.shape[1]))
        start = 0
        for part in rows.parts(_PART_ROWS):
            own = np.asarray(self.labels[start : start + len(part)])
            sums += cluster_sums(part.read(), own, len(sums), power=False).sums
            start += len(part)
        return dataclasses.replace(self, centers=(sums / self.weights[:, None]).astype(rows.dtype))

    @property
    def codes(self) -> np.ndarray:
        """The class number of each cluster."""
        return np.repeat(np.arange(len(self.allocation.counts)), self.allocation.counts)

    @property
    def singletons(self) -> int:
        """Clusters of a single row."""
        return int((self.weights == 1).sum())

    def members(self, places: np.ndarray) -> np.ndarray:
        """Return the clusters of the rows at these positions in rows sorted by class."""
        found = np.asarray(self.labels[places])
        release_pages(self.labels)
        return found

    def repeats(self, rows: RowSource) -> np.ndarray:
        """Return which means equal a row: if any row equals a mean but for rounding, the nearest one does."""
        return equal_but_for_rounding(rows.take(self.nearest), self.centers)


def equal_but_for_rounding(nearest: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return which rows of two arrays are equal within a few units of the last place."""
    tolerance = 4 * np.finfo(centers.dtype).eps * np.abs(centers).max(initial=0.0)
    return np.asarray((np.abs(nearest - centers) <= tolerance).all(axis=1))


@dataclass(frozen=True)
class ClassOrder:
    """Rows in the order of their classes."""

    classes: np.ndarray
    codes: np.ndarray
    order: np.ndarray
    edges: np.ndarray

    @classmethod
    def of(cls, labels: np.ndarray) -> ClassOrder:
        """Sort labelled rows by class."""
        classes, codes = np.unique(labels, return_inverse=True)
        order = np.argsort(codes, kind="stable")
        return cls(classes, codes, order, np.searchsorted(codes[order], np.arange(len(classes) + 1)))


def cluster_classes(
    X: np.ndarray | RowSource,
    edges: np.ndarray,
    plan: AllocationPlan,
    settings: ClusterSettings,
    *,
    clock: StageClock | None = None,
) -> Clusters:
    """Partition every class into as many clusters as a plan gives it."""
    clock = clock or StageClock()
    with open_engine(settings.engine) as engine:
        classes = class_rows(X, edges, settings, engine)
        counts = plan.allocation.counts.tolist()
        seeds = [np.random.SeedSequence([settings.seed, index, k]) for index, k in enumerate(counts)]
        known = [found.start_for(k) for found, k in zip(plan.measured, counts, strict=True)]
        with clock.stage("cluster") as tick:
            starts = engine.together(
                [
                    partial(rows.start, k, init=init, seed=seed)
                    for rows, k, init, seed in zip(classes, counts, known, seeds, strict=True)
                ],
                light=True,
            )
            results = engine.together(
                [
                    partial(_cluster_from, rows, k, start, seed, settings.min_rows)
                    for rows, k, start, seed in zip(classes, counts, starts, seeds, strict=True)
                ],
                tick,
            )
        losses = CurveLosses(plan.measured)
        gamma, least = plan.allocation.gamma, settings.min_rows
        problem = AllocationProblem(np.diff(edges), settings.budget, losses, gamma, least)
        return Clusters.joined(_as_measured(plan.allocation, problem, results), edges, results)


def _cluster_from(
    rows: ClassKMeans, k: int, start: np.ndarray | None, seed: np.random.SeedSequence, least: int
) -> ClassClusters:
    return _largest_first(rows.cluster_from(k, start, seed=seed, min_rows=least))


def _largest_first(result: ClassClusters) -> ClassClusters:
    """Number clusters by falling weight, ties by first member, so that equal clusters are stored as equal bytes."""
    first = np.empty(len(result.counts), dtype=np.int64)
    for run in reversed(list(row_chunks(len(result.labels)))):
        # From the last row to the first, so that the first of a cluster is what stays.
        first[result.labels[run][::-1]] = np.arange(run.stop - 1, run.start - 1, -1)
        release_pages(result.labels)
    order = np.lexsort((first, -result.counts))
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order))
    return dataclasses.replace(
        result,
        centers=result.centers[order],
        counts=result.counts[order],
        labels=lookup(place, result.labels),
        nearest=result.nearest[order],
    )


def _as_measured(allocation: Allocation, problem: AllocationProblem, results: list[ClassClusters]) -> Allocation:
    """Replace the objective by the one measured over all rows, and the bound by one for losses that pass through it."""
    terms = np.array([r.inertia for r in results]) / problem.sizes.astype(np.float64) ** allocation.gamma
    objective = float(terms.sum())
    if allocation.bound is None:
        return dataclasses.replace(allocation, objective=objective)
    tables = []
    for index, (k, term) in enumerate(zip(allocation.counts, terms, strict=True)):
        table = problem.loss_table(index)
        tables.append(table * (term / table[k - 1]) if table[k - 1] > 0 else table)
    bound = min(max(bound_of_tables(tables, problem.budget), 0.0), objective)
    return dataclasses.replace(allocation, objective=objective, bound=bound)
