"""Jobs, the executor of their steps, and nightly schedules that launch what is out of date.

A run has one partition key, so that assets partitioned by table and assets partitioned by table and ratio belong to
separate jobs. There is one partition per run: ``BackfillPolicy.multi_run`` would put several into one, but in the
pinned release of Dagster a run with a range of partitions records one data version and one set of tags for all of them,
gives the verdicts of checks no partition, and fails as a whole when one table is bad.
"""

from __future__ import annotations

import os

import dagster as dg

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.ledger import Ledger, changed_sources
from c2tc_pipeline.pipeline.versioning import Partition
from c2tc_pipeline.tables.catalogue import Catalogue

# The assets of each job, parents first.
INGEST = ("raw_table", "validated_table", "encoder", "encoded_table")
CONDENSE = ("cluster_allocation", "condensed_table", "training_rows", "evaluation_scores")
REPORT = ("report",)
LEADERBOARD = ("leaderboard",)
ASSETS = {"ingest_job": INGEST, "condense_job": CONDENSE, "report_job": REPORT, "leaderboard_job": LEADERBOARD}
DESCRIPTIONS = {
    "ingest_job": "Read, check, split and encode one table.",
    "condense_job": "Condense one table to one ratio, draw training rows from it, and score models trained on them.",
    "report_job": "Write the page of one table, over all its ratios.",
    "leaderboard_job": "Compare the scores of all tables and ratios.",
}
# Late enough for the job before to have ended in most nights; what comes later is found the night after.
NIGHTLY = {
    "ingest_job": "0 1 * * *",
    "condense_job": "0 2 * * *",
    "report_job": "0 5 * * *",
    "leaderboard_job": "30 5 * * *",
}
JOBS = tuple(
    dg.define_asset_job(name, dg.AssetSelection.assets(*assets), description=DESCRIPTIONS[name])
    for name, assets in ASSETS.items()
)
UNFINISHED = [dg.DagsterRunStatus[name] for name in ("NOT_STARTED", "QUEUED", "STARTING", "STARTED", "CANCELING")]

STEPS_VARIABLE = "C2TC_STEPS"
# Modules that most steps need, imported once per run in the process from which its steps are forked. None of them
# computes or opens anything, since threads and connections do not survive a fork.
PRELOADED = (
    "c2tc_pipeline.pipeline.step_processes",
    "c2tc_pipeline.definitions",
    "c2tc_pipeline.clustering.kernels",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
    "pandera.pandas",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "sqlalchemy",
    "torch",
)
_EXECUTORS = {
    # At most two at once, because each may use several threads.
    "apart": dg.multiprocess_executor.configured(
        {"max_concurrent": 2, "start_method": {"forkserver": {"preload_modules": [*PRELOADED]}}}
    ),
    "together": dg.in_process_executor,
}


def step_executor() -> dg.ExecutorDefinition:
    """Return the executor that ``C2TC_STEPS`` selects.

    ``apart``, the default, gives each step a process: one that is killed, for want of memory, is retried. ``together``
    executes steps in the process of their run, which costs less for small tables; a step that is killed ends the run.
    """
    wanted = os.environ.get(STEPS_VARIABLE, "").strip() or "apart"
    if wanted not in _EXECUTORS:
        raise InputError(f"{STEPS_VARIABLE} is {wanted!r}; set it to one of: {', '.join(_EXECUTORS)}.")
    return _EXECUTORS[wanted]


def nightly_schedules(catalogue: Catalogue) -> list[dg.ScheduleDefinition]:
    """Return a schedule for each job that launches what is out of date; all are off until turned on.

    A run begins with the first of the job's assets that is out of date for its partition. A partition whose run fails
    stays out of date and is launched again the next night.
    """
    return [_nightly(job, catalogue) for job in NIGHTLY]


def _nightly(job: str, catalogue: Catalogue) -> dg.ScheduleDefinition:
    @dg.schedule(
        name=job.removesuffix("_job") + "_nightly",
        job_name=job,
        cron_schedule=NIGHTLY[job],
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"{DESCRIPTIONS[job]} Every night, where something is out of date.",
    )
    def launch(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        work = Ledger(context.instance, catalogue).work(ASSETS[job])
        problems: list[str] = []
        if job == "ingest_job":
            changed, problems = changed_sources(context.instance, catalogue)
            work |= dict.fromkeys(changed, INGEST)
        for problem in problems:
            context.log.warning(problem)
        running = _running(context.instance, job)
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
        return dg.SkipReason(" ".join([*(waiting or ["Everything is up to date."]), *problems]))

    return launch


def _running(instance: dg.DagsterInstance, job: str) -> set[Partition]:
    """Return the partitions for which an unfinished run, however launched, makes some of a job's assets."""
    keys = {dg.AssetKey(asset) for asset in ASSETS[job]}
    return {
        run.tags.get("dagster/partition")
        for run in instance.get_runs(dg.RunsFilter(statuses=UNFINISHED))
        if run.job_name == job or keys & (run.asset_selection or set())
    }
