"""Alerts: one message when a cause of failure is certain, and one when it is over.

A cause is a step or a check of a table. It is certain once nothing will be retried any more, at once for a mistake in
data or settings, and over once the asset is materialised, or the check passes. Dagster's run failure sensors see one
run at a time, not the checks of successful runs, and keep no state, so that each failed run of the same table would be
reported, and its recovery not.

Cancelled runs are not reported, as restarting the services cancels runs.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

import dagster as dg

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.io_managers import MISTAKE
from c2tc_pipeline.pipeline.messages import Deliver, Message, send, targets
from c2tc_pipeline.pipeline.run_events import error_chain, is_interrupt
from c2tc_pipeline.pipeline.versioning import TableStep
from c2tc_pipeline.sources.location import without_secrets
from c2tc_pipeline.tables.spec import TableSpec

SOURCE_ALERTS = "*alerts"
"""The key in the cursor of the source sensor that no table can have."""
RETRY_TAG = "c2tc/retry_follows"
"""The tag of runs whose work a sensor launches again if they fail, so that their failures are not certain."""
DASHBOARD_VARIABLE = "C2TC_UI_URL"
INTERVAL_SECONDS = 30
ALERTED_WARNINGS = frozenset({"label_drift", "accurate_enough", "steady_quality"})
"""Checks that stop nothing, but whose failures are reported."""
MAX_SENTENCE = 500
# The cursor holds open causes and undelivered messages: what is older than these many is forgotten.
MAX_OPEN = 1000
MAX_UNDELIVERED = 100
# Dagster gives a tick a minute.
_SENDING_SECONDS = 30.0
_RUNS_AT_ONCE = 100
_TABLES_SHOWN = 5
# Dagster decides whether it retries a run just after the run's failure is stored.
_DECISION_SECONDS = 60.0
_CONDENSED = "condensed_table"
_LOST = "The process of the run was lost: killed, out of memory, or ended with its machine or container."
_EVENTS = {
    dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
    dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED,
    dg.DagsterEventType.ASSET_MATERIALIZATION,
    dg.DagsterEventType.ASSET_CHECK_EVALUATION,
    dg.DagsterEventType.STEP_FAILURE,
    dg.DagsterEventType.RUN_FAILURE,
}


class Place(NamedTuple):
    """A step or a check of a table, and the ratio where it has one."""

    table: str | None
    step: str
    ratio: str | None
    check: str | None = None

    @property
    def cause(self) -> str:
        """The key under which failures at this place are one cause, whatever the ratio."""
        return "/".join([self.table or "", self.step, *([self.check] if self.check else [])])


def place_of(key: dg.AssetKey, check: str | None = None) -> Place:
    """Return the table, step and ratio of an asset."""
    found = TableStep.of_key(key)
    return Place(found.table or None, found.step, None if found.ratio is None else f"{found.ratio:g}", check)


@dataclass
class Cause:
    """An open cause: what is wrong, at which ratios, since when, and the run that found it."""

    table: str | None
    step: str
    check: str | None
    problem: str
    level: str
    since: float
    run_id: str | None
    ratios: list[str | None] = field(default_factory=list)

    @property
    def subject(self) -> str:
        """What fails, in a few words."""
        return self.step if self.check is None else f"{self.step}, check {self.check}"

    def place(self, ratio: str | None) -> Place:
        """Return the place of the cause at a ratio."""
        return Place(self.table, self.step, ratio, self.check)


class Alerts:
    """Open causes and undelivered messages, which a sensor keeps in its cursor in the form of :meth:`dump`."""

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        state = state or {}
        self.open = {key: Cause(**found) for key, found in state.get("open", {}).items()}
        self._outbox: list[dict[str, Any]] = list(state.get("outbox", []))
        self._opened: dict[str, Cause] = {}
        self._over: dict[str, Cause] = {}
        self._removed: dict[str, Cause] = {}

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        newest = list(self.open.items())[-MAX_OPEN:]
        return {"open": {key: asdict(cause) for key, cause in newest}, "outbox": self._outbox[-MAX_UNDELIVERED:]}

    def fail(
        self, place: Place, problem: str, *, since: float, run_id: str | None = None, level: str = "error"
    ) -> None:
        """Record a failure; a cause that is open already is only reported again if its problem differs.

        A step that fails in the words of an open check of its table, as one that refuses a delivery does, is no cause.
        """
        key, problem = place.cause, _one_line(problem)
        if place.check is None and any(
            each.check is not None and (each.table, each.problem) == (place.table, problem)
            for each in self.open.values()
        ):
            return
        before = self.open.get(key)
        if before is not None and before.problem == problem:
            if place.ratio not in before.ratios:
                before.ratios.append(place.ratio)
            return
        ratios = [] if before is None else before.ratios
        cause = Cause(place.table, place.step, place.check, problem, level, since, run_id, ratios)
        if place.ratio not in ratios:
            ratios.append(place.ratio)
        if before is not None:
            cause.since = before.since
        self.open[key] = self._opened[key] = cause
        self._over.pop(key, None)

    def pass_(self, place: Place) -> None:
        """Record a success; a cause is over once its last ratio succeeded."""
        cause = self.open.get(place.cause)
        if cause is None:
            return
        # A success without a ratio ends the failures of all ratios, and any success ends a failure without a ratio.
        cause.ratios = [each for each in cause.ratios if None not in (each, place.ratio) and each != place.ratio]
        if cause.ratios:
            return
        del self.open[place.cause]
        if self._opened.pop(place.cause, None) is None:
            self._over[place.cause] = cause

    def keep(self, is_known: Callable[[Place], bool]) -> None:
        """Close the causes whose table, or all of whose ratios, are no longer known."""
        for key, cause in list(self.open.items()):
            cause.ratios = [each for each in cause.ratios if is_known(cause.place(each))]
            if not cause.ratios:
                del self.open[key]
                if self._opened.pop(key, None) is None:
                    self._removed[key] = cause

    def write(self, instance: dg.DagsterInstance, names: Iterable[str]) -> None:
        """Write the messages on what changed for these targets; the same problem of several tables is one message."""
        to = list(names)
        for state, changed in (("failing", self._opened), ("over", self._over), ("removed", self._removed)):
            groups: dict[tuple[str, str], list[Cause]] = {}
            for cause in changed.values():
                groups.setdefault((cause.subject, cause.problem), []).append(cause)
            if to:
                self._outbox += [{"to": to, "message": _message(state, each, instance)} for each in groups.values()]
            changed.clear()

    def deliver(self, found: Mapping[str, Deliver]) -> list[str]:
        """Send what was not delivered yet, oldest first; return why some of it was not."""
        give_up = time.monotonic() + _SENDING_SECONDS
        problems: dict[str, str] = {}
        left: list[dict[str, Any]] = []
        for entry in self._outbox:
            remaining = []
            for name in (name for name in entry["to"] if name in found):
                late = time.monotonic() > give_up
                problem = problems.get(name) or ("the tick has no time left" if late else None)
                problem = problem or send(found[name], entry["message"])
                if problem is not None:
                    # Later messages wait, so that they arrive in order.
                    problems[name] = problem
                    remaining.append(name)
            if remaining:
                left.append({**entry, "to": remaining})
        self._outbox = left
        return [f"An alert was not delivered by {name}: {problem}." for name, problem in problems.items()]


def alert_sensor(
    catalogue: Mapping[str, TableSpec] | None = None, *, interval_seconds: int = INTERVAL_SECONDS
) -> dg.SensorDefinition:
    """Return the sensor that sends an alert for each cause of failure, and a message when it is over.

    A table whose last accepted delivery is older than its ``fresh_within`` is late: Dagster evaluates freshness
    policies, but offers the outcome on its pages only. Causes at tables and ratios that the catalogue does not list any
    more are closed.
    """
    hours = {name: spec.fresh_hours for name, spec in (catalogue or {}).items()}
    limits = {TableStep(name, "validated_table").key: timedelta(hours=each) for name, each in hours.items() if each}

    def is_known(place: Place) -> bool:
        if place.table is None or catalogue is None:
            return True
        ratios = catalogue[place.table].ratios if place.table in catalogue else ()
        return place.table in catalogue and (place.ratio is None or place.ratio in [f"{each:g}" for each in ratios])

    @dg.sensor(
        name="alert_sensor",
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Sends one message when a table fails for certain, and one when that is over.",
    )
    def watch(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        state = json.loads(context.cursor) if context.cursor else {"position": _newest(context.instance)}
        problems: list[str] = []
        try:
            found = targets()
        except InputError as error:
            found, problems = {}, [str(error)]
        alerts = Alerts(state)
        position = _take_runs(context.instance, alerts, state["position"])
        _judge_freshness(context.instance, alerts, limits)
        alerts.keep(is_known)
        alerts.write(context.instance, found)
        problems += alerts.deliver(found)
        context.update_cursor(json.dumps({"position": position, **alerts.dump()}, sort_keys=True))
        for problem in problems:
            context.log.warning(problem)
        return dg.SkipReason(" ".join([f"Open causes: {', '.join(alerts.open) or 'none'}.", *problems]))

    return watch


def report(
    instance: dg.DagsterInstance,
    state: Mapping[str, Any] | None,
    problems: Mapping[Place, str | None],
    *,
    looks: int = 2,
) -> dict[str, Any]:
    """Send alerts for problems that a sensor finds at several ticks in a row, and messages when they are over.

    ``problems`` says what is wrong with each place, None if nothing is; causes at other places are closed. Returns the
    ``state`` for the next call; JSON.
    """
    state = state or {}
    alerts, before = Alerts(state), state.get("seen", {})
    seen: dict[str, int] = {}
    for place, problem in problems.items():
        if problem is None:
            alerts.pass_(place)
            continue
        seen[place.cause] = before.get(place.cause, 0) + 1
        if seen[place.cause] >= looks:
            alerts.fail(place, problem, since=time.time())
    alerts.keep(lambda place: place in problems)
    try:
        found = targets()
    except InputError:  # the alert sensor reports it
        found = {}
    alerts.write(instance, found)
    alerts.deliver(found)
    return {"seen": seen, **alerts.dump()}


_ENDINGS: tuple[Literal[dg.DagsterEventType.RUN_FAILURE], Literal[dg.DagsterEventType.RUN_SUCCESS]] = (
    dg.DagsterEventType.RUN_FAILURE,
    dg.DagsterEventType.RUN_SUCCESS,
)


def _newest(instance: dg.DagsterInstance) -> int:
    """Return the number of the newest event of a run's end, so that earlier ones are not reported."""
    found = [instance.fetch_run_status_changes(each, limit=1).records for each in _ENDINGS]
    return max((record.storage_id for records in found for record in records), default=0)


