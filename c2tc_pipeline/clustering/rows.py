"""Access to encoded rows, in memory or in a ``.npy`` file, in blocks; per-row arrays spilled to temporary files.

Stored rows are read, not memory-mapped: mapped pages count as memory of the process until the system evicts them. How
a class is cut into blocks depends only on its columns and dtype, and block results are added in order, so that results
do not depend on the engine or on where the rows are.
"""

from __future__ import annotations

import errno
import hashlib
import io
import math
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, Any

import numpy as np

from c2tc_pipeline.storage.backend import Backend

# A class up to this size is one block. Raising it changes the results of larger classes.
BLOCK_BYTES = 128 * 2**20
_MIN_BLOCK_ROWS = 4_096
# Selected rows at most this many bytes apart are read at once, up to a limit.
_READ_GAP_BYTES = 4_096
_MAX_READ_BYTES = 8 * 2**20
# Per-row arrays with this many int32 entries, and other arrays from this size, are spilled to files.
_SPILL_ENTRIES = 2**20
_SPILL_BYTES = 2**20
# Size of the sample from which an origin is chosen: its median. Rows are re-centred if the median of their squared
# distances from it is below this share of its squared norm.
_CENTRING_ROWS = 4_096
_NEAR_SHARE = 0.01


@dataclass(frozen=True)
class _NpyRange:
    """A range of rows of a C-contiguous ``.npy`` file (a path or ``s3://``); small enough to send to a worker.

    When rows are read, their columns are multiplied by ``factors``, and ``origin`` is subtracted from the result.
    """

    path: str
    type_name: str
    shape: tuple[int, int]
    offset: int
    factors: tuple[float, ...] | None = None
    origin: tuple[float, ...] | None = None

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.type_name)

    @property
    def row_bytes(self) -> int:
        return self.shape[1] * self.dtype.itemsize

    def __getitem__(self, rows: slice) -> _NpyRange:
        length = rows.stop - rows.start
        return replace(self, shape=(length, self.shape[1]), offset=self.offset + rows.start * self.row_bytes)

    def read(self) -> np.ndarray:
        with self._opened() as read_range:
            return read_range(0, self.shape[0])

    def take(self, positions: np.ndarray) -> np.ndarray:
        order = np.argsort(positions, kind="stable")
        wanted = np.asarray(positions, dtype=np.int64)[order]
        taken = np.empty((len(wanted), self.shape[1]), self.dtype)
        starts = wanted * self.row_bytes
        far = (np.diff(starts) > _READ_GAP_BYTES) | (np.diff(starts // _MAX_READ_BYTES) > 0)
        cuts = np.flatnonzero(far) + 1
        with self._opened() as read_range:
            for first, last in zip([0, *cuts], [*cuts, len(wanted)], strict=True):
                if first < last:
                    near = read_range(int(wanted[first]), int(wanted[last - 1]) + 1)
                    taken[order[first:last]] = near[wanted[first:last] - wanted[first]]
        return taken

    @contextmanager
    def _opened(self) -> Iterator[Callable[[int, int], np.ndarray]]:
        """Yield a function that reads the rows from one position to another."""
        with ExitStack() as stack:
            if self.path.startswith("s3://"):
                folder, _, name = self.path.removeprefix("s3://").rpartition("/")
                read_values = partial(_values_of_object, Backend(f"s3://{folder}"), name)
            else:
                read_values = partial(_values_of_file, stack.enter_context(open(self.path, "rb", buffering=0)))

            def read_range(start: int, stop: int) -> np.ndarray:
                count = (stop - start) * self.shape[1]
                values = read_values(self.dtype, self.offset + start * self.row_bytes, count)
                if len(values) < count:
                    raise OSError(f"The file {self.path!r} ends before its last row; write it again.")
                rows = values.reshape(stop - start, self.shape[1])
                if self.factors is not None:
                    rows = rows * np.array(self.factors, dtype=self.dtype)
                return rows if self.origin is None else rows - np.array(self.origin, dtype=self.dtype)

            yield read_range


@dataclass(frozen=True, eq=False)
class RowSource:
    """Rows of one table or class: an array or a range of a ``.npy`` file, perhaps with a copy that workers can read."""

    data: np.ndarray | _NpyRange
    copy: _NpyRange | None = None

    @classmethod
    def of(cls, X: np.ndarray | RowSource, address: str | None = None) -> RowSource:
        """Wrap rows; ``address`` is where ``numpy.save`` stored all of them. Rows of a mapped file are read from it."""
        if isinstance(X, RowSource):
            return X
        copy = None
        if address is not None:
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(X))
            copy = _NpyRange(address, X.dtype.str, (X.shape[0], X.shape[1]), len(header.getvalue()))
        root: Any = X
        while isinstance(root.base, np.ndarray):
            root = root.base
        # Pages of a copy-on-write mapping may differ from the file.
        mapped = isinstance(root, np.memmap) and root.filename is not None and root.mode != "c"
        if not mapped or X.ndim != 2 or not X.flags.c_contiguous or not os.path.exists(root.filename):
            return cls(X, copy)
        ahead = X.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        path = os.path.abspath(root.filename)
        return cls(_NpyRange(path, X.dtype.str, (X.shape[0], X.shape[1]), root.offset + ahead), copy)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.data.shape[0], self.data.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self.data.dtype

    @property
    def row_bytes(self) -> int:
        """The size of a row."""
        return self.shape[1] * self.dtype.itemsize

    @property
    def in_memory(self) -> bool:
        """Whether the rows are an array in memory."""
        return isinstance(self.data, np.ndarray)

    @property
    def stored(self) -> RowSource | None:
        """The same rows in a file, which other processes may be able to read; None if there is none."""
        if self.copy is not None:
            return RowSource(self.copy)
        return None if self.in_memory else self

    def scaled(self, factors: np.ndarray) -> RowSource:
        """Return the rows with their columns multiplied by factors, those of files when they are read."""
        given = tuple(factors.tolist())
        copy = None if self.copy is None else replace(self.copy, factors=given)
        if isinstance(self.data, np.ndarray):
            return RowSource(self.data * factors.astype(self.data.dtype), copy)
        return RowSource(replace(self.data, factors=given), copy)

    def centred(self) -> tuple[RowSource, np.ndarray]:
        """Return the rows minus their median, and the median; rows near the origin are returned unchanged, with zeros.

        Distances between rows far from the origin lose precision: products of rows are much larger than the distances.
        """
        some = self.take(np.linspace(0, len(self) - 1, min(len(self), _CENTRING_ROWS)).astype(np.int64))
        middle = np.median(some, axis=0).astype(self.dtype)
        away = float(middle.astype(np.float64) @ middle.astype(np.float64))
        if float(np.median(((some - middle).astype(np.float64) ** 2).sum(axis=1))) >= _NEAR_SHARE * away:
            return self, np.zeros_like(middle)
        origin = tuple(middle.tolist())
        copy = None if self.copy is None else replace(self.copy, origin=origin)
        if isinstance(self.data, np.ndarray):
            return RowSource(self.data - middle, copy), middle
        return RowSource(replace(self.data, origin=origin), copy), middle

    def part(self, start: int, stop: int) -> RowSource:
        """Return a range of the rows without reading them."""
        rows = slice(start, stop)
        return RowSource(self.data[rows], None if self.copy is None else self.copy[rows])

    def read(self) -> np.ndarray:
        """Return all rows, not to be changed."""
        return self.data if isinstance(self.data, np.ndarray) else self.data.read()

    def take(self, positions: np.ndarray) -> np.ndarray:
        """Return copies of the rows at these positions, in their order."""
        return self.data[positions] if isinstance(self.data, np.ndarray) else self.data.take(positions)

    def __len__(self) -> int:
        return self.shape[0]

    def parts(self, rows: int) -> Iterator[RowSource]:
        """Cut the rows into ranges of this length; the last may be shorter."""
        for start in range(0, len(self), rows):
            yield self.part(start, min(start + rows, len(self)))

    def digest(self) -> str:
        """Return the sha256 of dtype, shape and rows, wherever they are."""
        digest = hashlib.sha256(f"{self.dtype.str}{self.shape}".encode())
        for part in self.parts(65_536):
            digest.update(np.ascontiguousarray(part.read()).reshape(-1).view(np.uint8).data)
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class RowBlock:
    """A range of a class's rows, with weights, and with their positions in the class if these are not consecutive."""

    rows: RowSource
    first: int = 0
    weight: np.ndarray | None = None
    positions: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def open(self) -> RowBlock:
        """Return the block with its rows in memory."""
        return self if self.rows.in_memory else replace(self, rows=RowSource(self.rows.read()))

    def class_positions(self, rows: np.ndarray) -> np.ndarray:
        """Return the positions in the class of some rows of the block."""
        return rows + self.first if self.positions is None else self.positions[rows]


def rows_per_block(rows: RowSource) -> int:
    """Return how many rows a block of such rows has."""
    return max(_MIN_BLOCK_ROWS, BLOCK_BYTES // max(rows.row_bytes, rows.dtype.itemsize))


def cut_blocks(
    rows: RowSource, weight: np.ndarray | None = None, positions: np.ndarray | None = None
) -> list[RowBlock]:
    """Cut rows, with their weights and positions, into blocks."""
    size = rows_per_block(rows)
    blocks = []
    for start in range(0, len(rows), size):
        part = slice(start, min(start + size, len(rows)))
        arrays = (None if array is None else array[part] for array in (weight, positions))
        blocks.append(RowBlock(rows.part(part.start, part.stop), start, *arrays))
    return blocks


def row_array(count: int) -> np.ndarray:
    """Return a zeroed int32 array with one entry per row: in memory if small, else in an anonymous temporary file."""
    if count < _SPILL_ENTRIES:
        return np.zeros(count, dtype=np.int32)
    with tempfile.TemporaryFile(prefix="c2tc-rows-") as file:
        _reserve(file.fileno(), count * np.dtype(np.int32).itemsize)
        return np.memmap(file, dtype=np.int32, mode="w+", shape=(count,))


def row_chunks(count: int) -> Iterator[slice]:
    """Yield ranges of a per-row array of which a copy is small."""
    for start in range(0, count, _SPILL_ENTRIES):
        yield slice(start, min(start + _SPILL_ENTRIES, count))


def lookup(table: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return ``table[indices]`` as a per-row array."""
    found = row_array(len(indices))
    for chunk in row_chunks(len(indices)):
        found[chunk] = table[indices[chunk]]
        release_pages(found)
        release_pages(indices)
    return found


def release_pages(array: np.ndarray) -> None:
    """Return the pages of a spilled array to the system, which reads them again on access."""
    root: Any = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    if isinstance(root, np.memmap) and isinstance(root.base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        root.base.madvise(mmap.MADV_DONTNEED)


class SpillFile:
    """An anonymous temporary file for large arrays; it disappears with the last of them."""

    def __init__(self) -> None:
        self._file: Any = None
        self._end = 0

    def spill(self, value: Any) -> Any:
        """Replace large arrays, alone or in a tuple, by references for :func:`unspill`."""
        if type(value) is tuple:
            return tuple(self.spill(part) for part in value)
        if not isinstance(value, np.ndarray) or value.nbytes < _SPILL_BYTES or value.dtype.hasobject:
            return value
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="c2tc-rows-", buffering=0)  # noqa: SIM115
        reference = _Spilled(self._file, self._end, value.dtype, value.shape)
        self._file.seek(self._end)
        value.tofile(self._file)
        self._end += value.nbytes
        return reference


@dataclass(frozen=True)
class _Spilled:
    file: Any
    offset: int
    dtype: np.dtype
    shape: tuple[int, ...]


def unspill(value: Any) -> Any:
    """Return what :meth:`SpillFile.spill` was given."""
    if type(value) is tuple:
        return tuple(unspill(part) for part in value)
    if not isinstance(value, _Spilled):
        return value
    return _values_of_file(value.file, value.dtype, value.offset, math.prod(value.shape)).reshape(value.shape)


def _reserve(descriptor: int, size: int) -> None:
    """Allocate the disk space of a mapped file: on a full disk, writing to a page would kill the process."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS):
            raise OSError(error.errno, os.strerror(error.errno or 0), tempfile.gettempdir()) from None


def _values_of_file(file: IO[bytes], dtype: np.dtype, offset: int, count: int) -> np.ndarray:
    file.seek(offset)
    return np.fromfile(file, dtype, count)


def _values_of_object(backend: Backend, name: str, dtype: np.dtype, offset: int, count: int) -> np.ndarray:
    content = backend.read_bytes(name, offset, offset + count * dtype.itemsize)
    return np.frombuffer(content, dtype, len(content) // dtype.itemsize)
