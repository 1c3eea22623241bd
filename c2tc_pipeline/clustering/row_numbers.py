"""What there is for each row, kept in files without names where rows are many.

A number for each of a thousand million rows takes as much memory as all else together, and is looked at once a step. So
it is in a file that the system removes by itself when nobody needs it any more, however the process ends. Such files
are in the folder for temporary files, as the encoded rows are.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

# Numbers from which on they are in a file, and how many of them are worked on at once.
_HELD_NUMBERS = 2**20
# The same for an array of any type, in bytes.
_HELD_BYTES = 2**20


def row_numbers(count: int) -> np.ndarray:
    """Return room for a whole number (int32) for each row, zero at first: in memory if they are few, else in a file.

    Examples
    --------
    >>> type(row_numbers(3)).__name__, type(row_numbers(2**20)).__name__
    ('ndarray', 'memmap')
    """
    if count < _HELD_NUMBERS:
        return np.zeros(count, dtype=np.int32)
    with tempfile.TemporaryFile(prefix="c2tc-rows-") as file:
        _reserve(file.fileno(), count * np.dtype(np.int32).itemsize)
        return np.memmap(file, dtype=np.int32, mode="w+", shape=(count,))


def _reserve(descriptor: int, size: int) -> None:
    """Claim the disk that a mapped file will need: a full disk would end the process without a word later on."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS):
            raise OSError(error.errno, os.strerror(error.errno or 0), tempfile.gettempdir()) from None


def runs(count: int) -> Iterator[slice]:
    """Yield the rows in runs of which a copy is small.

    Examples
    --------
    >>> list(runs(2**20 + 1))
    [slice(0, 1048576, None), slice(1048576, 1048577, None)]
    """
    for start in range(0, count, _HELD_NUMBERS):
        yield slice(start, min(start + _HELD_NUMBERS, count))


def looked_up(table: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return ``table[numbers]`` as numbers of rows.

    Examples
    --------
    >>> looked_up(np.array([7, 5]), np.array([1, 1, 0])).tolist()
    [5, 5, 7]
    """
    found = row_numbers(len(numbers))
    for run in runs(len(numbers)):
        found[run] = table[numbers[run]]
        let_go(found)
        let_go(numbers)
    return found


def let_go(numbers: np.ndarray) -> None:
    """Give the pages of numbers in a file back to the system, which brings them again when they are looked at."""
    root: Any = numbers
    while isinstance(root.base, np.ndarray):
        root = root.base
    if isinstance(root, np.memmap) and isinstance(root.base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        root.base.madvise(mmap.MADV_DONTNEED)


def read_into(array: np.ndarray, descriptor: int, offset: int) -> bool:
    """Fill an array, C-contiguous, with the bytes at a place of a file; False where the file ends before.

    Examples
    --------
    >>> with tempfile.TemporaryFile(buffering=0) as file:
    ...     _ = file.write(bytes([0, 1, 2]))
    ...     array = np.empty(2, dtype=np.uint8)
    ...     read_into(array, file.fileno(), 1), array.tolist(), read_into(array, file.fileno(), 2)
    (True, [1, 2], False)
    """
    room = array.reshape(-1).view(np.uint8).data
    done = 0
    while done < len(room):
        # One call may bring less than asked for: the system reads no more than 2 GiB at a time.
        got = os.preadv(descriptor, [room[done:]], offset + done)
        if not got:
            return False
        done += got
    return True


@dataclass(frozen=True)
class _PutAway:
    """An array in a file that it may share with others."""

    file: Any
    offset: int
    dtype: np.dtype
    shape: tuple[int, ...]

    def read(self) -> np.ndarray:
        array = np.empty(self.shape, self.dtype)
        if not read_into(array, self.file.fileno(), self.offset):
            raise OSError("A temporary file ends before its last row; run again.")
        return array


class PutAway:
    """A file for arrays that are not needed for a while; it goes with the last of them.

    Examples
    --------
    >>> file = PutAway()
    >>> labels, counts = file.put((np.arange(2**20), np.array([1, 2])))
    >>> isinstance(labels, np.ndarray), counts.tolist()
    (False, [1, 2])
    >>> int(brought((labels, counts))[0][-1])
    1048575
    """

    def __init__(self) -> None:
        self._file: Any = None
        self._end = 0

    def put(self, value: Any) -> Any:
        """Put an array away, or those in a tuple, if they are large; anything else is returned as it is."""
        if isinstance(value, tuple) and type(value) is tuple:
            return tuple(self.put(part) for part in value)
        if not isinstance(value, np.ndarray) or value.nbytes < _HELD_BYTES or value.dtype.hasobject:
            return value
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="c2tc-rows-", buffering=0)  # noqa: SIM115
        away = _PutAway(self._file, self._end, value.dtype, value.shape)
        rest = np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
        while rest:
            written = os.pwrite(self._file.fileno(), rest, self._end)
            rest, self._end = rest[written:], self._end + written
        return away


def brought(value: Any) -> Any:
    """Return what :meth:`PutAway.put` was given.

    Examples
    --------
    >>> brought(PutAway().put("a word"))
    'a word'
    """
    if type(value) is tuple:
        return tuple(brought(part) for part in value)
    return value.read() if isinstance(value, _PutAway) else value
