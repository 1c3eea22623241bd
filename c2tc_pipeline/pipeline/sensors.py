"""Sensors that launch new sources and what is out of date, and reload the catalogue."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import dagster as dg

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.acceptance import Accepted
from c2tc_pipeline.pipeline.alerts import DASHBOARD_VARIABLE, SOURCE_ALERTS, Place, is_mistake, report
from c2tc_pipeline.pipeline.jobs import (
    LEADERBOARD_RUN,
    MAX_RUNS_A_TICK,
    OVERVIEW_RUN,
    Work,
    busy_tables,
    fingerprints,
    leaderboard_due,
    overview_due,
    requests,
    work_of,
)
from c2tc_pipeline.pipeline.records import SOURCE_TAG, Records, unreadable
from c2tc_pipeline.pipeline.versioning import TableStep
from c2tc_pipeline.sources.location import without_secrets
from c2tc_pipeline.sources.source import version_size
from c2tc_pipeline.tables.catalogue import Catalogue

INTERVAL_VARIABLE = "C2TC_SENSOR_SECONDS"
AUTOMATION_SENSOR = "out_of_date_sensor"
# Long enough for most copies of files to end between two ticks.
SOURCE_INTERVAL_SECONDS = 60
AUTOMATION_INTERVAL_SECONDS = 15
# Pauses before the second, third and fourth launch of the same work.
RETRY_PAUSES_SECONDS = (60, 300, 1500)
RELOAD_TIMEOUT_SECONDS = 10.0
CATALOGUE_PLACE = Place(None, "catalogue", None)


def interval_seconds(default: int) -> int:
    """Return the interval between ticks: ``C2TC_SENSOR_SECONDS``, or the sensor's default."""
    wanted = os.environ.get(INTERVAL_VARIABLE, "").strip()
    if not wanted:
        return default
    if not wanted.isascii() or not wanted.isdigit() or int(wanted) == 0:
        raise InputError(f"{INTERVAL_VARIABLE} is {wanted!r}; set it to an integer number of seconds above 0.")
    return int(wanted)


