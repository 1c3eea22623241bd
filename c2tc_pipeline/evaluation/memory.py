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

    On Linux the peak counter is reset first; elsewhere the growth of the all-time peak is returned, a lower bound.

    Examples
    --------
    >>> result, grown = peak_growth(lambda: len(bytearray(50_000_000)))
    >>> result, grown > 20_000_000
    (50000000, True)
    """
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")
        before = _status("VmRSS")
        result = call()
        return result, max(_status("VmHWM") - before, 0)
    before = _peak()
    result = call()
    return result, _peak() - before


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def _peak() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
