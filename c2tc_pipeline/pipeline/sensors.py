"""Sensors that launch new sources and out-of-date partitions, and post failed runs to a webhook."""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.request
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.retries import with_retries
from c2tc_pipeline.pipeline.ledger import Ingested, unreadable
from c2tc_pipeline.pipeline.versioning import Partitions
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.sources.location import without_secrets
from c2tc_pipeline.tables.catalogue import Catalogue

INTERVAL_VARIABLE = "C2TC_SENSOR_SECONDS"
WEBHOOK_VARIABLE = "C2TC_WEBHOOK_URL"
DASHBOARD_VARIABLE = "C2TC_UI_URL"
AUTOMATION_SENSOR = "out_of_date_sensor"
# Long enough for most copies of files to end between two ticks.
SOURCE_INTERVAL_SECONDS = 60
AUTOMATION_INTERVAL_SECONDS = 30
FAILURE_INTERVAL_SECONDS = 30
MAX_ERROR_LENGTH = 500
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


def source_sensor(catalogue: Catalogue) -> dg.SensorDefinition:
    """Return the sensor that launches the ingest of each table whose source is new or changed.

    A fingerprint must be the same at two ticks in a row, because a file that is still being copied has another one each
    time. Each state of a source is judged once, so that a delivery that fails is not launched again before it changes;
    the nightly schedule does that.
    """

    @dg.sensor(
        name="source_sensor",
        job_name="ingest_job",
        minimum_interval_seconds=interval_seconds(SOURCE_INTERVAL_SECONDS),
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Launches the ingest of each table whose source file is new or changed.",
    )
    def launch_changed(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        # For each table: the fingerprint seen last, and the one judged last.
        before: dict[str, dict[str, str]] = json.loads(context.cursor) if context.cursor else {}
        after: dict[str, dict[str, str]] = {}
        requests, notes = [], []
        for name, spec in catalogue.items():
            state = after[name] = dict(before.get(name, {}))
            source = catalogue.resolve_source(spec)
            try:
                fingerprint = open_source(source).version()
                if fingerprint == state.get("judged"):
                    continue
                if fingerprint != state.get("seen"):
                    state["seen"] = fingerprint
                    notes.append(f"{name}: its source is new or changed and is checked again in the next tick.")
                    continue
                ingested = Ingested.last(context.instance, name)
                is_new = ingested.is_older_than(source, fingerprint)
            except (InputError, OSError) as error:
                notes.append(f"{name}: {unreadable(error)}")
                context.log.warning(notes[-1])
                continue
            state["judged"] = fingerprint
            if is_new:
                # With the event, a return to earlier bytes is another delivery than their first one.
                requests.append(dg.RunRequest(f"{name}:{fingerprint}:{ingested.event}", partition_key=name))
            else:
                notes.append(f"{name}: its source holds the bytes that were ingested already.")
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else " ".join(notes) or "No source changed.",
            cursor=json.dumps(after, sort_keys=True),
        )

    return launch_changed


def automation_sensor(target: dg.AssetSelection) -> dg.AutomationConditionSensorDefinition:
    """Return the sensor that evaluates the automation conditions; it is off until turned on."""
    with warnings.catch_warnings():
        # Evaluating on the code server is beta, and the only way to evaluate a condition of one's own.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.AutomationConditionSensorDefinition(
            AUTOMATION_SENSOR,
            target=target,
            use_user_code_server=True,
            # One run per partition: in a backfill, all tables would wait for the slowest.
            emit_backfills=False,
            minimum_interval_seconds=interval_seconds(AUTOMATION_INTERVAL_SECONDS),
            description="Launches every partition whose algorithm, settings or parents' content changed.",
        )


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
    partition = run.tags.get("dagster/partition")
    table, ratio = Partitions.parse(partition) if partition else (None, None)
    step, error = (failures[0].step_key, _sentence(failures[0])) if failures else (None, _NO_STEP)
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
