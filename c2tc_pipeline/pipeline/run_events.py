"""Events of a run for the terminal: :class:`RunWatch` takes them from Dagster's log, :class:`RunLines` prints them."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import dagster as dg
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from c2tc_pipeline.pipeline.versioning import TableStep

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["started", "made", "kept", "ended", "warned", "retrying", "waiting", "failed"]

_INTERRUPTS = ("KeyboardInterrupt", "DagsterExecutionInterruptedError")
_MISTAKES = ("InputError", "Failure")
_SETS = ("condensed", "random", "whole")
_METRICS = ("accuracy", "auc")
_NAME_WIDTH = 19
_SCOPE_WIDTH = 15


@dataclass(frozen=True)
class RunEvent:
    """An event of a step, which has the name of its op.

    ``started`` and ``ended`` come with every step; ``made`` is the end of a step that made an asset; ``kept`` an asset
    that is up to date; ``warned`` a failed check that stops nothing; ``retrying`` a failed step that is retried;
    ``waiting`` one whose pool is full; ``failed`` one that is given up, with ``mistake`` if the user can fix it.
    ``seconds`` is the duration of the step, or the time until the retry.
    """

    kind: Kind
    step: str
    text: str = ""
    seconds: float = 0.0
    cached: bool = False
    mistake: bool = False
    check: str = ""

    @property
    def asset(self) -> str:
        """The name of the step without its table and ratio, with the check if it is of one."""
        name = TableStep.of_op(self.step).step
        return f"{name}: {self.check}" if self.check else name

    @property
    def scope(self) -> str:
        """The table, and the ratio."""
        return TableStep.of_op(self.step).scope or ""


class RunWatch(logging.Handler):
    """A log handler that passes the events of runs to a listener as they happen, and keeps failures of the last run."""

    def __init__(self, listener: Callable[[RunEvent], object]) -> None:
        super().__init__()
        self._listener = listener
        self.interrupted = False
        self.begin()

    def begin(self) -> None:
        """Reset the state for the next run."""
        self.failures: list[RunEvent] = []
        self._cached: dict[str, bool] = {}

    def as_logger(self) -> dg.LoggerDefinition:
        """Return the logger that hands the events of a run to this handler."""

        @dg.logger
        def watching(_: dg.InitLoggerContext) -> logging.Logger:
            # Not registered with the logging module, so that no configured handler prints the events too.
            chosen = logging.Logger("c2tc", logging.DEBUG)
            chosen.addHandler(self)
            return chosen

        return watching

    def emit(self, record: logging.LogRecord) -> None:
        """Handle an event, and ignore all other log records."""
        event = getattr(record, "dagster_event", None)
        if event is not None:
            self._handle(event)

    def _handle(self, event: dg.DagsterEvent) -> None:
        step = event.step_key or ""
        match event.event_type:
            case dg.DagsterEventType.STEP_START:
                self._listener(RunEvent("started", step))
            case dg.DagsterEventType.ASSET_MATERIALIZATION:
                hit = event.step_materialization_data.materialization.metadata.get("cache_hit")
                self._cached[step] = bool(hit and hit.value)
            case dg.DagsterEventType.ASSET_CHECK_EVALUATION:
                self._handle_check(step, event.asset_check_evaluation_data)
            case dg.DagsterEventType.STEP_SUCCESS:
                seconds = event.step_success_data.duration_ms / 1e3
                kind: Kind = "made" if step in self._cached else "ended"
                self._listener(RunEvent(kind, step, "", seconds, self._cached.get(step, False)))
            case dg.DagsterEventType.STEP_UP_FOR_RETRY:
                self._stop_if_interrupted(event.step_retry_data.error)
                sentence, _ = _explain(event.step_retry_data.error)
                wait = event.step_retry_data.seconds_to_wait or 0.0
                self._listener(RunEvent("retrying", step, sentence, wait))
            case dg.DagsterEventType.STEP_FAILURE:
                self._stop_if_interrupted(event.step_failure_data.error)
                self._handle_failure(step, event.step_failure_data.error)
            case dg.DagsterEventType.RUN_FAILURE:
                error = event.job_failure_data.error
                self.interrupted |= is_interrupt(error)
                if not self.failures and not self.interrupted:
                    self._handle_failure("", error)
            case dg.DagsterEventType.ENGINE_EVENT if "pool" in event.engine_event_data.metadata:
                _restore_interrupts()
                self._listener(RunEvent("waiting", step, "another run has the device"))

    def _handle_check(self, step: str, check: Any) -> None:
        if check.passed:
            return
        # One that stops a table is reported by the step that refuses it.
        if check.severity == dg.AssetCheckSeverity.WARN:
            text = check.description or f"The check {check.check_name} failed."
            self._listener(RunEvent("warned", step, text, check=check.check_name))

    def _handle_failure(self, step: str, error: Any) -> None:
        sentence, mistake = _explain(error)
        failed = RunEvent("failed", step, sentence, mistake=mistake)
        self.failures.append(failed)
        self._listener(failed)

    def _stop_if_interrupted(self, error: Any) -> None:
        # Dagster would retry a step that was stopped with Ctrl-C; an interrupt raised outside of the step ends the run.
        if is_interrupt(error):
            self.interrupted = True
            raise KeyboardInterrupt


def error_chain(error: Any) -> list[Any]:
    """Return an error and what caused it, the outermost first."""
    found = []
    while error is not None:
        found.append(error)
        error = error.cause
    return found


def is_interrupt(error: Any) -> bool:
    """Return whether an error, or what caused it, is an interrupt."""
    return any(link.cls_name in _INTERRUPTS for link in error_chain(error))


def _explain(error: Any) -> tuple[str, bool]:
    """Return what went wrong in one line, and whether the user can fix it."""
    links = error_chain(error)
    if not links:
        return "The run ended without an error message.", False
    for link in links:
        if link.cls_name in _MISTAKES:
            return _first_line(link.message.partition(": ")[2]), True
    return _first_line(links[-1].message), False


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0] if lines else "There is no message."


def _restore_interrupts() -> None:
    # Between steps Dagster delays interrupts until the next step begins, which here may take hours.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def progress_console() -> Console:
    """Return a console on a copy of the error stream, because Dagster redirects the stream itself during a run."""
    try:
        descriptor = os.dup(sys.stderr.fileno())
    except (OSError, io.UnsupportedOperation):
        # Not a file of the operating system, so that it can't be redirected.
        return Console(file=sys.stderr, highlight=False)
    return Console(
        file=os.fdopen(descriptor, "w", encoding=sys.stderr.encoding, errors="backslashreplace", buffering=1),
        highlight=False,
    )


class RunLines:
    """Context manager that prints a line per event, and on a terminal shows the running step with its time."""

    def __init__(self, console: Console) -> None:
        self._console = console
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task: TaskID | None = None

    def __enter__(self) -> RunLines:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, event: RunEvent) -> None:
        """Print an event."""
        name, text, scope = escape(event.asset), escape(event.text), escape(event.scope)
        columns = f"{name:<{_NAME_WIDTH}} {scope:<{_SCOPE_WIDTH}}"
        if event.kind in ("started", "ended", "made", "failed"):
            self._show(f"{name} {scope}" if event.kind == "started" else None)
        line = {
            "made": f"[green]✓[/] {columns} {event.seconds:6.1f} s{'  cached' if event.cached else ''}",
            "kept": f"[dim]= {columns}[/] up to date",
            "warned": f"[yellow]! {columns}[/] {text}",
            "retrying": f"[yellow]↻ {columns}[/] {text} Retried in {event.seconds:.0f} s.",
            "waiting": f"[yellow]… {columns}[/] Waiting: {text}.",
            "failed": f"[red]✗ {columns}[/] failed",
        }.get(event.kind)
        if line is not None:
            # Not wrapped: the terminal does that, and a pipe needs no line breaks.
            self._console.print(line, soft_wrap=True)

    def _show(self, description: str | None) -> None:
        """Show the running step, or none."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = None if description is None else self._progress.add_task(description, total=None)


