"""Processes and threads: end with the parent, ask for a port, number of threads, and calls side by side."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

Value = TypeVar("Value")
_PR_SET_PDEATHSIG = 1
_CONNECT_SECONDS = 2.0


def end_with_parent(number: signal.Signals = signal.SIGTERM) -> None:
    """Ask the kernel to signal this process when the thread that started it ends; on Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number))


def children(process: int) -> list[tuple[int, str]]:
    """Return the living children of a process with their command lines; on Linux only, elsewhere none."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        # A process may end while it is looked at.
        with suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if int(parent) == process and state != "Z":
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append((int(folder.name), command))
    return found


def answers(host: str, port: int) -> bool:
    """Return whether a process accepts connections on a port."""
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_SECONDS):
            return True
    except OSError:
        return False


def cores() -> int:
    """Return ``OMP_NUM_THREADS`` if it is set, else the number of physical cores that this process may use."""
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if limit.isdecimal() and int(limit) > 0:
        return int(limit)
    # Here, because commands that describe tables should start without it.
    from joblib import cpu_count

    return int(cpu_count(only_physical_cores=True))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, because other threads use the other cores."""
    # Without threadpool_limits, which queries every library on each call: too slow for small steps.
    before = [(library, library.get_num_threads()) for library in _blas_libraries()]
    held = [(library, threads) for library, threads in before if threads != 1]
    for library, _ in held:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, threads in held:
            library.set_num_threads(threads)


def side_by_side(calls: Sequence[Callable[[], Value]]) -> Iterator[Value]:
    """Run single-core calls in one thread per core; yield the results in order."""
    if min(len(calls), cores()) < 2:
        for call in calls:
            yield call()
        return
    with one_blas_thread(), ThreadPoolExecutor(cores()) as pool:
        yield from pool.map(lambda call: call(), calls)


@cache
def _blas_libraries() -> list[Any]:
    """Find the loaded BLAS libraries once: the search takes milliseconds."""
    # SciPy has a BLAS of its own, which is found only if it is loaded.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
