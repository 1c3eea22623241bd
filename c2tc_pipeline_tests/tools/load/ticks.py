"""What sensors, schedules and steps ask an instance, and how long it takes them."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import dagster as dg

from c2tc_pipeline.definitions import build_defs
from c2tc_pipeline.pipeline.ledger import Ledger
from c2tc_pipeline.pipeline.versioning import Partitions
from c2tc_pipeline.pipeline.jobs import nightly_schedules
from c2tc_pipeline.pipeline.sensors import source_sensor
from c2tc_pipeline.pipeline.versioning import BY_CELL
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline_tests.tools.load.counting import counted

NIGHT = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Tick:
    """One look at an instance.

    Parameters
    ----------
    name : str
        Who looked, and at which state.
    seconds, cpu : float
        Of the clock, and of this process.
    statements, records : int
        What the database was asked, and what it handed out to the pipeline.
    launched : int
        Runs that were asked for.
    """

    name: str
    seconds: float
    cpu: float
    statements: int
    records: int
    launched: int


def sensor_ticks(instance: dg.DagsterInstance, catalogue: Catalogue, state: str) -> Iterator[Tick]:
    """Look at an instance as the sensors do that may launch something.

    Parameters
    ----------
    instance : DagsterInstance
        Its records stay as they are.
    catalogue : Catalogue
        The tables.
    state : str
        What is in the instance, for the names.
    """
    defs = build_defs(catalogue, storage="memory://load")
    repository = defs.get_repository_def()
    sensor = source_sensor(catalogue)
    cursor: str | None = None

    def look() -> int:
        nonlocal cursor
        context = dg.build_sensor_context(instance, cursor=cursor, repository_def=repository)
        data = sensor.evaluate_tick(context)
        cursor = data.cursor
        return len(data.run_requests or [])

    # The first tick sees the sources, the second one judges them, later ones find nothing new.
    for number in ("first", "second", "later"):
        yield _timed(instance, f"source_sensor, {number} tick, {state}", look)
    conditions: Any = None

    def evaluate() -> int:
        nonlocal conditions
        result = dg.evaluate_automation_conditions(defs, instance, cursor=conditions)
        conditions = result.cursor
        return result.total_requested

    for number in ("first", "later"):
        yield _timed(instance, f"out_of_date_sensor, {number} tick, {state}", evaluate)


def schedule_ticks(instance: dg.DagsterInstance, catalogue: Catalogue, state: str) -> Iterator[Tick]:
    """Look at an instance as the nightly schedules do; they open it anew, so its records are not counted."""
    repository = build_defs(catalogue, storage="memory://load").get_repository_def()
    for schedule in nightly_schedules(catalogue):

        def night(schedule: dg.ScheduleDefinition = schedule) -> int:
            context = dg.build_schedule_context(instance, NIGHT, repository_def=repository)
            return len(schedule.evaluate_tick(context).run_requests or [])

        yield _timed(instance, f"{schedule.name}, {state}", night)


def step_frame(instance: dg.DagsterInstance, catalogue: Catalogue, asset: str) -> Tick:
    """Ask what a step of the first table asks before it begins: whether its parents agree, and its recipe."""
    table = next(iter(catalogue))
    key = Partitions.cell_key(table, catalogue[table].ratios[0]) if asset in BY_CELL else table

    def ask() -> int:
        ledger = Ledger.of_partition(instance, catalogue, key)
        assert ledger.behind(asset, key) == []
        assert ledger.expected(asset, key) is not None
        return 0

    return _timed(instance, f"step of {asset}", ask)


def _timed(instance: dg.DagsterInstance, name: str, ask: Callable[[], int]) -> Tick:
    with counted(instance) as counts:
        began, used = time.perf_counter(), time.process_time()
        launched = ask()
        seconds, cpu = time.perf_counter() - began, time.process_time() - used
    return Tick(name, seconds, cpu, counts["statements"], counts["records"], launched)