def source_sensor(catalogue: Catalogue, jobs: Sequence[Any]) -> dg.SensorDefinition:
    """Return the sensor that launches the condensation of new and changed sources.

    A fingerprint must be the same at two ticks in a row, because that of a file that is still being copied changes.
    A delivery that its check refused is not launched again before it changes. One that could not be read is tried
    again after growing pauses.
    """

    @dg.sensor(
        name="source_sensor",
        jobs=jobs,
        minimum_interval_seconds=interval_seconds(SOURCE_INTERVAL_SECONDS),
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Launches condense_job for each table whose source is new or changed.",
    )
    def launch_changed(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        before: dict[str, dict[str, Any]] = json.loads(context.cursor) if context.cursor else {}
        records, busy = Records(context.instance, catalogue), busy_tables(context.instance, catalogue)
        after, work, notes, sizes = {}, [], [], {}
        looked: dict[Place, str | None] = {}
        for table, fingerprint in fingerprints(catalogue).items():
            state = after[table] = dict(before.get(table, {}))
            problem = unreadable(fingerprint) if isinstance(fingerprint, InputError | OSError) else None
            looked[Place(table, "raw_table", None, "source")] = problem
            if isinstance(fingerprint, InputError | OSError):
                after[table] = {}  # what comes back is launched even if its last run failed because it was gone
                notes.append(f"{table}: {problem}")
                context.log.warning(notes[-1])
            elif fingerprint != state.get("seen"):
                after[table] = {"seen": fingerprint}
                if fingerprint != (records.tags(TableStep(table, "raw_table")) or {}).get(SOURCE_TAG):
                    notes.append(f"{table}: its source is new or changed and is checked again in the next tick.")
            elif state.get("same") != fingerprint and table not in busy:
                if not _changed(records, table, fingerprint, notes):
                    state["same"] = fingerprint
                elif found := work_of(records, table, "condense_job", delivered=fingerprint):
                    work.append(found)
                    sizes[table] = version_size(fingerprint)
        after[SOURCE_ALERTS] = report(context.instance, before.get(SOURCE_ALERTS), looked)
        return _result(context, Tries(after), work, records, notes, sizes)

    return launch_changed


def _changed(records: Records, table: str, fingerprint: str, notes: list[str]) -> bool:
    """Return whether a source holds other bytes than those ingested; one that can't be read now may, later."""
    try:
        return records.source_changed(table, fingerprint)
    except (InputError, OSError) as error:
        notes.append(f"{table}: {unreadable(error)}")
        return False


def automation_sensor(catalogue: Catalogue, jobs: Sequence[Any]) -> dg.SensorDefinition:
    """Return the sensor that launches what is out of date because of settings, algorithms or another run's results.

    Each table has one run at a time: first its condensation, then its scores and report, and when all is done the
    leaderboard. Failed work is tried again after growing pauses, and at once when one of its inputs changes; a mistake
    in data or settings only then.
    """

    @dg.sensor(
        name=AUTOMATION_SENSOR,
        jobs=jobs,
        minimum_interval_seconds=interval_seconds(AUTOMATION_INTERVAL_SECONDS),
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Launches everything whose algorithm, settings or parents' content changed.",
    )
    def launch_out_of_date(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        tries = Tries(json.loads(context.cursor) if context.cursor else {})
        records, busy = Records(context.instance, catalogue), busy_tables(context.instance, catalogue)
        idle = [table for table in catalogue if table not in busy]
        work = [first for table in idle if (first := _first_work(records, table, tries)) is not None]
        if not work and not busy and leaderboard_due(records):
            return dg.SensorResult([LEADERBOARD_RUN], cursor=tries.as_json())
        if not work and not busy and overview_due(context.instance, records):
            return dg.SensorResult([OVERVIEW_RUN], cursor=tries.as_json())
        return _result(context, tries, work, records, [], {})

    return launch_out_of_date


def _first_work(records: Records, table: str, tries: Tries) -> Work | None:
    """Return the next work of a table, skipping work that was given up."""
    found = (work_of(records, table, job) for job in ("condense_job", "report_job"))
    return next((work for work in found if work is not None and not tries.given_up(work)), None)


def _result(
    context: dg.SensorEvaluationContext,
    tries: Tries,
    work: Sequence[Work],
    records: Records,
    notes: Sequence[str],
    sizes: Mapping[str, int | None],
) -> dg.SensorResult:
    """Return the runs of a tick: of work whose pause is over, and not more than a tick may submit.

    Work that failed for a mistake in data or settings is given up.
    """
    for each in work:
        if tries.count(each) and tries.is_due(each) and _was_mistaken(context.instance, records, each):
            tries.give_up(each)
    due = [
        replace(each, attempt=tries.count(each), is_last=tries.count(each) >= len(RETRY_PAUSES_SECONDS))
        for each in work
        if tries.is_due(each)
    ]
    chosen = [*itertools.islice(requests(due, records, sizes), MAX_RUNS_A_TICK)]
    launched = {TableStep.of_key(key).table for request in chosen for key in request.asset_selection or ()}
    for each in due:
        if each.table in launched:
            tries.begin(each)
    return dg.SensorResult(
        run_requests=chosen,
        skip_reason=None if chosen else " ".join(notes) or "Everything is up to date, being made or given up.",
        cursor=tries.as_json(),
    )


def _was_mistaken(instance: dg.DagsterInstance, records: Records, work: Work) -> bool:
    """Return whether the last run of some work failed for a mistake in its table's data or settings."""
    return any(
        event is not None
        and is_mistake(event.step_failure_data)
        and TableStep.of_op(str(event.step_key)).table == work.table
        for run_id in records.last_runs(work.steps)
        for record in instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.STEP_FAILURE).records
        for event in [record.event_log_entry.dagster_event]
    )


class Tries:
    """Number of launches of the same work of each table, and time of the last one; kept as a sensor's cursor."""

    def __init__(self, state: dict[str, dict[str, Any]]) -> None:
        self._state = state

    def _of(self, work: Work) -> tuple[int, float]:
        count, last = self._state.get(work.table, {}).get(work.job, {}).get(work.reason, (0, 0.0))
        return int(count), float(last)

    def count(self, work: Work) -> int:
        """Return how many times work was launched."""
        return self._of(work)[0]

    def given_up(self, work: Work) -> bool:
        """Return whether the limit of launches is reached; the nightly schedules launch it once more."""
        return self.count(work) > len(RETRY_PAUSES_SECONDS)

    def is_due(self, work: Work) -> bool:
        """Return whether the pause since the last launch is over."""
        count, last = self._of(work)
        return not self.given_up(work) and (not count or time.time() - last >= RETRY_PAUSES_SECONDS[count - 1])

    def begin(self, work: Work) -> None:
        """Count a launch, and forget those for other reasons."""
        jobs = self._state.setdefault(work.table, {})
        jobs[work.job] = {work.reason: (self.count(work) + 1, round(time.time(), 1))}

    def give_up(self, work: Work) -> None:
        """Launch work no more."""
        self._state[work.table][work.job] = {work.reason: (len(RETRY_PAUSES_SECONDS) + 1, round(time.time(), 1))}

    def as_json(self) -> str:
        """Return the cursor."""
        return json.dumps(self._state, sort_keys=True)


def catalogue_sensor(accepted: Accepted) -> dg.SensorDefinition:
    """Return the sensor that reloads the code location when the catalogue's file changed.

    Dagster has no call for it in a sensor, so it calls the dashboard at ``C2TC_UI_URL``. A file that is wrong is
    reported in the tick and by one alert, and the catalogue that was loaded stays in force.
    """

    @dg.sensor(
        name="catalogue_sensor",
        minimum_interval_seconds=interval_seconds(AUTOMATION_INTERVAL_SECONDS),
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reloads the code location when the catalogue's file changed.",
    )
    def reload_changed(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        state = json.loads(context.cursor) if context.cursor else {}
        digest, asked = accepted.digest_now(), None
        is_changed = digest != accepted.digest
        problem = accepted.problem_now() if is_changed else None
        if problem is not None:
            said = problem
            context.log.warning(problem)
        elif not is_changed:
            said = "The catalogue is the one that was loaded."
        elif state.get("asked") == digest:
            asked, said = digest, "The catalogue changed and a reload did not load it; start the code server again."
        else:
            refused = _reload()
            asked = None if refused else digest
            said = refused or "The catalogue changed; the code location is being reloaded."
        message = f"{problem} The catalogue loaded before stays in force." if problem else None
        alerts = report(context.instance, state.get("alerts"), {CATALOGUE_PLACE: message}, looks=1)
        context.update_cursor(json.dumps({"asked": asked, "alerts": alerts}))
        return dg.SkipReason(said)

    return reload_changed


def _reload() -> str | None:
    """Ask the dashboard to reload the code location; return None, or what to do instead."""
    dashboard = os.environ.get(DASHBOARD_VARIABLE, "").rstrip("/")
    if not dashboard:
        return f"The catalogue changed; reload the code location, or set {DASHBOARD_VARIABLE} to have it done."
    body = json.dumps({"query": "mutation { reloadWorkspace { __typename } }"}).encode()
    try:
        request = urllib.request.Request(f"{dashboard}/graphql", body, {"Content-Type": "application/json"})
        # Bypass the HTTP proxy of the environment.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=RELOAD_TIMEOUT_SECONDS):
            return None
    except TimeoutError:
        return None  # it has begun, and answers when everything is loaded
    except (OSError, ValueError, http.client.HTTPException) as error:
        name = type(getattr(error, "reason", error)).__name__
        return f"The catalogue changed, but the dashboard at {without_secrets(dashboard)} did not reload ({name})."
