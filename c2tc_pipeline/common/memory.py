"""Peak resident memory of processes.

Read from ``VmHWM`` in ``/proc`` where there is one. On Linux ``ru_maxrss`` starts at the value of the parent process,
so that a small child of a large parent looks large.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path


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
            now = status("VmRSS")
        self._before = peak_memory() if now is None else now

    def growth(self) -> int:
        """Return the bytes by which the peak is above the start."""
        return max(peak_memory() - self._before, 0)


def peak_memory() -> int:
    """Return the peak resident memory of this process in bytes, since its start or the last :class:`PeakWatch`."""
    found = status("VmHWM")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts bytes, others KiB.
    return found if found is not None else used if sys.platform == "darwin" else used * 1024


def status(name: str, pid: int | str = "self") -> int | None:
    """Return an amount of memory of a process from its ``status`` in ``/proc``, in bytes; None where it is unknown."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), None)