def _take_runs(instance: dg.DagsterInstance, alerts: Alerts, position: int) -> int:
    """Record the results of the runs that ended after a position; return the new position."""
    records: list[dg.EventLogRecord] = []
    complete_until: int | None = None
    for ending in _ENDINGS:
        wanted = dg.RunStatusChangeRecordsFilter(ending, after_storage_id=position)
        page = instance.fetch_run_status_changes(wanted, _RUNS_AT_ONCE, ascending=True).records
        records += page
        if len(page) == _RUNS_AT_ONCE:
            complete_until = min(complete_until or page[-1].storage_id, page[-1].storage_id)
    for record in sorted(records, key=lambda record: record.storage_id):
        if complete_until is not None and record.storage_id > complete_until:
            break
        run = instance.get_run_by_id(record.run_id)
        if run is not None:
            will_retry = run.tags.get("dagster/will_retry") if run.is_failure else "false"
            is_young = time.time() - record.timestamp < _DECISION_SECONDS
            if will_retry is None and is_young and instance.run_retries_enabled:
                break
            is_certain = "true" not in (will_retry, run.tags.get(RETRY_TAG))
            _take_run(instance, alerts, run, record.timestamp, is_certain=is_certain)
        position = record.storage_id
    return position


def _take_run(
    instance: dg.DagsterInstance, alerts: Alerts, run: dg.DagsterRun, ended: float, *, is_certain: bool
) -> None:
    """Record the materialisations, checks and failures of a run that ended."""
    places: dict[str | None, Place] = {}
    unmade: dict[Place, None] = {}
    refused: set[str | None] = set()
    is_explained = False
    for record in instance.get_records_for_run(run.run_id, of_type=_EVENTS).records:
        event = record.event_log_entry.dagster_event
        if event is None:
            continue
        data: Any = event.event_specific_data
        match event.event_type:
            case dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED:
                place = places[event.step_key] = place_of(data.asset_key)
                unmade[place] = None
            case dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED:
                places[event.step_key] = place_of(data.asset_key, data.check_name)
            case dg.DagsterEventType.ASSET_MATERIALIZATION:
                made = data.materialization
                place = place_of(made.asset_key)
                unmade.pop(place, None)
                alerts.pass_(place)
            case dg.DagsterEventType.ASSET_CHECK_EVALUATION:
                place = place_of(data.asset_key, data.check_name)
                if data.passed:
                    alerts.pass_(place)
                elif data.blocking or data.severity == dg.AssetCheckSeverity.ERROR:
                    refused.add(event.step_key)
                    alerts.fail(place, data.description or "The check failed.", since=ended, run_id=run.run_id)
                elif data.check_name in ALERTED_WARNINGS:
                    said = data.description or "The check failed."
                    alerts.fail(place, said, since=ended, run_id=run.run_id, level="warning")
            case dg.DagsterEventType.STEP_FAILURE if event.step_key not in refused and (is_certain or is_mistake(data)):
                is_explained = True
                place = places.get(event.step_key) or Place(None, str(event.step_key), None)
                if not is_interrupt(data.error):
                    alerts.fail(place, step_sentence(data), since=ended, run_id=run.run_id)
            case dg.DagsterEventType.RUN_FAILURE if is_certain and not (is_explained or refused):
                error = getattr(data, "error", None)
                if not is_interrupt(error):
                    first = {place.table: place for place in reversed(unmade)}
                    for place in first.values() or [Place(None, run.job_name, None)]:
                        alerts.fail(place, run_sentence(event.message, error), since=ended, run_id=run.run_id)


