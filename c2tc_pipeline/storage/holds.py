"""Who is at work in a folder: a hold that the kernel lets go of when its process ends, however it ends.

Collectors ask before they remove anything. No clock is involved, and a killed process leaves nothing to clear away. A
file system without locks has no holds; there the age of a folder has to do.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # pragma: no cover - not a POSIX system
    fcntl = None  # type: ignore[assignment]

SCRATCH_PREFIX = "c2tc-scratch-"


@contextmanager
def holding(folder: str | Path) -> Iterator[None]:
    """Hold a folder together with any number of others; one that is not there is not held.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with holding(folder):
    ...         print(is_held(folder))
    ...     print(is_held(folder))
    True
    False
    """
    descriptor = _hold(folder)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def is_held(folder: str | Path) -> bool:
    """Tell whether any process, this one included, holds a folder."""
    if fcntl is None:
        return False
    try:
        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _hold(folder: str | Path) -> int | None:
    if fcntl is None:
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError:
        return None
    # Without waiting: the only one who wants a folder alone is a collector, for a moment, to ask.
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return descriptor


class ScratchDirectory(tempfile.TemporaryDirectory[str]):
    """A temporary directory that is held as long as it is in use, so that one of a killed process can be told.

    Examples
    --------
    >>> with ScratchDirectory() as folder:
    ...     is_held(folder), Path(folder).name.startswith(SCRATCH_PREFIX)
    (True, True)
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(prefix=SCRATCH_PREFIX, **options)
        self._descriptor = _hold(self.name)

    def cleanup(self) -> None:
        """Remove the directory and let go of it."""
        super().cleanup()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
