"""Stages of a condensation: seconds of each, a listener to their progress, and peak memory.

Memory is read from ``VmHWM`` in ``/proc`` where there is one. On Linux ``ru_maxrss`` starts at the value of the parent
process, so that a small child of a large parent looks large.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Listener = Callable[[str, int, int], None]
"""Called with (stage, steps done, steps in all); the first call of a stage has 0 steps done, the last has all."""


class StageClock:
    """Times stages and passes their progress on."""

    def __init__(self, listener: Listener | None = None) -> None:
        self.listener = listener
        self.seconds: dict[str, float] = {}
        # CPU seconds of all threads, which other programs on the machine do not change.
        self.processor_seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[Callable[[int, int], None]]:
        """Time a stage; yields what its code calls with (steps done, steps in all)."""
        self._report(name, 0, 1)
        started, used = time.perf_counter(), time.process_time()
        yield lambda done, total: self._report(name, done, total)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started
        self.processor_seconds[name] = self.processor_seconds.get(name, 0.0) + time.process_time() - used
        self._report(name, 1, 1)

    def _report(self, name: str, done: int, total: int) -> None:
        if self.listener is not None:
            self.listener(name, done, total)


class PeakWatch:
    """Measure how far the process's memory rises from now on.

    On Linux the peak counter is reset first, for all watches; elsewhere the growth of the all-time peak is a lower
    bound.
    """

    def __init__(self) -> None:
        clear = Path("/proc/self/clear_refs")
        now = None
        if clear.exists():
            clear.write_text("5")
            now = memory_status("VmRSS")
        self._before = peak_memory() if now is None else now

    def growth(self) -> int:
        """Return the bytes by which the peak is above the start."""
        return max(peak_memory() - self._before, 0)


def peak_memory() -> int:
    """Return the peak resident memory of this process in bytes, since its start or the last :class:`PeakWatch`."""
    found = memory_status("VmHWM")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts bytes, others KiB.
    return found if found is not None else used if sys.platform == "darwin" else used * 1024


def memory_status(name: str, pid: int | str = "self") -> int | None:
    """Return an amount of memory of a process from its ``status`` in ``/proc``, in bytes; None where it is unknown."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), None)
