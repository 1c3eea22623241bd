"""Sensors: a new source launches its table, a failed run is told to a webhook.

What decides whether a source is new stands in :mod:`c2tc_pipeline.pipeline.deliveries`; how a message is posted in
:mod:`c2tc_pipeline.pipeline.webhook`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.deliveries import Ingested, unreadable
from c2tc_pipeline.pipeline.intervals import seconds_between_looks
from c2tc_pipeline.pipeline.jobs import ingest_job
from c2tc_pipeline.pipeline.partitions import Partitions
from c2tc_pipeline.pipeline.webhook import post_json
from c2tc_pipeline.sources.location import without_secrets
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline.tables.fingerprint import source_fingerprint

if TYPE_CHECKING:
    from dagster._core.events import DagsterEvent

WEBHOOK_VARIABLE = "C2TC_WEBHOOK_URL"
DASHBOARD_VARIABLE = "C2TC_UI_URL"
# Long enough for most copies to end between two looks, short enough for nobody to wait for it.
SOURCE_INTERVAL_SECONDS = 60
FAILURE_INTERVAL_SECONDS = 30
LONGEST_ERROR = 500


def source_sensor(catalogue: Catalogue) -> dg.SensorDefinition:
    """Return the sensor that launches the ingest of each table whose source is new or changed.

    A fingerprint has to be the same at two ticks in a row before it is acted on: a local file that is still being
    copied has another one each time. A file with the same bytes as the ones ingested launches nothing. Each state of a
    source is judged once, so a delivery that fails is not launched again before it changes; the nightly schedule does
    that. A source that can't be read is named in the tick, and does not hold up the others.

    Parameters
    ----------
    catalogue : Catalogue
        The tables.

    Returns
    -------
    SensorDefinition
        Off until somebody turns it on.
    """

    @dg.sensor(
        name="source_sensor",
        job=ingest_job,
        minimum_interval_seconds=seconds_between_looks(SOURCE_INTERVAL_SECONDS),
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Launches the ingest of each table whose source file is new or changed.",
    )
    def look_at_sources(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        # Of each table: the fingerprint seen last, and the one that was judged last.
        before: dict[str, dict[str, str]] = json.loads(context.cursor) if context.cursor else {}
        after: dict[str, dict[str, str]] = {}
        requests, notes = [], []
        for name, spec in catalogue.items():
            state = after[name] = dict(before.get(name, {}))
            source = catalogue.resolve_source(spec)
            try:
                fingerprint = source_fingerprint(source)
                if fingerprint == state.get("judged"):
                    continue
                if fingerprint != state.get("seen"):
                    state["seen"] = fingerprint
                    notes.append(f"{name}: its source is new or changed and is looked at again in the next tick.")
                    continue
                ingested = Ingested.last(context.instance, name)
                is_news = ingested.is_older_than(source, fingerprint)
            except (InputError, OSError) as error:
                notes.append(f"{name}: {unreadable(error)}")
                context.log.warning(notes[-1])
                continue
            state["judged"] = fingerprint
            if is_news:
                # The event makes a return to earlier bytes another delivery than their first one.
                run_key = f"{name}:{fingerprint}:{ingested.event}"
                requests.append(dg.RunRequest(run_key, partition_key=name))
            else:
                notes.append(f"{name}: its source holds the bytes that were ingested already.")
        reason = " ".join(notes) or "No source changed."
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else reason,
            cursor=json.dumps(after, sort_keys=True),
        )

    return look_at_sources


def failure_sensor() -> dg.SensorDefinition:
    """Return the sensor that posts each failed run to the webhook in ``C2TC_WEBHOOK_URL``.

    It is always there and always on, so that setting the variable is all there is to do; without it nothing is sent.
    A webhook that does not answer is told of in the tick, and the failure is not posted later. ``C2TC_UI_URL``, the
    address of the dashboard, adds a link to the run.

    Returns
    -------
    SensorDefinition
        For all jobs of this code location.

    Examples
    --------
    >>> failure_sensor().name
    'failure_sensor'
    """

    @dg.run_failure_sensor(
        name="failure_sensor",
        minimum_interval_seconds=seconds_between_looks(FAILURE_INTERVAL_SECONDS),
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Posts each failed run to the webhook in {WEBHOOK_VARIABLE}; sends nothing where that is not set.",
    )
    def tell_of_failure(context: dg.RunFailureSensorContext) -> dg.SkipReason | None:
        url = os.environ.get(WEBHOOK_VARIABLE, "").strip()
        if not url:
            return dg.SkipReason(f"{WEBHOOK_VARIABLE} is not set, so nothing is sent.")
        problem = post_json(url, failure_message(context.dagster_run, context.get_step_failure_events()))
        if problem is None:
            return None
        reason = f"The failure of run {context.dagster_run.run_id} was not told to the webhook: {problem}."
        context.log.warning(reason)
        return dg.SkipReason(reason)

    return tell_of_failure


def failure_message(run: dg.DagsterRun, failures: Sequence[DagsterEvent]) -> dict[str, Any]:
    """Return what is told of a failed run.

    Of an error only a sentence meant for people is told, never the text of an unexpected one: that may hold anything.
    The key ``text`` is what chat programs show.

    Parameters
    ----------
    run : DagsterRun
        The run.
    failures : sequence of DagsterEvent
        The failures of its steps.

    Returns
    -------
    dict
        A JSON value.

    Examples
    --------
    >>> run = dg.DagsterRun("ingest_job", run_id="7d1e", tags={"dagster/partition": "flights|0.001"})
    >>> failure_message(run, [])["text"]
    'ingest_job failed for flights|0.001: The run ended before a step failed; see its log.'
    """
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


_NO_STEP = "The run ended before a step failed; see its log."


def _sentence(failure: DagsterEvent) -> str:
    told = failure.step_failure_data
    if told.user_failure_data is not None and told.user_failure_data.description:
        return _first_line(told.user_failure_data.description)
    error = told.error
    while error is not None and error.cause is not None:
        error = error.cause
    if error is None or error.cls_name is None:
        return "The step ended without an error; see its log."
    if error.cls_name in (InputError.__name__, "DagsterAssetCheckFailedError"):
        # Both speak in one sentence that holds names only, Dagster's over two lines; before it stands the class.
        return _first_line(" ".join(error.message.partition(": ")[2].split()))
    return f"The step failed with {error.cls_name}; see its log."


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= LONGEST_ERROR else line[: LONGEST_ERROR - 3] + "..."
