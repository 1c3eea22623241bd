"""Jobs, the executor of their steps, and the runs that make what is out of date.

Of one delivery, a run of ``condense_job`` makes all up to the training rows, at every ratio, and a run of
``report_job`` the scores and the report. They are two, because a run waits for all of its pools before it begins, and
a delivery must not wait for the evaluation of another table.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import dagster as dg

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.alerts import RETRY_TAG
from c2tc_pipeline.pipeline.records import SOURCE_TAG, Records, unreadable
from c2tc_pipeline.pipeline.versioning import LEADERBOARD, OVER_ALL, OVERVIEW, TableStep, steps_named
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.sources.source import version_size
from c2tc_pipeline.storage.manifest import hash_json
from c2tc_pipeline.tables.catalogue import Catalogue

# The steps of each job, parents first.
CONDENSE = (
    "raw_table",
    "validated_table",
    "encoder",
    "encoded_table",
    "cluster_allocation",
    "condensed_table",
    "training_rows",
)
REPORT = ("evaluation_scores", "report")
ASSETS = {"condense_job": CONDENSE, "report_job": REPORT, "leaderboard_job": OVER_ALL}
DESCRIPTIONS = {
    "condense_job": "Read, check, split and encode tables, condense them to each ratio, and draw training rows.",
    "report_job": "Score models trained on condensed tables, and write the page of each table.",
    "leaderboard_job": "Compare the scores of all tables and ratios, and show the state of each table.",
}
# Late enough for the job before to have ended in most nights; what comes later is found the night after.
NIGHTLY = {"condense_job": "0 1 * * *", "report_job": "0 5 * * *", "leaderboard_job": "30 5 * * *"}
UNFINISHED = [dg.DagsterRunStatus[name] for name in ("NOT_STARTED", "QUEUED", "STARTING", "STARTED", "CANCELING")]

# Small tables share runs, whose start takes longer than their work.
SMALL_BYTES = 5_000_000
SMALL_TABLES_A_RUN = 10
# A tick that submits more would delay the others; the next tick submits the rest.
MAX_RUNS_A_TICK = 10
# Looking at a source on S3 or in a database takes a round trip.
_SOURCE_THREADS = 16
# Dagster ends a tick after a minute.
SOURCE_ANSWER_SECONDS = 20.0
_OUTSTANDING: dict[tuple[str, str, str], Future[str]] = {}

STEPS_VARIABLE = "C2TC_STEPS"
# Modules that most steps need, imported once per run in the process from which its steps are forked. None of them
# starts threads or opens connections, which do not survive a fork.
PRELOADED = (
    "c2tc_pipeline.pipeline.preloaded",
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


def all_jobs(catalogue: Catalogue) -> list[Any]:
    """Return the jobs over all tables; a run selects those that it makes."""
    return [
        dg.define_asset_job(name, dg.AssetSelection.assets(*job_keys(name, catalogue)), description=DESCRIPTIONS[name])
        for name in ASSETS
    ]


def job_keys(job: str, catalogue: Catalogue) -> list[dg.AssetKey]:
    """Return the assets of a job."""
    if job == "leaderboard_job":
        return [TableStep("", name).key for name in OVER_ALL]
    return [each.key for name in ASSETS[job] for spec in catalogue.values() for each in steps_named(name, spec)]


@dataclass(frozen=True)
class Work:
    """Steps of one table to make in a run of one job.

    ``reason`` changes with the inputs and code of the steps. While it is the same, they are launched a limited number
    of times, even if they succeed: the code of runs may differ from that of the sensors.
    """

    job: str
    table: str
    steps: tuple[TableStep, ...]
    reason: str
    after: int
    attempt: int = 0
    is_last: bool = True


def work_of(records: Records, table: str, job: str, *, delivered: str = "") -> Work | None:
    """Return the out-of-date steps of a table in a job, or None; ``delivered`` is the fingerprint of a changed source.

    ``report_job`` makes the scores of ratios that are up to date, and the report if they or others are new to it.
    """
    found = records.out_of_date(table, delivered=bool(delivered))
    if job == "report_job":
        waiting = {each.ratio for each in found if each.step in CONDENSE}
        found = [each for each in found if each.step == "evaluation_scores" and waiting.isdisjoint({None, each.ratio})]
        report = TableStep(table, "report")
        if found or (records.available(report) and not records.is_current(report)):
            found = [*found, report]
    chosen = [step for step in found if step.step in ASSETS[job]]
    if not chosen:
        return None
    reason = hash_json([job, delivered, records.reason(chosen)])
    return Work(job, table, tuple(chosen), reason, after=records.newest_event(chosen))


def leaderboard_due(records: Records) -> bool:
    """Return whether there are scores that the leaderboard does not show."""
    step = TableStep("", LEADERBOARD)
    return bool(records.available(step)) and not records.is_current(step)


def overview_due(instance: dg.DagsterInstance, records: Records) -> bool:
    """Return whether a run has failed since the overview was made, other than one that was to make it."""
    newest = instance.fetch_run_status_changes(dg.DagsterEventType.RUN_FAILURE, limit=1).records
    if not newest or newest[0].storage_id < records.newest_event([TableStep("", OVERVIEW)]):
        return False
    run = instance.get_run_by_id(newest[0].run_id)
    return run is not None and run.job_name != "leaderboard_job"


LEADERBOARD_RUN = dg.RunRequest(
    job_name="leaderboard_job", asset_selection=[TableStep("", name).key for name in OVER_ALL]
)
OVERVIEW_RUN = dg.RunRequest(job_name="leaderboard_job", asset_selection=[TableStep("", OVERVIEW).key])


def requests(work: Iterable[Work], records: Records, sizes: Mapping[str, int | None]) -> Iterator[dg.RunRequest]:
    """Yield runs: small tables share one, any other has its own."""
    for batch in _batches(work, records, sizes):
        tables = [each.table for each in batch]
        yield dg.RunRequest(
            # A tick that is interrupted and repeated does not launch the same run twice.
            run_key=hash_json([[each.reason, each.after, each.attempt] for each in batch]),
            job_name=batch[0].job,
            asset_selection=[step.key for each in batch for step in each.steps],
            tags={"c2tc/tables": ", ".join(tables), **({} if batch[0].is_last else {RETRY_TAG: "true"})},
        )


def _batches(work: Iterable[Work], records: Records, sizes: Mapping[str, int | None]) -> Iterator[list[Work]]:
    small: dict[tuple[str, bool], list[Work]] = {}
    for each in work:
        size = sizes[each.table] if each.table in sizes else _ingested_size(records, each.table)
        if size is None or size > SMALL_BYTES:
            yield [each]
            continue
        waiting = small.setdefault((each.job, each.is_last), [])
        waiting.append(each)
        if len(waiting) == SMALL_TABLES_A_RUN:
            yield small.pop((each.job, each.is_last))
    yield from small.values()


def _ingested_size(records: Records, table: str) -> int | None:
    fingerprint = (records.tags(TableStep(table, "raw_table")) or {}).get(SOURCE_TAG)
    return None if fingerprint is None else version_size(fingerprint)


def busy_tables(instance: dg.DagsterInstance, catalogue: Catalogue) -> set[str]:
    """Return the tables that unfinished runs, however launched, work on; the name is empty for the leaderboard."""
    busy: set[str] = set()
    for run in instance.get_runs(dg.RunsFilter(statuses=UNFINISHED)):
        busy |= {TableStep.of_key(key).table for key in run.asset_selection} if run.asset_selection else {*catalogue}
    return busy


def fingerprints(catalogue: Catalogue) -> dict[str, str | InputError | OSError]:
    """Return the fingerprint of each table's source, or the error that reading it raises.

    A source that does not answer in time is such an error. It is not asked again while its answer is outstanding.
    """
    slots, give_up = threading.Semaphore(_SOURCE_THREADS), time.monotonic() + SOURCE_ANSWER_SECONDS
    asked: dict[str, Future[str]] = {}

    def ask(table: str, answer: Future[str]) -> None:
        try:
            answer.set_result(open_source(catalogue.resolve_source(catalogue[table])).version())
        except BaseException as error:
            answer.set_exception(error)
        slots.release()

    def left() -> float:
        return max(0.0, give_up - time.monotonic())

    for table in catalogue:
        key = (str(catalogue.path), table, str(catalogue[table].source))
        if (outstanding := _OUTSTANDING.get(key)) is not None and not outstanding.done():
            asked[table] = outstanding
        elif slots.acquire(timeout=left()):
            asked[table] = _OUTSTANDING[key] = Future()
            # Not of a pool, whose threads would keep the process from ending.
            threading.Thread(target=ask, args=(table, asked[table]), daemon=True).start()
    found: dict[str, str | InputError | OSError] = {}
    for table in catalogue:
        try:
            if table not in asked:
                raise TimeoutError
            found[table] = asked[table].result(left())
        except TimeoutError:
            found[table] = InputError(f"Its source did not answer within {SOURCE_ANSWER_SECONDS:g} s; check its host.")
        except (InputError, OSError) as error:
            found[table] = error
    return found


def nightly_schedules(catalogue: Catalogue) -> list[dg.ScheduleDefinition]:
    """Return a schedule for each job that launches what is out of date, and what failed; all are off."""
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
        records = Records(context.instance, catalogue)
        if job == "leaderboard_job":
            return [LEADERBOARD_RUN] if leaderboard_due(records) else dg.SkipReason("Everything is up to date.")
        busy = busy_tables(context.instance, catalogue)
        found = fingerprints(catalogue) if job == "condense_job" else {}
        work = [_nightly_work(records, job, table, found.get(table), context.log.warning) for table in catalogue]
        due = requests((each for each in work if each and each.table not in busy), records, {})
        launched = [*itertools.islice(due, MAX_RUNS_A_TICK)]
        if launched:
            return launched
        waiting = [f"{each.table}: its run has not ended yet." for each in work if each]
        return dg.SkipReason(" ".join(waiting or ["Everything is up to date."]))

    return launch


def _nightly_work(
    records: Records,
    job: str,
    table: str,
    fingerprint: str | InputError | OSError | None,
    warn: Callable[[str], object],
) -> Work | None:
    delivered = ""
    try:
        if isinstance(fingerprint, InputError | OSError):
            raise fingerprint
        if fingerprint is not None and records.source_changed(table, fingerprint):
            delivered = fingerprint
    except (InputError, OSError) as error:
        warn(f"{table}: {unreadable(error)}")
    return work_of(records, table, job, delivered=delivered)
