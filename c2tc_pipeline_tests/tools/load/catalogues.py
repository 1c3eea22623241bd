"""Catalogues of many small tables: what sensors, schedules, steps and definitions cost with them."""

from __future__ import annotations

import copy
import datetime
import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dagster as dg
import sqlalchemy
import yaml

from c2tc_pipeline.definitions import build_defs
from c2tc_pipeline.pipeline.jobs import nightly_schedules
from c2tc_pipeline.pipeline.records import Records
from c2tc_pipeline.pipeline.versioning import steps_named
from c2tc_pipeline.tables.catalogue import Catalogue, load_catalogue
from c2tc_pipeline_tests.tools.made_tables import mixed_table

NIGHT = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
ROWS = 200
# As little work as a run can have: no search, one training of the quickest model.
QUICK = {
    "ratios": [0.1, 0.05, 0.02],
    "settings": {"allocation": "ratio"},
    "evaluation": {"seeds": 1, "models": ["logistic"]},
}
# The ways in which the pipeline itself reads events.
_READERS = ("get_asset_records", "get_runs", "fetch_materializations")
_LOAD = """
import json, resource, time
from c2tc_pipeline import definitions
before, cpu = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
definitions.loaded_defs().get_repository_def().get_all_jobs()
cpu, after = time.process_time() - cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([cpu, (after - before) / 1e3]))
"""


def make_catalogue(folder: Path, tables: int) -> Catalogue:
    """Write tables of 200 rows, with three ratios each, and their catalogue into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    described = {}
    for number in range(tables):
        name = f"table_{number:04d}"
        mixed_table(ROWS, seed=number).to_parquet(folder / f"{name}.parquet")
        described[name] = {"source": f"{name}.parquet", "label": "outcome", **copy.deepcopy(QUICK)}
    path = folder / "catalog.yaml"
    path.write_text(yaml.safe_dump({"tables": described}, sort_keys=False))
    return load_catalogue(path)


@contextmanager
def counted(instance: dg.DagsterInstance) -> Iterator[Counter[str]]:
    """Count ``statements`` of any instance in this process, and ``records`` that this one returns to the pipeline."""
    counts: Counter[str] = Counter()

    def statement(*_: Any) -> None:
        counts["statements"] += 1

    def counting(reader: Callable[..., Any]) -> Callable[..., Any]:
        def read(*arguments: Any, **options: Any) -> Any:
            found = reader(*arguments, **options)
            counts["records"] += len(getattr(found, "records", found))
            return found

        return read

    sqlalchemy.event.listen(sqlalchemy.engine.Engine, "before_cursor_execute", statement)
    try:
        with ExitStack() as stack:
            for name in _READERS:
                holder = instance if hasattr(instance, name) else instance.event_log_storage
                stack.enter_context(patch.object(holder, name, counting(getattr(holder, name))))
            yield counts
    finally:
        sqlalchemy.event.remove(sqlalchemy.engine.Engine, "before_cursor_execute", statement)


@dataclass(frozen=True)
class Tick:
    """The cost of one evaluation, and the number of runs it requested."""

    name: str
    cpu: float
    statements: int
    records: int
    requested: int


def _timed(instance: dg.DagsterInstance, name: str, evaluate: Callable[[], int]) -> Tick:
    with counted(instance) as counts:
        began = time.process_time()
        requested = evaluate()
        cpu = time.process_time() - began
    return Tick(name, cpu, counts["statements"], counts["records"], requested)


def sensor_ticks(instance: dg.DagsterInstance, catalogue: Catalogue) -> Iterator[Tick]:
    """Evaluate the sensors that launch runs: sources are seen first, judged second, and unchanged later."""
    repository = build_defs(catalogue, storage="memory://load").get_repository_def()
    for name, ticks in ("source_sensor", ("first", "second", "later")), ("out_of_date_sensor", ("first", "later")):
        sensor = repository.get_sensor_def(name)
        cursor: str | None = None

        def look(sensor: dg.SensorDefinition = sensor) -> int:
            nonlocal cursor
            context = dg.build_sensor_context(instance, cursor=cursor, repository_def=repository)
            data = sensor.evaluate_tick(context)
            cursor = data.cursor
            return len(data.run_requests or [])

        for number in ticks:
            yield _timed(instance, f"{name}, {number} tick", look)


def schedule_ticks(instance: dg.DagsterInstance, catalogue: Catalogue) -> Iterator[Tick]:
    """Evaluate the nightly schedules; they open the instance anew, so that its records are not counted."""
    repository = build_defs(catalogue, storage="memory://load").get_repository_def()
    for schedule in nightly_schedules(catalogue):

        def night(schedule: dg.ScheduleDefinition = schedule) -> int:
            context = dg.build_schedule_context(instance, NIGHT, repository_def=repository)
            return len(schedule.evaluate_tick(context).run_requests or [])

        yield _timed(instance, schedule.name, night)


def step_begin(instance: dg.DagsterInstance, catalogue: Catalogue, name: str) -> Tick:
    """Query what a step of the first table queries before it begins."""
    table = next(iter(catalogue))
    step = steps_named(name, catalogue[table])[0]

    def query() -> int:
        assert Records(instance, catalogue, tables=[table]).behind(step) is None
        return 0

    return _timed(instance, f"step of {name}", query)


def load_definitions(folder: Path) -> tuple[float, float]:
    """Return CPU seconds and additional MB of loading the definitions, as the code server and every run do."""
    done = subprocess.run(
        [sys.executable, "-c", _LOAD], env=_environment(folder), capture_output=True, text=True, check=True
    )
    cpu, grown_mb = json.loads(done.stdout.splitlines()[-1])
    return cpu, grown_mb


def validate_definitions(folder: Path) -> float:
    """Return the CPU seconds of ``dagster definitions validate``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "dagster", "definitions", "validate", "-m", "c2tc_pipeline.definitions"]
    subprocess.run(command, env=_environment(folder), capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _environment(folder: Path) -> dict[str, str]:
    place = {"C2TC_CATALOGUE": "catalog.yaml", "C2TC_STORAGE": "store", "DAGSTER_HOME": "home"}
    return {**os.environ, **{name: str(folder / path) for name, path in place.items()}}
