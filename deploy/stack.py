"""A running stack: its services are started one after the other, restarted if they end, and stopped in reverse order.

The process that started them is the one that stops them. It holds a lock on the folder while it lives, so that no
second stack starts there; processes left by a killed stack are ended by the next.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Container, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from c2tc_pipeline.cli.supervisor import POLL_SECONDS, STOP_SECONDS, Report, Supervisor
from c2tc_pipeline.common.errors import InputError
from deploy.layout import Layout
from deploy.services import all_services

# Time for a process that has just locked a folder to record its pid, and the interval of polling for it.
_RECORD_SECONDS = 10.0
_POLL_SECONDS = 0.02


class Stack(Supervisor):
    """The services of a layout; their processes are recorded, for the next stack to end if this one is killed."""

    def __init__(self, layout: Layout, report: Report) -> None:
        super().__init__(layout.folder, report)
        self.layout = layout

    def changed(self) -> None:
        """Record the processes."""
        import psutil

        recorded = []
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                recorded.append([process, psutil.Process(process).create_time()])
        # In one step: a half-written file would keep the next stack from starting and ending the processes in it.
        draft = processes_file(self.layout).with_suffix(".new")
        draft.write_text(json.dumps(recorded))
        draft.replace(processes_file(self.layout))


def processes_file(layout: Layout) -> Path:
    """Return the file in which a stack records its processes."""
    return layout.folder / "processes.json"


@contextmanager
def running_stack(
    layout: Layout, *, ports: Mapping[str, int], report: Report, names: Container[str] | None = None
) -> Iterator[Stack]:
    """Start services in a folder, by default all, with free ports unless given; stop them at the end of the block."""
    with ExitStack() as stack:
        stack.enter_context(_locked(layout))
        end_leftovers(layout, report)
        layout.make(ports)
        running = Stack(layout, report)
        services = [each for each in all_services(layout) if names is None or each.name in names]
        stack.callback(running.stop)
        for service in services:
            running.start(service)
        yield running


def holder(folder: Path) -> int | None:
    """Return the process that runs the stack of a folder, or None."""
    path = _lock_file(folder)
    give_up = time.monotonic() + _RECORD_SECONDS
    while path.exists():
        with path.open("r") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None
            except BlockingIOError:
                # Between locking the file and writing the pid, it is empty or names a stack that was killed.
                process = _recorded_process(lock.read())
                if process is not None:
                    return process
        if time.monotonic() > give_up:
            raise RuntimeError(f"A stack has locked {folder}, but not recorded its process yet; try again.")
        time.sleep(_POLL_SECONDS)
    return None


def _recorded_process(line: str) -> int | None:
    """Return the process whose pid is recorded; None if the line is incomplete, or the process is gone."""
    import psutil

    number = line.removesuffix("\n")
    if number == line or not number.isdecimal() or not psutil.pid_exists(int(number)):
        return None
    return int(number)


def take_down(folder: Path) -> bool:
    """Ask the process that runs a stack to stop it, and wait until it has; return whether there was one."""
    process = holder(folder)
    if process is None:
        return False
    os.kill(process, signal.SIGTERM)
    give_up = time.monotonic() + 10 * STOP_SECONDS
    while holder(folder) == process:
        if time.monotonic() > give_up:
            raise RuntimeError(f"The stack of process {process} did not stop; see the logs in {folder}.")
        time.sleep(POLL_SECONDS)
    return True


def _lock_file(folder: Path) -> Path:
    return folder / "stack.lock"


@contextmanager
def _locked(layout: Layout) -> Iterator[None]:
    layout.folder.mkdir(parents=True, exist_ok=True)
    with _lock_file(layout.folder).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"A stack runs in {layout.folder} already; stop it with: python -m deploy down --folder {layout.folder}"
            ) from None
        lock.truncate(0)
        # The line end shows that the pid is complete.
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        try:
            yield
        finally:
            # Clear the pid before the lock is released.
            lock.truncate(0)


def end_leftovers(layout: Layout, report: Report) -> None:
    """Kill the processes that a killed stack left behind."""
    import psutil

    path = processes_file(layout)
    for number, born in json.loads(path.read_text()) if path.exists() else []:
        # The pid may be another process's by now, so compare the start time.
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(number)
            if process.create_time() == born:
                report(f"Ending process {number} ({process.name()}), left by a stack that was killed.")
                family = [*process.children(recursive=True), process]
                for each in family:
                    with suppress(psutil.NoSuchProcess):
                        each.kill()
                psutil.wait_procs(family, timeout=STOP_SECONDS)