def scores_table(title: str, by_ratio: dict[float, pd.DataFrame]) -> Table:
    """Return the scores of one table, given by ratio, with a line for each ratio and model."""
    from c2tc_pipeline.evaluation.row_worth import gather_scores
    from c2tc_pipeline.reports import wording
    from c2tc_pipeline.reports.verdict import learner_name, worth_number

    shown = Table(title=escape(title), title_justify="left", box=None, header_style="dim", pad_edge=False)
    shown.add_column("ratio")
    shown.add_column("rows", justify="right")
    shown.add_column("model")
    for heading in ("accuracy %", "AUC %", "row worth"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for ratio in sorted(by_ratio):
        means = gather_scores({(title, ratio): by_ratio[ratio]})
        for number, (learner, found) in enumerate(means.groupby(["model", "columns"], sort=False)):
            # Ratio and rows are shown with the first model.
            first, rows = (wording.ratio(ratio), f"{found['rows_out'].iloc[0]:,}") if number == 0 else ("", "")
            by_set = found.set_index("training_set")
            metrics = ("/".join(f"{100 * by_set[name][each]:.1f}" for each in _SETS) for name in _METRICS)
            worth = worth_number(by_set.loc["condensed"].to_dict())
            shown.add_row(first, rows, escape(learner_name(learner)), *metrics, worth)
    shown.caption = (
        f"Scores on test rows of models trained on: {' / '.join(_SETS)}. "
        "Row worth: random rows that a condensed row replaces, by AUC."
    )
    shown.caption_justify = "left"
    return shown
