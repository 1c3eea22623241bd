"""Part ``search``: allocations from shared loss curves against the authors' search, on the same encoded rows.

The authors' HFILS runs a cold k-means for every new (class, k) and shares nothing. Defects of the printed search are
kept: it walks on from proposals that were worse, and its patience counter never resets, so that it ends after
``patience`` proposals.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn.cluster import KMeans

from c2tc_pipeline.allocation.hfils import HfilsAllocator
from c2tc_pipeline.allocation.shares import budget_for_ratio, proportional_counts
from c2tc_pipeline.bench.experiments.spaces import plan_and_cluster
from c2tc_pipeline.bench.speed.measuring import Bench, SpeedRow, all_hold, reaches, spread
from c2tc_pipeline.condensation.encoded import EncodedRows

GAMMA = 0.25
POINTS_PER_CENTROID = 256
"""Training rows per centroid that the authors' k-means library samples by default."""
AUTHORS: dict[str, int | None] = {
    "the authors' search on all rows": None,
    f"the authors' search on {POINTS_PER_CENTROID} rows per centroid": POINTS_PER_CENTROID,
}
"""The references by name, and the rows per centroid that they train on."""

_AIMS = {"hfils": dict(zip(AUTHORS, (40, 8), strict=True)), "optimal": dict(zip(AUTHORS, (40, 10), strict=True))}
_HFILS_AIM_FOR = ("covertype", 0.001)
# Objectives that differ by less are equal but for the order of summation.
_ROUNDING = 1e-6
_PART = "search"


def measure_search(
    tables: dict[str, EncodedRows], bench: Bench, *, ratios: Sequence[float] = (0.001, 0.01)
) -> Iterator[SpeedRow]:
    """Allocate with ours and with the authors' search on every table at every ratio, and average the speed-ups."""
    rows: list[SpeedRow] = []
    for name, encoded in tables.items():
        for ratio in ratios:
            for row in _compare(name, encoded, ratio, bench):
                rows.append(row)
                yield row
    for reference, aim in _AIMS["optimal"].items():
        for what in ("optimal, allocation alone", "optimal, with the final clustering"):
            yield geometric_mean([row for row in rows if (row.what, row.reference) == (what, reference)], aim)


def _compare(name: str, encoded: EncodedRows, ratio: float, bench: Bench) -> Iterator[SpeedRow]:
    ours = {}
    for allocator in _AIMS:
        alone: list[float] = []

        def run(allocator: str = allocator, alone: list[float] = alone) -> float:
            seconds, objective = plan_and_cluster(encoded, ratio, allocation=allocator, gamma=GAMMA)
            alone.append(seconds)
            return objective

        ours[allocator] = (bench.time(run), alone)
    budget = budget_for_ratio(ratio, len(encoded.X), len(encoded.edges) - 1)
    for reference, points in AUTHORS.items():
        bench.report(f"{_PART}, {name} at {100 * ratio:g} %: {reference}, for about {bench.time_limit:g} s at most")
        search = partial(printed_search, np.split(encoded.X, encoded.edges[1:-1]), budget, GAMMA, points=points)
        timed = bench.once(partial(search, time_limit=bench.time_limit, clock=bench.clock))
        found = timed.value
        done = f"{found.proposals} of its proposals, {found.runs} k-means runs"
        for allocator, (own, alone) in ours.items():
            aim = _AIMS[allocator][reference] if (allocator, name, ratio) == ("hfils", *_HFILS_AIM_FOR) else None
            for what, seconds in (("allocation alone", alone), ("with the final clustering", own.times)):
                row = SpeedRow(
                    part=_PART,
                    table=name,
                    ratio=ratio,
                    what=f"{allocator}, {what}",
                    **spread(seconds),
                    reference=reference,
                    reference_seconds=timed.seconds,
                    times_faster=timed.seconds / spread(seconds)["seconds"],
                    at_least=not found.finished,
                    objective=own.value,
                    reference_objective=found.objective,
                    aim="" if aim is None else f"{aim} x, objective no worse",
                    note=done if found.finished else f"the reference was stopped after {done}",
                )
                if aim is not None:
                    row = replace(row, holds=all_hold([reaches(row.times_faster, aim, row.at_least), _no_worse(row)]))
                yield row


