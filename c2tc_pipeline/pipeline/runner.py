"""``c2tc run``: run the jobs in this process, on the instance that the dashboard shows, and export their results.

What is up to date, by the definition in :mod:`c2tc_pipeline.pipeline.ledger`, is not made again unless forced.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import dagster as dg
import pandas as pd

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.averages import SCORES_NAME
from c2tc_pipeline.pipeline.formats import FORMATS, PAGE_NAME, ROWS_NAME
from c2tc_pipeline.pipeline.instance import Workplace, end_dead_runs, open_instance, runs_are_local
from c2tc_pipeline.pipeline.io_managers import artefact_key
from c2tc_pipeline.pipeline.jobs import ASSETS
from c2tc_pipeline.pipeline.ledger import Ingested, Ledger, guarded
from c2tc_pipeline.pipeline.run_events import RunEvent, RunWatch
from c2tc_pipeline.pipeline.versioning import Partition, Partitions
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.storage.artefact import check_target, publish_directory
from c2tc_pipeline.storage.manifest import refusing_damage
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline.tables.spec import TableSpec

LOGGER = "c2tc"
RESULTS_KIND = "pipeline-results"
_CONDENSED = "condensed_table"
_EXPANDED = "training_rows"
_SCORES = "evaluation_scores"
# Whether a failed run is launched again is up to the user at the prompt, not to the daemon.
TAGS = {"c2tc/launched_by": "c2tc run", "dagster/max_retries": "0"}


RunListener = Callable[[RunEvent], object]
"""Called with the events of runs as they happen."""


@dataclass
class TableRun:
    """The outcome of one table: seconds for each ratio that is available, failures, and the folder of its results."""

    table: str
    seconds: dict[float, float] = field(default_factory=dict)
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
    """Materialise the chosen ratios of tables from source to report, and the leaderboard over all.

    A table that fails does not stop the next one, and a ratio that fails does not stop the other ratios. What was made
    before a failure, or before a KeyboardInterrupt, stays. With ``force`` everything is made again. Results go into one
    folder per table below ``out``. Returns the outcome of each table, and the failures of the leaderboard.
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
        board = jobs.run("leaderboard_job", None) if any(made.seconds for made in done) else []
    return done, board


def _run_table(jobs: _Jobs, table: str, ratios: Sequence[float]) -> tuple[TableRun, bool]:
    """Run the jobs of one table; also return whether it has a report."""
    made = TableRun(table)
    made.failures = jobs.run("ingest_job", table)
    if made.failures:
        return made, False
    for ratio in ratios:
        started = time.perf_counter()
        failures = jobs.run("condense_job", Partitions.cell_key(table, ratio))
        if failures:
            made.failures += failures
        else:
            made.seconds[ratio] = time.perf_counter() - started
    unreported = jobs.run("report_job", table) if made.seconds else []
    made.failures += unreported
    return made, bool(made.seconds) and not unreported


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

    def run(self, job: str, partition: Partition) -> list[RunEvent]:
        """Make what is out of date of a job's partition, and return the failures."""
        self._watch.begin(partition or "")
        wanted = ASSETS[job] if self._force else self._out_of_date(job, partition)
        for asset in ASSETS[job][: len(ASSETS[job]) - len(wanted)]:
            self._listener(RunEvent("kept", asset, partition=partition or ""))
        if not wanted:
            return []
        # In this process, so that imports are paid for once and not for each step.
        result = self._defs.resolve_job_def(job).execute_in_process(
            instance=self._instance,
            partition_key=partition,
            asset_selection=None if wanted == ASSETS[job] else [dg.AssetKey(asset) for asset in wanted],
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

    def _out_of_date(self, job: str, partition: Partition) -> Sequence[str]:
        """Return the first asset of a job that is out of date or not in this store, and all that follow it."""
        assets = ASSETS[job]
        if job == "ingest_job" and self._source_changed(str(partition)):
            return assets
        ledger = Ledger.of_partition(self._instance, self._catalogue, partition)
        for number, asset in enumerate(assets):
            is_stored = self._store.latest(artefact_key(asset, partition)) is not None
            if not is_stored or not ledger.is_current(asset, partition):
                return guarded(assets[number:], assets)
        return ()

    def _source_changed(self, table: str) -> bool:
        source = self._catalogue.resolve_source(self._catalogue[table])
        try:
            return Ingested.last(self._instance, table).is_older_than(source, open_source(source).version())
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
            cell = Partitions.cell_key(spec.name, ratio)
            if all(store.latest(artefact_key(asset, cell)) for asset in (_CONDENSED, _EXPANDED, _SCORES)):
                kind = FORMATS[_CONDENSED].kind
                publish_directory(directory / repr(ratio), partial(_copy_cell, store, cell), kind=kind)

    publish_directory(folder, write, kind=RESULTS_KIND, settings={"table": spec.name}, replace=True)


def read_results(store: ArtefactStore, table: str, ratios: Sequence[float]) -> dict[float, pd.DataFrame]:
    """Return the stored scores of a table, by ratio."""
    scores = {}
    for ratio in ratios:
        cell = Partitions.cell_key(table, ratio)
        with _newest(store, _SCORES, cell) as directory, refusing_damage(artefact_key(_SCORES, cell)):
            scores[ratio] = FORMATS[_SCORES].read(directory)
    return scores


def _copy_cell(store: ArtefactStore, cell: str, folder: Path) -> None:
    with _newest(store, _CONDENSED, cell) as stored:
        shutil.copytree(stored, folder, dirs_exist_ok=True)
    for asset, name in ((_EXPANDED, ROWS_NAME), (_SCORES, SCORES_NAME)):
        with _newest(store, asset, cell) as stored:
            shutil.copy(stored / name, folder)


def _newest(store: ArtefactStore, asset: str, partition: str) -> AbstractContextManager[Path]:
    return store.fetch(artefact_key(asset, partition), kind=FORMATS[asset].kind)
