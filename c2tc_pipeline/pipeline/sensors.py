"""Sensors that launch new sources and what is out of date, reload the catalogue, and post failed runs to a webhook."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import dagster as dg

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.retries import with_retries
from c2tc_pipeline.pipeline.acceptance import Accepted
from c2tc_pipeline.pipeline.jobs import (
    LEADERBOARD_RUN,
    MAX_RUNS_A_TICK,
    Work,
    busy_tables,
    fingerprints,
    leaderboard_due,
    requests,
    work_of,
)
from c2tc_pipeline.pipeline.records import SOURCE_TAG, Records, unreadable
from c2tc_pipeline.pipeline.versioning import TableStep
from c2tc_pipeline.sources.location import without_secrets
from c2tc_pipeline.sources.source import version_size
from c2tc_pipeline.tables.catalogue import Catalogue

INTERVAL_VARIABLE = "C2TC_SENSOR_SECONDS"
WEBHOOK_VARIABLE = "C2TC_WEBHOOK_URL"
DASHBOARD_VARIABLE = "C2TC_UI_URL"
AUTOMATION_SENSOR = "out_of_date_sensor"
# Long enough for most copies of files to end between two ticks.
SOURCE_INTERVAL_SECONDS = 60
AUTOMATION_INTERVAL_SECONDS = 15
# Before the second, third and fourth launch of the same work.
RETRY_PAUSES_SECONDS = (60, 300, 1500)
FAILURE_INTERVAL_SECONDS = 30
MAX_ERROR_LENGTH = 500
RELOAD_TIMEOUT_SECONDS = 10.0
# Dagster gives one tick of a sensor a minute, and passes it up to five failed runs: 5 x (3 x 3 + 1.5) s is below it.
WEBHOOK_TRIES = 3
WEBHOOK_TIMEOUT_SECONDS = 3.0
WEBHOOK_PAUSE_SECONDS = 0.5
_NO_STEP = "The run ended before a step failed; see its log."


def interval_seconds(default: int) -> int:
    """Return the interval between ticks: ``C2TC_SENSOR_SECONDS``, or the sensor's default."""
    wanted = os.environ.get(INTERVAL_VARIABLE, "").strip()
    if not wanted:
        return default
    if not wanted.isascii() or not wanted.isdigit() or int(wanted) == 0:
        raise InputError(f"{INTERVAL_VARIABLE} is {wanted!r}; set it to an integer number of seconds above 0.")
    return int(wanted)