def _judge_freshness(instance: dg.DagsterInstance, alerts: Alerts, limits: Mapping[dg.AssetKey, timedelta]) -> None:
    """Record the assets that are late; one that was never made is not, as it may just have been added."""
    if not limits:
        return
    for found in instance.get_asset_records(list(limits)):
        entry = found.asset_entry
        event, limit = entry.last_materialization, limits[entry.asset_key]
        if event is None:
            continue
        place = place_of(entry.asset_key, "freshness")
        if time.time() - event.timestamp <= limit.total_seconds():
            alerts.pass_(place)
        else:
            hours = limit.total_seconds() / 3600
            problem = f"No accepted delivery since {_moment(event.timestamp)}; expected every {hours:g} hours at least."
            alerts.fail(place, problem, since=event.timestamp + limit.total_seconds(), run_id=event.run_id)


def _message(state: str, causes: list[Cause], instance: dg.DagsterInstance) -> Message:
    """Return the message on causes that have the same problem."""
    first, is_open = causes[0], state == "failing"
    tables = [cause.table for cause in causes if cause.table]
    ratios = sorted({ratio for cause in causes for ratio in cause.ratios if ratio}, key=float) if is_open else []
    shown = ", ".join(tables[:_TABLES_SHOWN]) + (f" and {len(tables) - _TABLES_SHOWN} more" if tables[5:] else "")
    at = f" at {', '.join(ratios)}" if ratios else ""
    since = min(cause.since for cause in causes)
    in_force = _in_force(instance, first) if is_open and len(causes) == 1 else None
    dashboard = without_secrets(os.environ.get(DASHBOARD_VARIABLE, "")).rstrip("/")
    what = {
        "failing": "fails" if first.level == "error" else "warns",
        "over": "is in order again",
        "removed": "is no longer in the catalogue",
    }[state]
    return {
        "text": f"{shown or 'pipeline'}: {first.subject}{at} {what}",
        "lines": [
            first.problem if is_open else f"It was: {first.problem}",
            f"Since {_moment(since)}.",
            *([in_force] if in_force else []),
        ],
        "state": "failing" if is_open else "over",
        "level": first.level,
        "tables": tables,
        "ratios": [float(ratio) for ratio in ratios],
        "step": first.step,
        "check": first.check,
        "problem": first.problem,
        "since": datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds"),
        "run_id": first.run_id,
        "link": f"{dashboard}/runs/{first.run_id}" if dashboard and first.run_id else None,
    }


