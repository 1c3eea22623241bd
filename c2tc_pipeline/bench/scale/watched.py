"""A command in a process of its own, under a limit of memory, with what it took.

The limit is on private memory that can be written (``RLIMIT_DATA``): heap, stacks and anonymous pages. Pages of files
that are merely in the system's cache are not the process's, and pages of a mapped file are the system's to take back;
what of them was in the process's address space shows in the whole resident memory, which is reported beside it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from c2tc_pipeline.common.memory import anonymous_memory_of, peak_memory, peak_memory_of, rusage_peak

_LOOK_SECONDS = 0.05
# Linux counts pages on each core by itself, so that two readings of the same memory may differ.
_UNSURE_BYTES = 2**25


@dataclass(frozen=True)
class Watched:
    """What a command took.

    Parameters
    ----------
    code : int
        Its exit code.
    errors : str
        What it wrote to the standard error.
    seconds, cpu_seconds : float
        By the clock, and of processors.
    resident_bytes : int
        The most memory that was resident, mapped files included. Exact if it is more than this process ever had; else
        looked at twenty times a second.
    private_bytes : int
        The most anonymous memory, looked at twenty times a second; 0 where the system does not tell.
    """

    code: int
    errors: str
    seconds: float
    cpu_seconds: float
    resident_bytes: int
    private_bytes: int


def run_watched(
    command: Sequence[str], *, memory_limit: int | None = None, environment: Mapping[str, str] | None = None
) -> Watched:
    """Run a command to its end.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.
    memory_limit : int, optional
        Bytes of private memory that it may have; beyond that its allocations fail.
    environment : mapping of str to str, optional
        Variables that are set for it, beside those of this process.

    Examples
    --------
    >>> import sys
    >>> program = "block = bytearray(300_000_000)"
    >>> run_watched([sys.executable, "-c", program]).code
    0
    >>> "MemoryError" in run_watched([sys.executable, "-c", program], memory_limit=200_000_000).errors
    True
    """

    def limit() -> None:
        if memory_limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (memory_limit, memory_limit))

    started, private, resident = time.perf_counter(), 0, None
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            list(command),
            stdout=subprocess.DEVNULL,
            stderr=errors,
            preexec_fn=limit,
            env={**os.environ, **(environment or {})},
        )
        inherited = peak_memory()
        while True:
            private = max(private, anonymous_memory_of(process.pid) or 0)
            resident = peak_memory_of(process.pid) or resident
            done, status, used = os.wait4(process.pid, os.WNOHANG)
            if done:
                break
            time.sleep(_LOOK_SECONDS)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        written = errors.read().decode("utf-8", errors="replace")
    told = rusage_peak(used)
    # What the system tells at the end is this process's own peak, unless the command had more.
    if resident is None or told > inherited + _UNSURE_BYTES:
        resident = told
    return Watched(
        process.returncode,
        written,
        time.perf_counter() - started,
        used.ru_utime + used.ru_stime,
        resident,
        private,
    )
