"""What happens in a run, as it happens, in the words of people rather than of Dagster.

A run tells everything to the loggers of its job; the one made here turns the few events that matter into
:class:`RunEvent` and drops the rest. How they are shown is in :mod:`c2tc_pipeline.pipeline.terminal`.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import dagster as dg

Kind = Literal["started", "made", "ended", "warned", "retrying", "waiting", "failed"]

_INTERRUPTS = ("KeyboardInterrupt", "DagsterExecutionInterruptedError")
_MISTAKES = ("InputError", "Failure")


@dataclass(frozen=True)
class RunEvent:
    """Something that a person who waits for a run wants to know.

    Parameters
    ----------
    kind : str
        ``"started"`` and ``"ended"`` come with every step; ``"made"`` is the end of a step that made an asset;
        ``"warned"`` is a check that did not pass and stops nothing; ``"retrying"`` a step that failed and is tried
        again; ``"waiting"`` one whose pool is full; ``"failed"`` one that is given up.
    step : str
        The step: an asset, or an asset and a check.
    text : str
        A sentence, where there is something to say.
    seconds : float
        How long it took, or how long until it is tried again.
    cached : bool
        Whether the costly part came from the cache.
    mistake : bool
        Of a failure: whether the person at the keyboard can mend it.
    """

    kind: Kind
    step: str
    text: str = ""
    seconds: float = 0.0
    cached: bool = False
    mistake: bool = False


RunListener = Callable[[RunEvent], object]


class RunWatch(logging.Handler):
    """Listens to the runs of a job; a log handler, because loggers are what Dagster tells events to at once.

    Parameters
    ----------
    listener : callable
        Told about each event.

    Attributes
    ----------
    failures : list of RunEvent
        Of the current run.
    interrupted : bool
        Whether somebody pressed Ctrl-C.
    """

    def __init__(self, listener: RunListener) -> None:
        super().__init__()
        self._listener = listener
        self.interrupted = False
        self.begin()

    def begin(self) -> None:
        """Forget the run before."""
        self.failures: list[RunEvent] = []
        self._cached: dict[str, bool] = {}
        self._refusals: dict[str, str] = {}

    def as_logger(self) -> dg.LoggerDefinition:
        """Return the logger that hands the events of a run to this handler."""

        @dg.logger
        def watching(_: dg.InitLoggerContext) -> logging.Logger:
            # Not known to the logging module, so that nothing that is set up there prints the events too.
            chosen = logging.Logger("c2tc", logging.DEBUG)
            chosen.addHandler(self)
            return chosen

        return watching

    def emit(self, record: logging.LogRecord) -> None:
        """Take note of an event; anything else that is logged goes nowhere."""
        event = getattr(record, "dagster_event", None)
        if event is not None:
            self._note(event)

    def _note(self, event: dg.DagsterEvent) -> None:
        step = event.step_key or ""
        match event.event_type:
            case dg.DagsterEventType.STEP_START:
                self._listener(RunEvent("started", step))
            case dg.DagsterEventType.ASSET_MATERIALIZATION:
                hit = event.step_materialization_data.materialization.metadata.get("cache_hit")
                self._cached[step] = bool(hit and hit.value)
            case dg.DagsterEventType.ASSET_CHECK_EVALUATION:
                self._note_check(step, event.asset_check_evaluation_data)
            case dg.DagsterEventType.STEP_SUCCESS:
                seconds = event.step_success_data.duration_ms / 1e3
                made = step in self._cached
                self._listener(RunEvent("made" if made else "ended", step, "", seconds, self._cached.get(step, False)))
            case dg.DagsterEventType.STEP_UP_FOR_RETRY:
                self._stop_if_interrupted(event.step_retry_data.error)
                sentence, _ = _explain(event.step_retry_data.error)
                wait = event.step_retry_data.seconds_to_wait or 0.0
                self._listener(RunEvent("retrying", step, sentence, wait))
            case dg.DagsterEventType.STEP_FAILURE:
                self._stop_if_interrupted(event.step_failure_data.error)
                self._note_failure(step, event.step_failure_data.error)
            case dg.DagsterEventType.RUN_FAILURE:
                error = event.job_failure_data.error
                self.interrupted |= _is_interrupt(error)
                if not self.failures and not self.interrupted:
                    self._note_failure("", error)
            case dg.DagsterEventType.ENGINE_EVENT if "pool" in event.engine_event_data.metadata:
                _let_interrupts_through()
                self._listener(RunEvent("waiting", step, "another run has the device"))

    def _note_check(self, step: str, check: Any) -> None:
        if check.passed:
            return
        told = check.description or f"The check {check.check_name} failed."
        if check.blocking:
            self._refusals[step] = told
        else:
            self._listener(RunEvent("warned", f"{check.asset_key.to_user_string()}: {check.check_name}", told))

    def _note_failure(self, step: str, error: Any) -> None:
        refusal = self._refusals.get(step)
        sentence, mistake = _explain(error) if refusal is None else (refusal, True)
        failed = RunEvent("failed", step, sentence, mistake=mistake)
        self.failures.append(failed)
        self._listener(failed)

    def _stop_if_interrupted(self, error: Any) -> None:
        # Dagster's retry policy would try a step again that was stopped with Ctrl-C. Raised here, outside of the step,
        # the interrupt ends the run.
        if _is_interrupt(error):
            self.interrupted = True
            raise KeyboardInterrupt


def _chain(error: Any) -> list[Any]:
    """Return an error and what caused it, the outermost first."""
    found = []
    while error is not None:
        found.append(error)
        error = error.cause
    return found


def _is_interrupt(error: Any) -> bool:
    return any(link.cls_name in _INTERRUPTS for link in _chain(error))


def _explain(error: Any) -> tuple[str, bool]:
    """Return what went wrong in one line, and whether it is a mistake of the person at the keyboard."""
    links = _chain(error)
    if not links:
        return "The run ended without saying why.", False
    for link in links:
        if link.cls_name in _MISTAKES:
            return _first_line(link.message.partition(": ")[2]), True
    return _first_line(links[-1].message), False


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0] if lines else "There is no message."


def _let_interrupts_through() -> None:
    # Between steps Dagster puts interrupts off until the next step begins, which here may take hours.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
