"""Limits of time and memory for work that may need more than there is: ``OOT`` and ``OOM`` instead of a crash.

The work runs in a forked process, so that whatever it does, a hanging or dying method takes nothing else with it. Where
processes can't be forked, or the GPU is in use already, it runs in place, and only what it raises itself counts.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from c2tc_pipeline.bench.rivals.limits import OutOfMemory, OutOfTime, within_memory

T = TypeVar("T")

_PR_SET_PDEATHSIG = 1

OK, OUT_OF_TIME, OUT_OF_MEMORY, FAILED = "ok", "OOT", "OOM", "failed"


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """How limited work ended.

    Parameters
    ----------
    status : {"ok", "OOT", "OOM", "failed"}
        Whether it ended well, out of time, out of memory, or otherwise.
    value : object or None
        What it returned.
    reason : str
        Why it did not end well.
    """

    status: str
    value: T | None = None
    reason: str = ""


def run_limited(work: Callable[[], T], *, seconds: float, gigabytes: float) -> Outcome[T]:
    """Do work in a process of its own, within limits.

    Parameters
    ----------
    work : callable
        What to do. It sees this process's memory as it is now; what it returns comes back, what it changes does not.
    seconds : float
        How long it may take.
    gigabytes : float
        How much memory it may take beyond what this process has; not enforced where the system can't.

    Examples
    --------
    >>> run_limited(lambda: 6 * 7, seconds=60, gigabytes=1).value
    42
    >>> run_limited(lambda: 1 / 0, seconds=60, gigabytes=1)
    Outcome(status='failed', value=None, reason='ZeroDivisionError: division by zero')
    """
    if "fork" not in multiprocessing.get_all_start_methods() or _uses_cuda():
        return _attempt(work)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work_and_tell, args=(work, sender, gigabytes), daemon=True)
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


def _uses_cuda() -> bool:
    """Whether this process has the GPU in use, which a forked one can't use then."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_initialized())


def _work_and_tell(work: Callable[[], Any], sender: Connection, gigabytes: float) -> None:
    die_with_parent()
    _limit_memory(gigabytes)
    outcome = _attempt(work)
    sender.send(outcome)
    sender.close()
    # What the parent registered for its own end, such as removing temporary folders, is not this process's to do.
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


def die_with_parent() -> None:
    """Have the system end this process when the one that started it is killed; on Linux only."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _limit_memory(gigabytes: float) -> None:
    try:
        import resource
    except ImportError:
        return
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            data = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
        limit = data + int(gigabytes * 1e9)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    except (OSError, StopIteration, ValueError):
        return
