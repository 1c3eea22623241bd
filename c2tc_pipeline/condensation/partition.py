"""From encoded rows to a partition of every class: curves, allocation, clustering.

This is the method itself, for rows that are already numbers and already sorted by class. Tables, encoders and files are
the business of the files around it.
"""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np

from c2tc_pipeline.allocation import (
    Allocation,
    AllocationProblem,
    Allocator,
    CurveLosses,
    ExactLosses,
    make_allocator,
    proportional_counts,
)
from c2tc_pipeline.allocation.bound import bound_of_tables
from c2tc_pipeline.clustering import ClassCurve, ClassRows, KMeansResult, MeasuredCurve, make_engine, measure_curves
from c2tc_pipeline.condensation.gamma import GammaScore, check_gamma, choose_gamma
from c2tc_pipeline.condensation.stages import StageClock
from c2tc_pipeline.errors import InputError
from c2tc_pipeline.storage import ContentCache

LOSSES = ("curves", "exact")


@dataclass(frozen=True)
class PartitionSettings:
    """How a table is partitioned.

    Parameters
    ----------
    budget : int
        Condensed rows in all.
    allocation : str or Allocator
        Who splits the budget.
    gamma : float or "auto"
        Exponent of class sizes in the objective; ``"auto"`` is chosen on validation rows.
    losses : {"curves", "exact"}
        Whether allocators read measured curves or run k-means for every question, as the paper does.
    device : str
        Where k-means runs.
    seed : int
        Determines everything random.
    """

    budget: int
    allocation: str | Allocator = "hfils"
    gamma: float | str = 0.25
    losses: str = "curves"
    device: str = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        make_allocator(self.allocation)
        if self.losses not in LOSSES:
            raise InputError(f"Losses {self.losses!r} are unknown; choose one of: {', '.join(LOSSES)}.")
        if not isinstance(self.seed, Integral) or self.seed < 0:
            raise InputError(f"random_state is {self.seed!r}, but must be a whole number that is not negative.")


@dataclass(frozen=True)
class ClassPartitions:
    """The partition of every class, and how it came about.

    Parameters
    ----------
    allocation : Allocation
        The split of the budget. Objective and bound are measured: the objective over all rows after clustering, the
        bound for curves that pass through what was measured.
    results : list of KMeansResult
        The partition of each class, the largest clusters first.
    curves : list of ClassCurve or None
        The loss curves; None when losses were exact.
    curves_cached, curves_damaged : bool
        Whether the curves came from the cache, and whether a damaged entry had to be replaced.
    gamma_scores : list of GammaScore
        What each gamma scored; empty when gamma was given.
    gamma_trials : int
        K-means runs that the choice of gamma took.
    """

    allocation: Allocation
    results: list[KMeansResult]
    curves: list[ClassCurve] | None
    curves_cached: bool = False
    curves_damaged: bool = False
    gamma_scores: list[GammaScore] = field(default_factory=list)
    gamma_trials: int = 0


@dataclass(frozen=True)
class ClassOrder:
    """Rows in the order of their classes.

    Parameters
    ----------
    classes : ndarray
        The class values, sorted.
    codes : ndarray of int
        The class number of each row, in the rows' own order.
    order : ndarray of int
        The rows sorted by class, otherwise in their own order.
    edges : ndarray of int
        Where each class begins in ``order``, and the end.

    Examples
    --------
    >>> by_class = ClassOrder.of(np.array(["b", "a", "b"]))
    >>> by_class.order.tolist(), by_class.edges.tolist()
    ([1, 0, 2], [0, 1, 3])
    """

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


def partition_classes(
    X: np.ndarray,
    edges: np.ndarray,
    settings: PartitionSettings,
    *,
    validation: tuple[np.ndarray, np.ndarray] | None = None,
    cache: ContentCache | None = None,
    clock: StageClock | None = None,
) -> ClassPartitions:
    """Partition every class of a table.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Encoded rows sorted by class, C-contiguous, float32 or float64.
    edges : ndarray of int of shape (classes + 1,)
        Where each class begins, and the end.
    settings : PartitionSettings
        Budget, allocator, gamma, seed.
    validation : tuple of (rows, class numbers), optional
        Rows for choosing gamma; without them a tenth of ``X`` is kept aside for that choice.
    cache : ContentCache, optional
        Where loss curves are kept.
    clock : StageClock, optional
        Times the stages.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((60, 2), dtype=np.float32)
    >>> done = partition_classes(X, np.array([0, 40, 60]), PartitionSettings(budget=6))
    >>> int(done.allocation.counts.sum()), sum(len(result.centers) for result in done.results)
    (6, 6)
    """
    clock = clock or StageClock()
    engine = make_engine(settings.device)
    classes = [ClassRows(X[a:b], engine) for a, b in itertools.pairwise(edges)]
    sizes = np.diff(edges)
    measured: list[MeasuredCurve] | None = None
    cached = damaged = False
    losses: CurveLosses | ExactLosses = ExactLosses(classes, seed=settings.seed)
    if settings.losses == "curves":
        with clock.stage("curves") as tick:
            largest = _largest_of_interest(sizes, settings.budget)
            found = measure_curves(classes, largest.tolist(), seed=settings.seed, cache=cache, progress=tick)
        measured, cached, damaged = found.value, found.hit, found.damaged
        losses = CurveLosses([m.curve for m in measured])
    allocator = make_allocator(settings.allocation)
    scores: list[GammaScore] = []
    trials = 0
    with clock.stage("allocate"):
        gamma = settings.gamma
        if isinstance(gamma, str):
            gamma, scores, trials = choose_gamma(
                classes, settings.budget, losses, allocator, validation=validation, seed=settings.seed
            )
        problem = AllocationProblem(sizes, settings.budget, losses, gamma=gamma)
        allocation = allocator.allocate(problem, random_state=settings.seed)
    results = []
    with clock.stage("cluster") as tick:
        for index, (rows, k) in enumerate(zip(classes, allocation.counts.tolist(), strict=True)):
            start = None if measured is None else measured[index].start_for(k)
            seed = np.random.SeedSequence([settings.seed, index, k])
            results.append(_largest_first(rows.cluster(k, init=start, seed=seed)))
            tick(index + 1, len(classes))
    curves = None if measured is None else [m.curve for m in measured]
    allocation = _as_measured(allocation, problem, results)
    return ClassPartitions(allocation, results, curves, cached, damaged, scores, trials)


def _largest_of_interest(sizes: np.ndarray, budget: int) -> np.ndarray:
    """Return how far each curve needs to reach: its proportional share, or twice an equal one, whichever is more."""
    upper = np.minimum(budget - (len(sizes) - 1), sizes)
    return np.minimum(upper, np.maximum(proportional_counts(sizes, budget, upper), 2 * budget // len(sizes)))


def _largest_first(result: KMeansResult) -> KMeansResult:
    """Number clusters by falling weight, ties by first member, so that equal partitions are stored as equal bytes."""
    first = np.full(len(result.counts), len(result.labels))
    np.minimum.at(first, result.labels, np.arange(len(result.labels)))
    order = np.lexsort((first, -result.counts))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return dataclasses.replace(
        result,
        centers=result.centers[order],
        counts=result.counts[order],
        labels=place[result.labels].astype(np.int32),
    )


def _as_measured(allocation: Allocation, problem: AllocationProblem, results: list[KMeansResult]) -> Allocation:
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
