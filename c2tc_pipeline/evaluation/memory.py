"""Peak memory of a call, as the operating system sees it."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def peak_growth(call: Callable[[], T]) -> tuple[T, int]:
    """Run a call and return its result and by how many bytes the process's memory rose above where it began.

    Examples
    --------
    >>> result, grown = peak_growth(lambda: len(bytearray(50_000_000)))
    >>> result, grown > 20_000_000
    (50000000, True)
    """
    watch = PeakWatch()
    result = call()
    return result, watch.growth()


class PeakWatch:
    """Watches how far the process's memory rises from here on.

    On Linux the peak counter is reset first; elsewhere the growth of the all-time peak is what there is, a lower bound.
    Two watches at the same time see each other's memory.

    Examples
    --------
    >>> watch = PeakWatch()
    >>> block = bytearray(50_000_000)
    >>> watch.growth() > 20_000_000
    True
    """

    def __init__(self) -> None:
        clear = Path("/proc/self/clear_refs")
        self._resettable = clear.exists()
        if self._resettable:
            clear.write_text("5")
        self._before = _status("VmRSS") if self._resettable else _peak()

    def growth(self) -> int:
        """Return the bytes by which the peak is above the start."""
        now = _status("VmHWM") if self._resettable else _peak()
        return max(now - self._before, 0)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def _peak() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
