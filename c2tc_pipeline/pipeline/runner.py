"""``c2tc run``: run the jobs in this process, on the instance that the dashboard shows, and export their results.

What is up to date, by the definition in :mod:`c2tc_pipeline.pipeline.records`, is not made again unless forced.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import dagster as dg
import pandas as pd

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.row_worth import SCORES_NAME
from c2tc_pipeline.pipeline.formats import FORMATS, PAGE_NAME, ROWS_NAME
from c2tc_pipeline.pipeline.instance import Workplace, end_dead_runs, open_instance, runs_are_local
from c2tc_pipeline.pipeline.io_managers import artefact_key
from c2tc_pipeline.pipeline.jobs import ASSETS
from c2tc_pipeline.pipeline.records import REFUSED_TAG, Records
from c2tc_pipeline.pipeline.run_events import RunEvent, RunWatch
from c2tc_pipeline.pipeline.versioning import LEADERBOARD, OVERVIEW, TableStep, table_steps
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.storage.artefact import check_target, publish_directory
from c2tc_pipeline.storage.manifest import refusing_damage
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline.tables.spec import TableSpec

LOGGER = "c2tc"
RESULTS_KIND = "pipeline-results"
OVERVIEW_NAME = "overview.html"
_CONDENSED = "condensed_table"
_EXPANDED = "training_rows"
_SCORES = "evaluation_scores"
# Whether a failed run is launched again is up to the user at the prompt, not to the daemon.
TAGS = {"c2tc/launched_by": "c2tc run", "dagster/max_retries": "0"}


RunListener = Callable[[RunEvent], object]
"""Called with the events of runs as they happen."""


@dataclass
class TableRun:
    """The outcome of one table: ratios that are available, failures, and the folder of its results."""

    table: str
    ratios: list[float] = field(default_factory=list)
    failures: list[RunEvent] = field(default_factory=list)
    folder: Path | None = None


def run_tables(
    place: Workplace,
    catalogue: Catalogue,
    chosen: Mapping[str, Sequence[float]],
    out: Path,
    listener: RunListener,
    *,
    force: bool = False,
) -> tuple[list[TableRun], list[RunEvent]]:
    """Materialise the chosen ratios of tables from source to report, and the leaderboard and overview over all.

    A table that fails does not stop the next one, and a ratio that fails does not stop the other ratios. What was made
    before a failure, or before a KeyboardInterrupt, stays. With ``force`` everything is made again. Results go into one
    folder per table below ``out``. Returns the outcome of each table, and the failures of the steps over all.
    """
    store = place.store()
    for table in chosen:
        check_target(out / table, kind=RESULTS_KIND, replace=True)
    with open_instance(place.home) as instance:
        if runs_are_local(place.home):
            end_dead_runs(instance)
        jobs = _Jobs(place, catalogue, instance, listener, force)
        done = []
        for table, ratios in chosen.items():
            made, has_report = _run_table(jobs, table, ratios)
            if has_report:
                export_results(store, catalogue[table], out / table)
                made.folder = out / table
            done.append(made)
        board = [LEADERBOARD] if any(made.ratios for made in done) else []
        failures = jobs.run("leaderboard_job", [TableStep("", name) for name in (*board, OVERVIEW)])
        export_overview(store, out)
    return done, failures


def _run_table(jobs: _Jobs, table: str, ratios: Sequence[float]) -> tuple[TableRun, bool]:
    """Run the jobs of one table; also return whether it has a report."""
    made = TableRun(table)
    made.failures = jobs.run("condense_job", jobs.steps("condense_job", table, ratios))
    condensed = [each for each in ratios if jobs.is_made(TableStep(table, "training_rows", each))]
    if not condensed or any(TableStep.of_op(each.step).ratio is None for each in made.failures):
        return made, False
    made.failures += jobs.run("report_job", jobs.steps("report_job", table, condensed))
    made.ratios = [each for each in condensed if jobs.is_made(TableStep(table, "evaluation_scores", each))]
    return made, bool(made.ratios) and jobs.is_made(TableStep(table, "report"))


class _Jobs:
    """The jobs of the pipeline, each run to its end before the next."""

    def __init__(
        self, place: Workplace, catalogue: Catalogue, instance: dg.DagsterInstance, listener: RunListener, force: bool
    ) -> None:
        self._listener = listener
        self._watch = RunWatch(listener)
        loggers = dg.Definitions(loggers={LOGGER: self._watch.as_logger()})
        self._defs = dg.Definitions.merge(place.definitions(catalogue), loggers)
        self._store = place.store()
        self._catalogue = catalogue
        self._instance = instance
        self._force = force
        self._has_run = False

    def steps(self, job: str, table: str, ratios: Sequence[float]) -> list[TableStep]:
        """Return the steps of a table that a job consists of, at some of its ratios."""
        steps = table_steps(self._catalogue[table])
        return [each for each in steps if each.step in ASSETS[job] and each.ratio in (None, *ratios)]

    def is_made(self, step: TableStep) -> bool:
        """Return whether a step is made and up to date."""
        return self._records([step]).is_current(step)

    def run(self, job: str, steps: Sequence[TableStep]) -> list[RunEvent]:
        """Make those of some steps that are out of date, and return the failures."""
        self._watch.begin()
        wanted = list(steps) if self._force else self._out_of_date(steps)
        for step in steps:
            if step not in wanted:
                self._listener(RunEvent("kept", step.key.to_python_identifier()))
        if not wanted:
            return []
        self._has_run = True
        # In this process, so that imports are paid for once and not for each step.
        result = self._defs.resolve_job_def(job).execute_in_process(
            instance=self._instance,
            asset_selection=[step.key for step in wanted],
            raise_on_error=False,
            run_config={"loggers": {LOGGER: {}}},
            tags=TAGS,
        )
        if self._watch.interrupted:
            # A step that is interrupted keeps its slot of the pool, and the next run would wait for it.
            self._instance.event_log_storage.free_concurrency_slots_for_run(result.run_id)
            raise KeyboardInterrupt
        if not result.success and not self._watch.failures:
            raise RuntimeError(f"Run {result.run_id} of {job} failed without an error.")
        return self._watch.failures

    def _records(self, steps: Sequence[TableStep]) -> Records:
        tables = [*self._catalogue] if not steps[0].table else [steps[0].table]
        return Records(self._instance, self._catalogue, tables=tables, store=self._store)

    def _out_of_date(self, steps: Sequence[TableStep]) -> list[TableStep]:
        """Return the steps that are out of date or not in this store, and all that follow them."""
        if not steps:
            return []
        records, table = self._records(steps), steps[0].table
        if not table:
            due = [step for step in steps if not records.is_current(step)]
            # A run changes the overview whether it succeeds or fails.
            return [step for step in steps if step in due or (step.step == OVERVIEW and (due or self._has_run))]
        delivered = steps[0].step == "raw_table" and self._source_changed(records, table)
        wanted = records.out_of_date(table, delivered=delivered)
        return [step for step in steps if step in wanted]

    def _source_changed(self, records: Records, table: str) -> bool:
        source = self._catalogue.resolve_source(self._catalogue[table])
        raw = TableStep(table, "raw_table")
        if not self._store.latest(artefact_key(raw.step, raw.scope)) or REFUSED_TAG in (records.tags(raw) or {}):
            return True  # a delivery that was refused is checked against the schema once more
        try:
            return records.source_changed(table, open_source(source).version())
        except (InputError, OSError):
            return True  # the run reports what is wrong with it


def export_results(store: ArtefactStore, spec: TableSpec, folder: Path) -> None:
    """Copy the newest report, condensed tables and scores of a table into a folder, all or nothing.

    The folder holds ``report.html`` and, for each ratio that was made, a folder that ``CondensedTable.load`` reads. One
    that was written here before is replaced. Every file is verified as it is copied.
    """

    def write(directory: Path) -> None:
        with _newest(store, "report", spec.name) as stored:
            shutil.copy(stored / PAGE_NAME, directory)
        for ratio in spec.ratios:
            scope = str(TableStep(spec.name, _CONDENSED, ratio).scope)
            if all(store.latest(artefact_key(asset, scope)) for asset in (_CONDENSED, _EXPANDED, _SCORES)):
                kind = FORMATS[_CONDENSED].kind
                publish_directory(directory / repr(ratio), partial(_copy_scope, store, scope), kind=kind)

    publish_directory(folder, write, kind=RESULTS_KIND, settings={"table": spec.name}, replace=True)


def export_overview(store: ArtefactStore, folder: Path) -> None:
    """Copy the newest overview into the folder of results, whole or not at all."""
    if store.latest(artefact_key(OVERVIEW)) is not None:
        folder.mkdir(parents=True, exist_ok=True)
        partial_page = folder / f".{OVERVIEW_NAME}.{os.getpid()}"
        with _newest(store, OVERVIEW, None) as stored:
            shutil.copy(stored / PAGE_NAME, partial_page)
        partial_page.replace(folder / OVERVIEW_NAME)


def read_results(store: ArtefactStore, table: str, ratios: Sequence[float]) -> dict[float, pd.DataFrame]:
    """Return the stored scores of a table, by ratio."""
    scores = {}
    for ratio in ratios:
        scope = str(TableStep(table, _SCORES, ratio).scope)
        with _newest(store, _SCORES, scope) as directory, refusing_damage(artefact_key(_SCORES, scope)):
            scores[ratio] = FORMATS[_SCORES].read(directory)
    return scores


def _copy_scope(store: ArtefactStore, scope: str, folder: Path) -> None:
    with _newest(store, _CONDENSED, scope) as stored:
        shutil.copytree(stored, folder, dirs_exist_ok=True)
    for asset, name in ((_EXPANDED, ROWS_NAME), (_SCORES, SCORES_NAME)):
        with _newest(store, asset, scope) as stored:
            shutil.copy(stored / name, folder)


def _newest(store: ArtefactStore, asset: str, scope: str | None) -> AbstractContextManager[Path]:
    return store.fetch(artefact_key(asset, scope), kind=FORMATS[asset].kind)
