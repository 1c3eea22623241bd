"""The nightly schedules: one for each job, launching only what is out of date.

What "out of date" means stands in :mod:`c2tc_pipeline.pipeline.ledger`, whether a source changed in
:mod:`c2tc_pipeline.pipeline.deliveries`.

A partition whose run fails stays out of date and is launched once more each night: what was only away comes back, and
what is wrong is told again every morning until it is mended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import dagster as dg

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline import jobs
from c2tc_pipeline.pipeline.deliveries import Ingested, unreadable
from c2tc_pipeline.pipeline.ledger import Ledger
from c2tc_pipeline.pipeline.versioning import Partition
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline.tables.fingerprint import source_fingerprint

if TYPE_CHECKING:
    # What define_asset_job returns; Dagster has no public name for it.
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

# In the order of the pipeline, each late enough for the one before to have ended in most nights; what comes later is
# found the night after.
NIGHTLY = {
    "ingest_job": "0 1 * * *",
    "condense_job": "0 2 * * *",
    "report_job": "0 5 * * *",
    "leaderboard_job": "30 5 * * *",
}
UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]

Work = dict[Partition, Sequence[str]]
"""Partitions, and the assets to make for each, parents first."""
Find = Callable[[dg.DagsterInstance], tuple[Work, list[str]]]
"""Given an instance, the work that there is, and what to say about it."""


def nightly_schedules(catalogue: Catalogue) -> list[dg.ScheduleDefinition]:
    """Return a schedule for each job, all of them off until somebody turns them on.

    A run begins with the first of the job's assets that is out of date for its partition.

    Parameters
    ----------
    catalogue : Catalogue
        The tables.

    Returns
    -------
    list of ScheduleDefinition
        In the order of the pipeline.

    Examples
    --------
    >>> from pathlib import Path
    >>> [schedule.name for schedule in nightly_schedules(Catalogue(Path("catalog.yaml"), {}))]
    ['ingest_nightly', 'condense_nightly', 'report_nightly', 'leaderboard_nightly']
    """

    def outdated(assets: Sequence[str]) -> Find:
        return lambda instance: (_outdated(Ledger(instance, catalogue), assets), [])

    return [
        _nightly(jobs.ingest_job, jobs.INGEST, lambda instance: _ingests(instance, catalogue)),
        _nightly(jobs.condense_job, jobs.CONDENSE, outdated(jobs.CONDENSE)),
        _nightly(jobs.report_job, jobs.REPORT, outdated(jobs.REPORT)),
        _nightly(jobs.leaderboard_job, jobs.LEADERBOARD, outdated(jobs.LEADERBOARD)),
    ]


def _nightly(job: UnresolvedAssetJobDefinition, assets: Sequence[str], find: Find) -> dg.ScheduleDefinition:
    """Return the schedule that launches the work that is found for a job with these assets."""

    @dg.schedule(
        name=job.name.removesuffix("_job") + "_nightly",
        job=job,
        cron_schedule=NIGHTLY[job.name],
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"{job.description} Every night, where something is out of date.",
    )
    def launch(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        work, notes = find(context.instance)
        for note in notes:
            context.log.warning(note)
        running = _running(context.instance, job.name, assets)
        requests = [
            dg.RunRequest(
                # Dagster compares the keys of one tick: one that is repeated after a crash launches nothing twice.
                run_key=f"{partition or 'all'}:{chosen[0]}",
                partition_key=partition,
                asset_selection=[dg.AssetKey(asset) for asset in chosen],
            )
            for partition, chosen in work.items()
            if partition not in running
        ]
        if requests:
            return requests
        waiting = [f"{partition or 'all'}: its run has not ended yet." for partition in work]
        return dg.SkipReason(" ".join([*(waiting or ["Everything is up to date."]), *notes]))

    return launch


def _outdated(ledger: Ledger, assets: Sequence[str]) -> Work:
    """Return for each partition the first asset that is out of date and all that follow it."""
    work: Work = {}
    for number, asset in enumerate(assets):
        for partition in ledger.out_of_date(asset):
            work.setdefault(partition, assets[number:])
    return work


def _ingests(instance: dg.DagsterInstance, catalogue: Catalogue) -> tuple[Work, list[str]]:
    """Return the tables whose source changed or whose ingest is out of date."""
    changed, notes = _changed_sources(instance, catalogue)
    work = _outdated(Ledger(instance, catalogue), jobs.INGEST)
    for table, assets in work.items():
        # raw_table's checks guard what follows: a table that they stopped must not be taken up behind them.
        if assets[0] == "validated_table":
            work[table] = jobs.INGEST
    return work | dict.fromkeys(changed, jobs.INGEST), notes


def _changed_sources(instance: dg.DagsterInstance, catalogue: Catalogue) -> tuple[list[Partition], list[str]]:
    """Return the tables whose source holds other bytes than those ingested, and which sources can't be read."""
    changed: list[Partition] = []
    notes = []
    for name, spec in catalogue.items():
        source = catalogue.resolve_source(spec)
        try:
            if Ingested.last(instance, name).is_older_than(source, source_fingerprint(source)):
                changed.append(name)
        except (InputError, OSError) as error:
            notes.append(f"{name}: {unreadable(error)}")
    return changed, notes


def _running(instance: dg.DagsterInstance, job: str, assets: Iterable[str]) -> set[Partition]:
    """Return the partitions for which an unfinished run, launched by whomever, makes some of these assets."""
    keys = {dg.AssetKey(asset) for asset in assets}
    return {
        run.tags.get("dagster/partition")
        for run in instance.get_runs(dg.RunsFilter(statuses=UNFINISHED))
        if run.job_name == job or keys & (run.asset_selection or set())
    }
