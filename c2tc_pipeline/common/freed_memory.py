"""What becomes of memory that a process has freed.

glibc raises the size from which it gives arrays back to the system each time a large one is freed, up to 32 MB. From
then on it keeps smaller ones for later, in pieces between others, one heap a thread: a process that goes through a
table in blocks seems to need more memory the longer it runs.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

# Parameters of mallopt, from malloc.h.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
# Arrays from this size on come straight from the system and go straight back. Columns of a block of rows are smaller;
# with those among them runs took a fifth to a half longer.
_LARGE_BYTES = 2**20
_KEPT_BYTES = 2**24


def give_back_freed_memory() -> bool:
    """Have this process give large arrays back to the system as soon as they are freed, and do so from now on.

    Returns
    -------
    bool
        Whether the system's allocator takes such a wish; other ones than glibc's are left alone.

    Examples
    --------
    >>> give_back_freed_memory() in (True, False)
    True
    """
    mallopt = _of_glibc("mallopt")
    return mallopt is not None and all(
        mallopt(name, size) == 1 for name, size in ((_MMAP_THRESHOLD, _LARGE_BYTES), (_TRIM_THRESHOLD, _KEPT_BYTES))
    )


def give_back_once() -> bool:
    """Give back what is free now: some milliseconds, at the end of a stage that leaves much behind.

    Returns
    -------
    bool
        Whether the system's allocator takes such a wish; other ones than glibc's are left alone.

    Examples
    --------
    >>> give_back_once() in (True, False)
    True
    """
    malloc_trim = _of_glibc("malloc_trim")
    if malloc_trim is not None:
        malloc_trim(0)
    return malloc_trim is not None


def _of_glibc(name: str) -> Callable[..., int] | None:
    """Return a function of the system's allocator, where that is glibc's."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        found: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):
        return None
    return found