def _no_worse(row: SpeedRow) -> bool | None:
    if row.objective is None or row.reference_objective is None:
        return None
    return row.objective <= row.reference_objective * (1 + _ROUNDING)


def geometric_mean(rows: Sequence[SpeedRow], aim: float) -> SpeedRow:
    """Average the speed-ups of rows of the same kind; the aim also needs that no objective is worse."""
    mean = math.exp(sum(math.log(row.times_faster or math.nan) for row in rows) / len(rows))
    at_least = any(row.at_least for row in rows)
    no_worse = [_no_worse(row) for row in rows]
    return SpeedRow(
        part=_PART,
        what=f"{rows[0].what}, geometric mean",
        table=", ".join(dict.fromkeys(row.table for row in rows)),
        repeats=rows[0].repeats,
        reference=rows[0].reference,
        times_faster=mean,
        at_least=at_least,
        aim=f"{aim:g} x, objective no worse in any",
        holds=all_hold([reaches(mean, aim, at_least), *no_worse]),
        note=f"{len(rows)} comparisons, {no_worse.count(False)} with a worse objective",
    )


@dataclass(frozen=True)
class SearchResult:
    """The best allocation of a search; ``objective`` is None when the time ended before the first one was known."""

    objective: float | None
    counts: np.ndarray
    runs: int
    proposals: int
    finished: bool


class _OutOfTime(Exception):
    """The search may not begin another k-means run."""


def printed_search(
    classes: Sequence[np.ndarray],
    budget: int,
    gamma: float,
    *,
    points: int | None = None,
    patience: int = 10,
    seed: int = 0,
    time_limit: float = float("inf"),
    clock: Callable[[], float] = time.perf_counter,
) -> SearchResult:
    """Search for an allocation as printed, with up to 100 iterations of k-means for each loss.

    ``classes`` has the rows of each class; k-means trains on at most ``points`` random rows per centroid, while the
    loss is over all rows. No k-means run begins after ``time_limit`` seconds.
    """
    rng = np.random.default_rng(seed)
    end = clock() + time_limit
    sizes = np.array([len(rows) for rows in classes])
    upper = np.minimum(budget - (len(sizes) - 1), sizes)
    known: dict[tuple[int, int], float] = {}

    def objective(counts: np.ndarray) -> float:
        for index, k in enumerate(counts.tolist()):
            if (index, k) not in known:
                if clock() > end:
                    raise _OutOfTime
                known[index, k] = cold_loss(classes[index], k, points, seed) / float(sizes[index]) ** gamma
        return sum(known[index, k] for index, k in enumerate(counts.tolist()))

    counts = proportional_counts(sizes, budget, upper)
    best: float | None = None
    best_counts, proposals = counts, 0
    step_limit = max(int(np.std(counts)), 1)
    moves = HfilsAllocator()
    try:
        best = objective(counts)
        while proposals < patience:
            proposal = moves.propose(counts, upper, step_limit, rng)
            if proposal is None:
                break
            counts = proposal
            found = objective(counts)
            proposals += 1
            if found < best:
                best, best_counts = found, counts
                step_limit = max(int(step_limit * 0.5), 1)
    except _OutOfTime:
        return SearchResult(best, best_counts, len(known), proposals, finished=False)
    return SearchResult(best, best_counts, len(known), proposals, finished=True)


def cold_loss(rows: np.ndarray, k: int, points: int | None, seed: int) -> float:
    """Return the loss over all rows of a k-means without a warm start, trained on all of them or on a sample."""
    model = KMeans(k, n_init=1, max_iter=100, random_state=seed)
    if points is None or points * k >= len(rows):
        return float(model.fit(rows).inertia_)
    drawn = np.random.default_rng(seed).choice(len(rows), points * k, replace=False)
    return -float(model.fit(rows[drawn]).score(rows))
