"""Part ``search``: allocations read from shared loss curves against the authors' search, on the same encoded rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from c2tc_pipeline.allocation.shares import budget_for_ratio
from c2tc_pipeline.bench.speed.bench import Bench, Timed, spread
from c2tc_pipeline.bench.speed.printed_search import POINTS_A_CENTROID, SearchResult, printed_search
from c2tc_pipeline.bench.speed.row import SpeedRow, reaches
from c2tc_pipeline.bench.speed.tables import ClassRows, SpeedTable
from c2tc_pipeline.condensation.clusters import cluster_classes
from c2tc_pipeline.condensation.plan import PartitionSettings, plan_allocation
from c2tc_pipeline.condensation.stages import StageClock

GAMMA = 0.25
ALLOCATORS = ("hfils", "optimal")
ALONE, CLUSTERED = "allocation alone", "with the final clustering"
AUTHORS: dict[str, int | None] = {
    "the authors' search on all rows": None,
    f"the authors' search on {POINTS_A_CENTROID} rows a centroid": POINTS_A_CENTROID,
}
"""The references by their names, and on how many rows a centroid they train."""

_AIMS = {"hfils": dict(zip(AUTHORS, (40, 8), strict=True)), "optimal": dict(zip(AUTHORS, (40, 10), strict=True))}
_HFILS_AIM_FOR = ("covertype", 0.001)
# Objectives that differ by less are the same but for the order in which numbers were added.
_ROUNDING = 1e-6
_PART = "search"


@dataclass(frozen=True)
class _Ours:
    """What an allocator took and found: seconds of each repeat, alone and with the clustering after it."""

    seconds: dict[str, tuple[float, ...]]
    objective: float
    probe_seconds: float


def measure_search(
    tables: Sequence[SpeedTable], bench: Bench, *, ratios: Sequence[float] = (0.001, 0.01)
) -> Iterator[SpeedRow]:
    """Allocate with ours and with the authors' search on every table at every ratio, and sum up.

    Parameters
    ----------
    tables : sequence of SpeedTable
        The tables.
    bench : Bench
        Measures.
    ratios : sequence of float
        Condensed rows as shares of the rows.
    """
    rows: list[SpeedRow] = []
    for table in tables:
        for ratio in ratios:
            for row in _compare(table, ratio, bench):
                rows.append(row)
                yield row
    for reference, aim in _AIMS["optimal"].items():
        for what in (ALONE, CLUSTERED):
            named = f"optimal, {what}"
            yield geometric_mean([row for row in rows if (row.what, row.reference) == (named, reference)], aim)


def _compare(table: SpeedTable, ratio: float, bench: Bench) -> Iterator[SpeedRow]:
    name, encoded = table.spec.name, table.encoded
    budget = budget_for_ratio(ratio, len(encoded.X), len(encoded.edges) - 1)
    ours = {allocator: _measure_ours(encoded, budget, allocator, bench) for allocator in ALLOCATORS}
    for reference, points in AUTHORS.items():
        bench.report(f"{_PART}, {name} at {100 * ratio:g} %: {reference}, for {bench.time_limit:g} s or so at most")
        timed = bench.once(partial(_authors, encoded, budget, points, bench))
        for allocator, found in ours.items():
            aimed = allocator == "hfils" and (name, ratio) == _HFILS_AIM_FOR
            for what, seconds in found.seconds.items():
                yield _row(
                    {"table": name, "ratio": ratio, "what": f"{allocator}, {what}", "reference": reference},
                    seconds,
                    found,
                    timed,
                    aim=_AIMS[allocator][reference] if aimed else None,
                )


def _measure_ours(encoded: ClassRows, budget: int, allocator: str, bench: Bench) -> _Ours:
    settings = PartitionSettings(budget, allocation=allocator, gamma=GAMMA)
    clocks: list[StageClock] = []

    def allocate_and_cluster() -> float:
        clocks.append(StageClock())
        plan = plan_allocation(encoded.X, encoded.edges, settings, clock=clocks[-1])
        return cluster_classes(encoded.X, encoded.edges, plan, settings, clock=clocks[-1]).allocation.objective

    timed = bench.time(allocate_and_cluster)
    alone = tuple(clock.seconds["curves"] + clock.seconds["allocate"] for clock in clocks)
    return _Ours({ALONE: alone, CLUSTERED: timed.times}, timed.value, timed.probe_seconds)


def _authors(encoded: ClassRows, budget: int, points: int | None, bench: Bench) -> SearchResult:
    return printed_search(
        encoded.by_class(), budget, GAMMA, points=points, time_limit=bench.time_limit, clock=bench.clock
    )


def _row(
    names: dict[str, Any], seconds: tuple[float, ...], ours: _Ours, timed: Timed[SearchResult], *, aim: int | None
) -> SpeedRow:
    reference = timed.value
    measured = spread(seconds)
    times_faster = timed.seconds / measured["seconds"]
    done = f"{reference.proposals} of its proposals, {reference.runs} k-means runs"
    return SpeedRow(
        part=_PART,
        **names,
        **measured,
        reference_seconds=timed.seconds,
        times_faster=times_faster,
        at_least=not reference.finished,
        objective=ours.objective,
        reference_objective=reference.objective,
        aim="" if aim is None else f"{aim} x, objective no worse",
        holds=None if aim is None else _holds(times_faster, aim, not reference.finished, [_no_worse(ours, reference)]),
        probe_seconds=max(ours.probe_seconds, timed.probe_seconds),
        note=done if reference.finished else f"the reference was stopped after {done}",
    )


def _no_worse(ours: _Ours, reference: SearchResult) -> bool | None:
    return None if reference.objective is None else ours.objective <= reference.objective * (1 + _ROUNDING)


def _holds(times_faster: float, aim: float, at_least: bool, no_worse: Sequence[bool | None]) -> bool | None:
    """Return whether the speed is reached and no objective is worse; a single no is a no, whatever is not known."""
    parts = [reaches(times_faster, aim, at_least), *no_worse]
    return False if False in parts else (None if None in parts else True)


def geometric_mean(rows: Sequence[SpeedRow], aim: float) -> SpeedRow:
    """Sum up rows of the same kind: how many times faster on average, and whether no objective is worse in any.

    Parameters
    ----------
    rows : sequence of SpeedRow
        At least one.
    aim : float
        How many times faster it should be.

    Examples
    --------
    >>> rows = [SpeedRow(part="search", what="optimal", reference="theirs", seconds=1.0, reference_seconds=seconds,
    ...                  objective=2.0, reference_objective=3.0) for seconds in (10.0, 40.0)]
    >>> mean = geometric_mean(rows, 15)
    >>> round(mean.times_faster, 3), mean.holds
    (20.0, True)
    """
    mean = math.exp(sum(math.log(row.times_faster or math.nan) for row in rows) / len(rows))
    at_least = any(row.at_least for row in rows)
    no_worse = [
        None
        if row.objective is None or row.reference_objective is None
        else row.objective <= row.reference_objective * (1 + _ROUNDING)
        for row in rows
    ]
    return SpeedRow(
        part=_PART,
        what=f"{rows[0].what}, geometric mean",
        table=", ".join(dict.fromkeys(row.table for row in rows)),
        repeats=rows[0].repeats,
        reference=rows[0].reference,
        times_faster=mean,
        at_least=at_least,
        aim=f"{aim:g} x, objective no worse in any",
        holds=_holds(mean, aim, at_least, no_worse),
        probe_seconds=max((row.probe_seconds for row in rows if row.probe_seconds is not None), default=None),
        note=f"{len(rows)} comparisons, {no_worse.count(False)} with a worse objective",
    )
