"""The states of tables for the overview, from what Dagster recorded of assets and runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import dagster as dg

from c2tc_pipeline.pipeline.alerts import DASHBOARD_VARIABLE, run_sentence, step_sentence
from c2tc_pipeline.pipeline.formats import PAGE_NAME
from c2tc_pipeline.pipeline.jobs import UNFINISHED
from c2tc_pipeline.pipeline.metadata import ACCURACY_KEPT, WORTH
from c2tc_pipeline.pipeline.versioning import TableStep, table_steps
from c2tc_pipeline.reports.overview import TableState
from c2tc_pipeline.sources.location import without_secrets
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline.tables.spec import TableSpec

_CHECKED = dg.DagsterEventType.ASSET_CHECK_EVALUATION
_EVENTS = {_CHECKED, dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE}
Events = Callable[[str], list[dg.EventLogEntry]]


def table_states(instance: dg.DagsterInstance, catalogue: Catalogue, *, now: float) -> list[TableState]:
    """Return the state of each table of a catalogue at a moment, in seconds since 1970."""

    @cache  # small tables share runs
    def events(run_id: str) -> list[dg.EventLogEntry]:
        return [each.event_log_entry for each in instance.get_records_for_run(run_id, of_type=_EVENTS).records]

    return [_state(spec, instance, events, now) for spec in catalogue.values()]


def _state(spec: TableSpec, instance: dg.DagsterInstance, events: Events, now: float) -> TableState:
    found = [each.asset_entry for each in instance.get_asset_records([step.key for step in table_steps(spec)])]
    entries = {TableStep.of_key(entry.asset_key): entry for entry in found}
    made = {step: entry.last_materialization for step, entry in entries.items() if entry.last_materialization}
    metadata: dict[TableStep, dict[str, Any]] = {
        step: {name: value.value for name, value in event.asset_materialization.metadata.items()}
        for step, event in made.items()
        if event.asset_materialization is not None
    }
    # A run that planned a step and has not made it failed there, or is not over.
    planned = {
        entry.last_run_id
        for step, entry in entries.items()
        if step not in made or made[step].run_id != entry.last_run_id
    }
    runs = [run for each in sorted(filter(None, planned)) if (run := instance.get_run_by_id(each)) is not None]
    failures = [_failure(spec.name, events(run.run_id)) for run in runs if run.is_failure]
    condensed = {step: each for step, each in metadata.items() if step.step == "condensed_table"}
    scores = [each for step, each in metadata.items() if step.step == "evaluation_scores"]
    cost = metadata.values() if condensed else ()
    worst: Mapping[str, Any] = min(scores, key=lambda each: each.get(ACCURACY_KEPT, float("inf")), default={})
    accepted, report = made.get(TableStep(spec.name, "validated_table")), TableStep(spec.name, "report")
    if any(run.status in UNFINISHED for run in runs):
        state = "running"
    elif failures:
        state = "failed"
    elif not condensed:
        state = "missing"
    else:
        is_late = spec.fresh_hours and accepted and now - accepted.timestamp > 3600 * spec.fresh_hours
        state = "late" if is_late else "fresh"
    return TableState(
        spec.name,
        state,
        age_seconds=now - min(made[step].timestamp for step in condensed) if condensed else None,
        rows_in=_over(max, "rows_in", condensed.values()),
        rows_out=[each["rows_out"] for each in condensed.values() if "rows_out" in each],
        verdict=worst.get("verdict", ""),
        row_worth=worst.get(WORTH, ""),
        kept=worst.get(ACCURACY_KEPT),
        seconds=_over(sum, "seconds", cost),
        cpu_seconds=_over(sum, "cpu_seconds", cost),
        peak_memory_mb=_over(max, "peak_memory_mb", cost),
        failure=max(failures)[1] if failures else "",
        warnings=_warnings(made, events),
        report=_address(report) if report in made else "",
    )


def _over(join: Callable[[list[Any]], Any], name: str, metadata: Iterable[Mapping[str, Any]]) -> Any:
    """Return the sum or maximum of a number over materialisations, None if none recorded it."""
    numbers = [each[name] for each in metadata if name in each]
    return join(numbers) if numbers else None


def _failure(table: str, entries: Iterable[dg.EventLogEntry]) -> tuple[float, str]:
    """Return when a run failed, and at which step of a table and why."""
    failed, ended, why = "", 0.0, ""
    for entry in entries:
        event = entry.get_dagster_event()
        if event.is_step_failure and TableStep.of_op(str(event.step_key)).table == table:
            failed = failed or f"{TableStep.of_op(str(event.step_key)).name}: {step_sentence(event.step_failure_data)}"
        elif event.event_type is dg.DagsterEventType.RUN_FAILURE:
            ended, why = entry.timestamp, run_sentence(event.message, getattr(event.event_specific_data, "error", None))
    return ended, failed or why


def _warnings(made: Mapping[TableStep, dg.EventLogEntry], events: Events) -> list[str]:
    """Return the messages of failed checks that stop nothing, of the newest materialisations, by step."""
    said = {}
    for run_id in {event.run_id for event in made.values() if event.run_id}:
        for event in (entry.get_dagster_event() for entry in events(run_id)):
            check: Any = event.event_specific_data
            if event.event_type is _CHECKED and not check.passed and check.severity == dg.AssetCheckSeverity.WARN:
                step = TableStep.of_key(check.asset_key)
                if step in made and made[step].run_id == run_id:
                    said[step.name, check.check_name] = f"{step.name}: {check.description or check.check_name}"
    return [said[key] for key in sorted(said)]


def _address(report: TableStep) -> str:
    """Return the address of a report: its page in the dashboard, or its place beside the exported overview."""
    dashboard = without_secrets(os.environ.get(DASHBOARD_VARIABLE, "")).rstrip("/")
    return f"{dashboard}/assets/{'/'.join(report.key.path)}" if dashboard else f"{report.table}/{PAGE_NAME}"
