"""Limits of time and memory: ``OOT`` and ``OOM`` as results instead of a crash.

:class:`Deadline`, :func:`check_memory` and :func:`within_memory` are for methods that stop themselves.
:func:`run_limited` runs any work in a forked process, so that a hanging or dying method takes nothing else with it.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from c2tc_pipeline.common.devices import is_out_of_memory
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.processes import end_with_parent

T = TypeVar("T")

OK, OUT_OF_TIME, OUT_OF_MEMORY, FAILED = "ok", "OOT", "OOM", "failed"


class OutOfTime(RuntimeError):
    """A method took longer than its time limit."""


class OutOfMemory(RuntimeError):
    """A method needs more memory than its limit, or than there is."""


class Deadline:
    """A time limit in seconds from now; None is no limit."""

    def __init__(self, method: str, limit: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.method = method
        self.limit = _checked("time_limit", limit)
        self.clock = clock
        self.end = clock() + self.limit

    def check(self, reached: str) -> None:
        """Raise OutOfTime after the limit; ``reached`` says how far the method got."""
        if self.clock() > self.end:
            raise OutOfTime(f"{self.method} exceeded its time limit of {self.limit:g} seconds at {reached}.")


def check_memory(method: str, needed: float, limit: float | None) -> None:
    """Raise OutOfMemory when an estimate in bytes is over the limit; None is no limit."""
    most = _checked("memory_limit", limit)
    if needed > most:
        raise OutOfMemory(f"{method} needs about {needed / 1e6:,.0f} MB, more than its limit of {most / 1e6:,.0f} MB.")


def within_memory(method: str, work: Callable[[], T]) -> T:
    """Do some work, and raise OutOfMemory for any error about lack of memory; other errors pass through."""
    try:
        return work()
    except MemoryError as error:
        reason = str(error)
    except RuntimeError as error:
        if isinstance(error, OutOfMemory) or not is_out_of_memory(error):
            raise
        reason = str(error)
    # Not before the error is gone: its traceback kept the tensors alive.
    raise OutOfMemory(f"{method} ran out of memory ({reason.partition(chr(10))[0].rstrip('.') or 'MemoryError'}).")


def _checked(name: str, limit: float | None) -> float:
    if limit is None:
        return math.inf
    if not limit > 0:
        raise InputError(f"Setting {name} is {limit!r}; it must be above 0, or None for no limit.")
    return limit


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """The end of limited work: its value, or a status (``"OOT"``, ``"OOM"``, ``"failed"``) with the reason."""

    status: str
    value: T | None = None
    reason: str = ""


def run_limited(work: Callable[[], T], *, seconds: float, gigabytes: float) -> Outcome[T]:
    """Run work in a forked process within limits of time and of memory beyond what this process has.

    Where processes can't be forked, or CUDA is initialised, it runs in this process, and only the limits that it
    raises itself count. The memory limit holds on Linux only.
    """
    torch = sys.modules.get("torch")
    uses_cuda = torch is not None and bool(torch.cuda.is_initialized())
    if "fork" not in multiprocessing.get_all_start_methods() or uses_cuda:
        return _attempt(work)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run_in_child, args=(work, sender, gigabytes), daemon=True)
    process.start()
    sender.close()
    try:
        if not receiver.poll(seconds):
            return Outcome(OUT_OF_TIME, reason=f"it took more than {seconds:g} seconds")
        outcome: Outcome[T] = receiver.recv()
        return outcome
    except EOFError:
        process.join()
        if process.exitcode == -signal.SIGKILL:
            return Outcome(OUT_OF_MEMORY, reason="the system stopped it")
        return Outcome(FAILED, reason=f"its process ended with exit code {process.exitcode}")
    finally:
        receiver.close()
        process.kill()
        process.join()


def _run_in_child(work: Callable[[], Any], sender: Connection, gigabytes: float) -> None:
    end_with_parent(signal.SIGKILL)
    _limit_memory(gigabytes)
    sender.send(_attempt(work))
    sender.close()
    # Skip the parent's exit handlers, such as the removal of temporary folders.
    os._exit(0)


def _attempt(work: Callable[[], T]) -> Outcome[T]:
    try:
        return Outcome(OK, within_memory("it", work))
    except OutOfTime as error:
        return Outcome(OUT_OF_TIME, reason=str(error))
    except OutOfMemory as error:
        return Outcome(OUT_OF_MEMORY, reason=str(error))
    except Exception as error:
        return Outcome(FAILED, reason=f"{type(error).__name__}: {error}")


def _limit_memory(gigabytes: float) -> None:
    try:
        import resource

        with open("/proc/self/status", encoding="ascii") as status:
            data = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
        limit = data + int(gigabytes * 1e9)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    except (ImportError, OSError, StopIteration, ValueError):
        return
