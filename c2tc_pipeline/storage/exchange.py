"""Two directories change places in one step, where the system can do it: at no moment is there neither."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

# From linux/fs.h, fcntl.h of Linux, and sys/stdio.h of macOS; they are part of the systems' interfaces.
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
_RENAME_SWAP = 2


def exchange(one: Path, other: Path) -> bool:
    """Let two paths change places; return False, with nothing done, where the system can't.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     left, right = Path(folder, "left"), Path(folder, "right")
    ...     _ = left.write_text("l"), right.write_text("r")
    ...     expected = "r" if exchange(left, right) else "l"
    ...     left.read_text() == expected
    True
    """
    call = _system_call()
    if call is None:
        return False
    if call(os.fsencode(one), os.fsencode(other)) == 0:
        return True
    number = ctypes.get_errno()
    # Older kernels and some file systems know no exchange.
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(one), None, str(other))


@cache
def _system_call() -> Callable[[bytes, bytes], int] | None:
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            swap = library.renamex_np
            return lambda one, other: int(swap(one, other, ctypes.c_uint(_RENAME_SWAP)))
        rename = library.renameat2
    except (OSError, AttributeError, TypeError):
        return None
    return lambda one, other: int(rename(_AT_FDCWD, one, _AT_FDCWD, other, ctypes.c_uint(_RENAME_EXCHANGE)))
