"""Sensors that launch new sources and out-of-date partitions."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

import dagster as dg

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.alerts import SOURCE_ALERTS, Place, report
from c2tc_pipeline.pipeline.ledger import Ingested, unreadable
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.tables.catalogue import Catalogue

INTERVAL_VARIABLE = "C2TC_SENSOR_SECONDS"
AUTOMATION_SENSOR = "out_of_date_sensor"
# Long enough for most copies of files to end between two ticks.
SOURCE_INTERVAL_SECONDS = 60
AUTOMATION_INTERVAL_SECONDS = 30


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
        before: dict[str, Any] = json.loads(context.cursor) if context.cursor else {}
        after: dict[str, Any] = {}
        requests, notes = [], []
        problems: dict[str, str] = {}
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
                problems[name] = unreadable(error)
                notes.append(f"{name}: {problems[name]}")
                context.log.warning(notes[-1])
                continue
            state["judged"] = fingerprint
            if is_new:
                # With the event, a return to earlier bytes is another delivery than their first one.
                requests.append(dg.RunRequest(f"{name}:{fingerprint}:{ingested.event}", partition_key=name))
            else:
                notes.append(f"{name}: its source holds the bytes that were ingested already.")
        looked = {Place(name, "raw_table", None, "source"): problems.get(name) for name in catalogue}
        after[SOURCE_ALERTS] = report(context.instance, before.get(SOURCE_ALERTS), looked)
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