def source_sensor(catalogue: Catalogue, jobs: Sequence[Any]) -> dg.SensorDefinition:
    """Return the sensor that launches what a new or changed source is made into.

    A fingerprint must be the same at two ticks in a row, because a file that is still being copied has another one each
    time. A delivery that was read has been judged: one that its check refused is not launched again before it changes.
    One that could not be read is tried again after growing pauses.
    """

    @dg.sensor(
        name="source_sensor",
        jobs=jobs,
        minimum_interval_seconds=interval_seconds(SOURCE_INTERVAL_SECONDS),
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Launches condense_job for each table whose source is new or changed.",
    )
    def launch_changed(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        before: dict[str, dict[str, str]] = json.loads(context.cursor) if context.cursor else {}
        records, busy = Records(context.instance, catalogue), busy_tables(context.instance, catalogue)
        after, work, notes, sizes = {}, [], [], {}
        for table, fingerprint in fingerprints(catalogue).items():
            state = after[table] = dict(before.get(table, {}))
            if isinstance(fingerprint, InputError | OSError):
                notes.append(f"{table}: {unreadable(fingerprint)}")
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

    Of each table one run is launched: what condenses it first, then its scores and report, and when all is done the
    leaderboard. What failed is tried again after growing pauses, and at once when anything it is made from changes.
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
        return _result(context, tries, work, records, [], {})

    return launch_out_of_date


def _first_work(records: Records, table: str, tries: Tries) -> Work | None:
    """Return what the first job with something to make of a table makes, passing over what was given up."""
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
    """Return the runs of a tick: of work whose pause is over, and not more than a tick may submit."""
    due = [replace(each, attempt=tries.count(each)) for each in work if tries.is_due(each)]
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


class Tries:
    """How many times the same work of a table was launched, and when last; kept as a sensor's cursor."""

    def __init__(self, state: dict[str, dict[str, Any]]) -> None:
        self._state = state

    def _of(self, work: Work) -> tuple[int, float]:
        count, last = self._state.get(work.table, {}).get(work.job, {}).get(work.reason, (0, 0.0))
        return int(count), float(last)

    def count(self, work: Work) -> int:
        """Return how many times it was launched."""
        return self._of(work)[0]

    def given_up(self, work: Work) -> bool:
        """Return whether it was launched as often as is sensible; the nightly schedules launch it once more."""
        return self.count(work) > len(RETRY_PAUSES_SECONDS)

    def is_due(self, work: Work) -> bool:
        """Return whether the pause since the last time is over."""
        count, last = self._of(work)
        return not self.given_up(work) and (not count or time.time() - last >= RETRY_PAUSES_SECONDS[count - 1])

    def begin(self, work: Work) -> None:
        """Count a launch, and forget those for other reasons."""
        jobs = self._state.setdefault(work.table, {})
        jobs[work.job] = {work.reason: (self.count(work) + 1, round(time.time(), 1))}

    def as_json(self) -> str:
        """Return the cursor."""
        return json.dumps(self._state, sort_keys=True)


def catalogue_sensor(accepted: Accepted) -> dg.SensorDefinition:
    """Return the sensor that reloads the code location when the catalogue's file changed.

    Dagster has no call for it in a sensor, so it asks the dashboard at ``C2TC_UI_URL``. A file that is wrong is
    reported once, in the tick and to the webhook, and the catalogue that was loaded stays in force.
    """

    @dg.sensor(
        name="catalogue_sensor",
        minimum_interval_seconds=interval_seconds(AUTOMATION_INTERVAL_SECONDS),
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reloads the code location when the catalogue's file changed.",
    )
    def reload_changed(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        digest = accepted.digest_now()
        if digest == accepted.digest:
            context.update_cursor("")
            return dg.SkipReason("The catalogue is the one that was loaded.")
        problem = accepted.problem_now()
        if problem is None and context.cursor == digest:
            return dg.SkipReason("The catalogue changed and a reload did not load it; start the code server again.")
        if problem is None:
            refused = _reload()
            context.update_cursor("" if refused else str(digest))
            return dg.SkipReason(refused or "The catalogue changed; the code location is being reloaded.")
        url = os.environ.get(WEBHOOK_VARIABLE, "").strip()
        if url and context.cursor != digest:
            post_json(url, {"text": f"{problem} The catalogue loaded before stays in force.", "error": problem})
        context.update_cursor(digest)
        context.log.warning(problem)
        return dg.SkipReason(problem)

    return reload_changed


def _reload() -> str | None:
    """Ask the dashboard to reload the code location; return None, or what to do instead."""
    dashboard = os.environ.get(DASHBOARD_VARIABLE, "").rstrip("/")
    if not dashboard:
        return f"The catalogue changed; reload the code location, or set {DASHBOARD_VARIABLE} to have it done."
    body = json.dumps({"query": "mutation { reloadWorkspace { __typename } }"}).encode()
    try:
        request = urllib.request.Request(f"{dashboard}/graphql", body, {"Content-Type": "application/json"})
        # A proxy of the environment is not for one's own dashboard.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=RELOAD_TIMEOUT_SECONDS):
            return None
    except TimeoutError:
        return None  # it has begun, and answers when everything is loaded
    except (OSError, ValueError, http.client.HTTPException) as error:
        name = type(getattr(error, "reason", error)).__name__
        return f"The catalogue changed, but the dashboard at {without_secrets(dashboard)} did not reload ({name})."


def failure_sensor() -> dg.SensorDefinition:
    """Return the sensor that posts each failed run to the webhook in ``C2TC_WEBHOOK_URL``.

    A webhook that does not answer is reported in the tick, and the failure is not posted later. ``C2TC_UI_URL``, the
    address of the dashboard, adds a link to the run.
    """

    @dg.run_failure_sensor(
        name="failure_sensor",
        minimum_interval_seconds=interval_seconds(FAILURE_INTERVAL_SECONDS),
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Posts each failed run to the webhook in {WEBHOOK_VARIABLE}; sends nothing where that is not set.",
    )
    def post_failure(context: dg.RunFailureSensorContext) -> dg.SkipReason | None:
        url = os.environ.get(WEBHOOK_VARIABLE, "").strip()
        if not url:
            return dg.SkipReason(f"{WEBHOOK_VARIABLE} is not set, so nothing is sent.")
        problem = post_json(url, failure_message(context.dagster_run, context.get_step_failure_events()))
        if problem is None:
            return None
        reason = f"The failure of run {context.dagster_run.run_id} was not posted to the webhook: {problem}."
        context.log.warning(reason)
        return dg.SkipReason(reason)

    return post_failure


def failure_message(run: dg.DagsterRun, failures: Sequence[dg.DagsterEvent]) -> dict[str, Any]:
    """Return the message about a failed run; the text of an unexpected error is left out, as it may hold secrets."""
    step, error = (failures[0].step_key, _sentence(failures[0])) if failures else (None, _NO_STEP)
    failed = TableStep.of_op(step or "")
    table, ratio, partition = failed.table or None, failed.ratio, failed.partition
    dashboard = without_secrets(os.environ.get(DASHBOARD_VARIABLE, "")).rstrip("/")
    return {
        "text": f"{run.job_name} failed{f' for {partition}' if partition else ''}: {error}",
        "job": run.job_name,
        "partition": partition,
        "table": table,
        "ratio": ratio,
        "step": step,
        "error": error,
        "run_id": run.run_id,
        "link": f"{dashboard}/runs/{run.run_id}" if dashboard else None,
    }


def _sentence(failure: dg.DagsterEvent) -> str:
    failed = failure.step_failure_data
    if failed.user_failure_data is not None and failed.user_failure_data.description:
        return _first_line(failed.user_failure_data.description)
    error = failed.error
    while error is not None and error.cause is not None:
        error = error.cause
    if error is None or error.cls_name is None:
        return "The step ended without an error; see its log."
    if error.cls_name in (InputError.__name__, "DagsterAssetCheckFailedError"):
        # Both messages are one sentence of names only, Dagster's over two lines, after the name of the class.
        return _first_line(" ".join(error.message.partition(": ")[2].split()))
    return f"The step failed with {error.cls_name}; see its log."


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= MAX_ERROR_LENGTH else line[: MAX_ERROR_LENGTH - 3] + "..."


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuse redirects, which would turn the post into a get and send it to a host that was not configured."""

    def redirect_request(self, *_: Any) -> None:
        return None


def post_json(url: str, message: Mapping[str, Any]) -> str | None:
    """Post a message with a few retries; return None, or why it failed without the URL, which is a secret."""
    if not url.lower().startswith(("http://", "https://")):
        return "its address does not begin with http:// or https://"
    body = json.dumps(message).encode()
    try:
        with_retries(lambda: _post_once(url, body), WEBHOOK_TRIES, pause=WEBHOOK_PAUSE_SECONDS)
    except (ConnectionError, InputError) as error:
        return str(error)
    return None


def _post_once(url: str, body: bytes) -> None:
    """Post once; raise ConnectionError where a retry may help, else InputError."""
    try:
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=WEBHOOK_TIMEOUT_SECONDS):
            return
    except urllib.error.HTTPError as error:
        is_transient = error.code == 429 or error.code >= 500
        problem = f"it answered {error.code}"
    except (OSError, http.client.HTTPException) as error:
        is_transient = not isinstance(error, http.client.InvalidURL)
        problem = f"it could not be reached ({type(getattr(error, 'reason', error)).__name__})"
    except ValueError:
        is_transient, problem = False, "its address is not a valid one"
    raise (ConnectionError if is_transient else InputError)(problem)
