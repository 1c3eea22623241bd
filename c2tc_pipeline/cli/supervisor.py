"""Supervise the processes of services: start them in order, restart those that end, stop them in reverse order."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from c2tc_pipeline.common.processes import end_with_parent

START_SECONDS = 180.0
STOP_SECONDS = 60.0
POLL_SECONDS = 0.2
LOOK_SECONDS = 10.0
# The pause before a restart, doubled each time up to a maximum, and the uptime that resets it.
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
HEALTHY_SECONDS = 60.0

Report = Callable[[str], object]


class ServiceFailedError(RuntimeError):
    """A service did not start; the message shows the end of its log."""


@dataclass(frozen=True)
class Service:
    """One program that runs until it is stopped."""

    name: str
    command: list[str]  # without secrets: every user of the machine can read it
    environment: Mapping[str, str]  # the whole of it
    is_ready: Callable[[], bool]  # polled until it is true; an InputError ends the waiting
    before: Callable[[], None] = lambda: None  # called ahead of its first start
    after: Callable[[], None] = lambda: None  # called once it is ready
    account: str | None = None  # the user to run as
    stop: signal.Signals = signal.SIGTERM  # what makes it end in order
    stop_seconds: float = STOP_SECONDS  # after how long it is killed instead
    where: str = ""  # its address, for people
    leaves: tuple[Path, ...] = ()  # files that it leaves behind elsewhere than in the folder
    log: Path | None = None  # the file for its output; by default it is printed
    keeps_children: bool = False  # whether its children end by themselves; those of others are killed with it
    is_stale: Callable[[int], bool] | None = None  # whether it is to be restarted, given its process


@dataclass
class _Running:
    service: Service
    process: subprocess.Popen[bytes]
    since: float = field(default_factory=time.monotonic)
    pause: float = field(default_factory=lambda: FIRST_PAUSE_SECONDS)
    due: float | None = None


class Supervisor:
    """Running services, in the order in which they were started.

    ``report`` is called with a sentence when a service is restarted, ``progress`` with a line when one is ready or has
    stopped.
    """

    def __init__(self, folder: Path, report: Report, progress: Report | None = None) -> None:
        self._folder = folder
        self._report = report
        self._progress = progress or report
        self._running: list[_Running] = []

    def start(self, service: Service) -> None:
        """Start a service, and wait until it is ready."""
        service.before()
        running = _Running(service, self._launch(service))
        self._running.append(running)
        self.changed()
        while not service.is_ready():
            if running.process.poll() is not None:
                raise ServiceFailedError(_failure(service, f"ended with code {running.process.returncode}"))
            if time.monotonic() - running.since > START_SECONDS:
                raise ServiceFailedError(_failure(service, f"was not ready after {START_SECONDS:g} s"))
            time.sleep(POLL_SECONDS)
        service.after()
        seconds = time.monotonic() - running.since
        self._progress(f"{service.name:15} ready after {seconds:4.1f} s  {service.where}".rstrip())

    def watch(self, look: Callable[[], object] = lambda: None) -> NoReturn:
        """Restart services that end or are stale, call ``look`` every ten seconds, and never return."""
        looked = time.monotonic()
        while True:
            for running in self._running:
                self._supervise(running)
            if time.monotonic() - looked >= LOOK_SECONDS:
                looked = time.monotonic()
                look()
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Stop all services, the last one first; those that do not end in time are killed."""
        while self._running:
            running = self._running[-1]
            since, how = time.monotonic(), _end(running)
            self._running.pop()
            self.changed()
            self._progress(f"{running.service.name:15} {how} after {time.monotonic() - since:4.1f} s")

    def changed(self) -> None:
        """Called after a process was started or has ended."""

    def processes(self) -> Iterable[int]:
        """Return the ids of the services' processes."""
        return [running.process.pid for running in self._running]

    def _supervise(self, running: _Running) -> None:
        service, now = running.service, time.monotonic()
        if running.due is not None:
            if now >= running.due:
                running.process, running.since, running.due = self._launch(service), now, None
                self.changed()
            return
        if running.process.poll() is None:
            if service.is_stale is not None and service.is_stale(running.process.pid):
                self._report(f"{service.name} is restarted.")
                _end(running)
                running.due = now
            return
        if now - running.since > HEALTHY_SECONDS:
            running.pause = FIRST_PAUSE_SECONDS
        code = running.process.returncode
        self._report(f"{service.name} ended with code {code}; it is started again in {running.pause:g} s.")
        _clear(running)
        running.due = now + running.pause
        running.pause = min(2 * running.pause, LONGEST_PAUSE_SECONDS)

    def _launch(self, service: Service) -> subprocess.Popen[bytes]:
        log = None if service.log is None else service.log.open("ab")
        try:
            return subprocess.Popen(
                service.command,
                env=service.environment,
                cwd=self._folder,
                user=service.account,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=None if log is None else subprocess.STDOUT,
                # In a group of its own: Ctrl-C is for us, and what it leaves behind can be ended with it.
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        finally:
            if log is not None:
                log.close()


def _end(running: _Running) -> str:
    """End a service in order, or kill it if it takes too long; return which."""
    with suppress(ProcessLookupError):
        running.process.send_signal(running.service.stop)
    try:
        running.process.wait(running.service.stop_seconds)
        how = "stopped"
    except subprocess.TimeoutExpired:
        how = "killed"
    _clear(running, last=True)
    return how


def _clear(running: _Running, *, last: bool = False) -> None:
    """Kill the child processes that a service left behind when it ended."""
    if last or not running.service.keeps_children:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(running.process.pid, signal.SIGKILL)
    running.process.wait()
    for path in running.service.leaves:
        path.unlink(missing_ok=True)


def _failure(service: Service, what: str) -> str:
    if service.log is None:
        return f"The service {service.name} {what}."
    tail = "\n".join(service.log.read_text(errors="replace").splitlines()[-15:])
    return f"The service {service.name} {what}; its log {service.log} ends with:\n{tail}"
