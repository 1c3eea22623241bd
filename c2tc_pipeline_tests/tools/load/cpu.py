"""The CPU seconds of processes that this one has started, and of all that those started, on Linux."""

from __future__ import annotations

import ctypes
import os
import resource

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Have processes whose parent ends become children of this one from now on, so that they are counted."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def wait_for_all() -> None:
    """Wait for all children; they are counted from then on."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def cpu_of_children() -> float:
    """Return the CPU seconds of all children that were waited for, and of those that they waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
