"""Peak memory of a process and of a call, as the operating system sees it.

Where there is ``/proc``, the peak is ``VmHWM`` of a process's own memory. ``ru_maxrss`` is not: on Linux a process
takes it over from the one that started it, through ``exec`` as well, so that a small child of a large parent looks
large.
"""

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
        now = None
        if clear.exists():
            clear.write_text("5")
            now = _status("VmRSS")
        self._before = peak_memory() if now is None else now

    def growth(self) -> int:
        """Return the bytes by which the peak is above the start."""
        return max(peak_memory() - self._before, 0)


def peak_memory() -> int:
    """Return the most bytes of memory that this process has had resident, or has had since a watch began.

    Where there is no ``/proc``, the peak of the process that started this one may be what is returned.

    Examples
    --------
    >>> block = bytearray(50_000_000)
    >>> peak_memory() > 50_000_000
    True
    """
    found = _status("VmHWM")
    return rusage_peak(resource.getrusage(resource.RUSAGE_SELF)) if found is None else found


def peak_memory_of(process: int) -> int | None:
    """Return the same for a running process; None when it has ended, or there is no ``/proc``.

    Examples
    --------
    >>> import os
    >>> peak_memory_of(os.getpid()) in (None, peak_memory())
    True
    """
    return _status("VmHWM", str(process))


def anonymous_memory_of(process: int) -> int | None:
    """Return the bytes of memory that a running process has to itself and in no file; None where nobody tells.

    Examples
    --------
    >>> import os
    >>> (anonymous_memory_of(os.getpid()) or 0) < peak_memory()
    True
    """
    return _status("RssAnon", str(process))


def rusage_peak(used: resource.struct_rusage) -> int:
    """Return ``ru_maxrss`` in bytes, which systems tell in different units.

    Examples
    --------
    >>> rusage_peak(resource.getrusage(resource.RUSAGE_SELF)) > 1_000_000
    True
    """
    return used.ru_maxrss if sys.platform == "darwin" else used.ru_maxrss * 1024


def _status(name: str, process: str = "self") -> int | None:
    """Return an entry of a process's status in bytes; None where there is none, as when it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), None)
