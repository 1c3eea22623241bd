"""The pipeline at a prompt: its jobs one after the other, in this process, on the instance that the dashboard shows.

What belongs here: which runs make up a table, and what one failure means for the others. What a run tells is in
:mod:`c2tc_pipeline.pipeline.run_events`, and what is left in a folder for people in
:mod:`c2tc_pipeline.pipeline.results`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import dagster as dg

from c2tc_pipeline.pipeline.instance import open_instance, runs_are_here
from c2tc_pipeline.pipeline.partitions import Partitions
from c2tc_pipeline.pipeline.results import check_results_folder, export_results
from c2tc_pipeline.pipeline.run_events import RunEvent, RunWatch
from c2tc_pipeline.pipeline.run_processes import end_dead_runs
from c2tc_pipeline.pipeline.workplace import Workplace
from c2tc_pipeline.tables.catalogue import Catalogue

LOGGER = "c2tc"
# Whether a run that failed is launched again is for the person at the prompt to say, not for the daemon.
TAGS = {"c2tc/launched_by": "c2tc run", "dagster/max_retries": "0"}


class RunViewer(Protocol):
    """Whoever watches the runs."""

    def begin(self, partition: str) -> None:
        """Be told the partition of the next run."""

    def __call__(self, event: RunEvent) -> None:
        """Be told an event of the run."""


@dataclass
class TableRun:
    """What came of one table.

    Parameters
    ----------
    table : str
        The table.
    seconds : dict of float to float
        How long each ratio took, of those that were made.
    failures : list of RunEvent
        What went wrong, in the order in which it did.
    folder : Path or None
        Where its results are, when there are any.
    """

    table: str
    seconds: dict[float, float] = field(default_factory=dict)
    failures: list[RunEvent] = field(default_factory=list)
    folder: Path | None = None


def run_tables(
    place: Workplace,
    catalogue: Catalogue,
    chosen: Mapping[str, Sequence[float]],
    out: Path,
    viewer: RunViewer,
) -> tuple[list[TableRun], list[RunEvent]]:
    """Materialise tables from their sources to their reports, and the leaderboard over all.

    A table that fails does not stop the next one, and a ratio that fails does not stop the other ratios. What was made
    before a failure stays.

    Parameters
    ----------
    place : Workplace
        Where the pipeline works.
    catalogue : Catalogue
        Its tables.
    chosen : mapping of str to sequence of float
        The ratios to make of each table.
    out : Path
        Results go into a folder here, one a table.
    viewer : callable
        Told what happens.

    Returns
    -------
    list of TableRun
        One for each chosen table.
    list of RunEvent
        What went wrong with the leaderboard.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C; runs that ended before are stored, and nothing of the one that did not.
    """
    store = place.store()
    for table in chosen:
        check_results_folder(out / table)
    with open_instance(place.home) as instance:
        if runs_are_here(place.home):
            end_dead_runs(instance)
        jobs = _Jobs(place.definitions(catalogue), instance, viewer)
        done = []
        for table, ratios in chosen.items():
            made, reported = _run_table(jobs, table, ratios)
            if reported:
                export_results(store, catalogue[table], out / table)
                made.folder = out / table
            done.append(made)
        board = jobs.run("leaderboard_job", None) if any(made.seconds for made in done) else []
    return done, board


def _run_table(jobs: _Jobs, table: str, ratios: Sequence[float]) -> tuple[TableRun, bool]:
    """Run what makes up one table; also tell whether its report was made."""
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

    def __init__(self, defs: dg.Definitions, instance: dg.DagsterInstance, viewer: RunViewer) -> None:
        self._viewer = viewer
        self._watch = RunWatch(viewer)
        self._defs = dg.Definitions.merge(defs, dg.Definitions(loggers={LOGGER: self._watch.as_logger()}))
        self._instance = instance

    def run(self, job: str, partition: str | None) -> list[RunEvent]:
        """Run a job and return what went wrong."""
        self._viewer.begin(partition or "")
        self._watch.begin()
        # In this process, so that imports are paid for once and not for each step.
        result = self._defs.resolve_job_def(job).execute_in_process(
            instance=self._instance,
            partition_key=partition,
            raise_on_error=False,
            run_config={"loggers": {LOGGER: {}}},
            tags=TAGS,
        )
        if self._watch.interrupted:
            # A step that is interrupted keeps its slot of the pool, and the next run would wait for it.
            self._instance.event_log_storage.free_concurrency_slots_for_run(result.run_id)
            raise KeyboardInterrupt
        if not result.success and not self._watch.failures:
            raise RuntimeError(f"Run {result.run_id} of {job} failed without saying why.")
        return self._watch.failures