def _in_force(instance: dg.DagsterInstance, cause: Cause) -> str | None:
    """Say which condensed table stays in force while a table fails."""
    if cause.table is None or cause.level != "error":
        return None
    made = []
    for key in instance.get_asset_keys(prefix=[cause.table]):
        place = place_of(key)
        if place.step == _CONDENSED and (place.ratio is None or not any(cause.ratios) or place.ratio in cause.ratios):
            event = instance.get_latest_materialization_event(key)
            made += [event.timestamp] if event is not None else []
    if not made:
        return "There is no condensed table of it yet."
    return f"The condensed table of {_moment(max(made))} stays in force."


def is_mistake(failed: Any) -> bool:
    """Return whether a step failed for a mistake in data or settings, which another try would only repeat."""
    return failed.user_failure_data is not None and MISTAKE in failed.user_failure_data.metadata


def step_sentence(failed: Any) -> str:
    """Return what was wrong with a step; the text of unexpected errors is left out, as it may hold secrets."""
    if failed.user_failure_data is not None and failed.user_failure_data.description:
        return str(failed.user_failure_data.description)
    error = next(reversed(error_chain(failed.error)), None)
    if error is None or error.cls_name is None:
        return "The process of the step was lost: killed, or out of memory."
    if error.cls_name == InputError.__name__:
        # The message of the class that Dagster records begins with the name of the class.
        return str(error.message).partition(": ")[2]
    if error.cls_name == "ChildProcessCrashException":
        return "The process of the step was lost: killed, or out of memory."
    return f"The step failed with {error.cls_name}; see its log."


def run_sentence(message: str | None, error: Any) -> str:
    """Return why a run failed although none of its steps did."""
    if error is not None and error.cls_name is not None:
        return f"The run failed with {error.cls_name}; see its log."
    for begin in ("Exceeded maximum runtime", "Run timed out due to taking longer"):
        if message and message.startswith(begin):
            return message
    return _LOST


def _one_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= MAX_SENTENCE else line[: MAX_SENTENCE - 3] + "..."


def _moment(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%d %H:%M UTC")
