"""Where the rows of a class are: in memory, or in a ``.npy`` file or object of which only parts are ever in memory.

A source hands out runs of rows and picked rows, and knows nothing of clusters. What is stored is read, not mapped:
pages of a mapped file count as memory of the process until the system takes them back.
"""

from __future__ import annotations

import hashlib
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from c2tc_pipeline.clustering.row_numbers import read_into
from c2tc_pipeline.storage.backend import Backend

# Rows whose bytes are hashed at once.
_HASHED_ROWS = 65_536
# Picked rows that are no farther apart than this many bytes are read in one go.
_SAME_READ = 4_096
_MOST_READ = 8 * 2**20


class RowSource(ABC):
    """The rows of one class or table, of equal length and type."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """The type of the numbers."""

    @property
    def row_bytes(self) -> int:
        """The size of a row."""
        return self.shape[1] * self.dtype.itemsize

    @abstractmethod
    def part(self, start: int, stop: int) -> RowSource:
        """Return a run of the rows as a source of its own; nothing is read."""

    @abstractmethod
    def read(self) -> np.ndarray:
        """Return all rows, C-contiguous where they are stored; not to be changed."""

    @abstractmethod
    def take(self, positions: np.ndarray) -> np.ndarray:
        """Return copies of the rows at these positions, in their order."""

    def __len__(self) -> int:
        return self.shape[0]

    def parts(self, rows: int) -> Iterator[RowSource]:
        """Cut the rows into runs of this length; the last may be shorter."""
        for start in range(0, len(self), rows):
            yield self.part(start, min(start + rows, len(self)))

    def digest(self) -> str:
        """Return the sha256 of the rows; where they are makes no difference."""
        shown = f"{self.dtype.str}{self.shape}"
        digest = hashlib.sha256(shown.encode())
        for part in self.parts(_HASHED_ROWS):
            digest.update(np.ascontiguousarray(part.read()).reshape(-1).view(np.uint8).data)
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class HeldRows(RowSource):
    """Rows in memory.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows; neither copied nor changed.

    Examples
    --------
    >>> HeldRows(np.arange(6.0).reshape(3, 2)).part(1, 3).take(np.array([1]))
    array([[4., 5.]])
    """

    X: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self.X.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.X.dtype

    def part(self, start: int, stop: int) -> HeldRows:
        return HeldRows(self.X[start:stop])

    def read(self) -> np.ndarray:
        return self.X

    def take(self, positions: np.ndarray) -> np.ndarray:
        return self.X[positions]


@dataclass(frozen=True)
class StoredRows(RowSource):
    """Rows in a ``.npy`` file or object, C-contiguous; a small value that can be sent to another process.

    Parameters
    ----------
    path : str
        Where the file is: a path, or ``s3://``, with endpoint and credentials from the environment of whoever reads.
    type_name : str
        The type of the numbers, as numpy spells it.
    rows, columns : int
        The shape.
    offset : int
        Where the first row begins, in bytes.
    """

    path: str
    type_name: str
    rows: int
    columns: int
    offset: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.columns

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.type_name)

    def part(self, start: int, stop: int) -> StoredRows:
        return replace(self, rows=stop - start, offset=self.offset + start * self.row_bytes)

    def read(self) -> np.ndarray:
        with self._opened() as run:
            return run(0, self.rows)

    def take(self, positions: np.ndarray) -> np.ndarray:
        order = np.argsort(positions, kind="stable")
        wanted = np.asarray(positions, dtype=np.int64)[order]
        taken = np.empty((len(wanted), self.columns), self.dtype)
        # Neighbours come in one read, as long as it does not grow too large; all others in one each.
        places = wanted * self.row_bytes
        cuts = np.flatnonzero((np.diff(places) > _SAME_READ) | (np.diff(places // _MOST_READ) > 0)) + 1
        with self._opened() as run:
            for first, last in zip([0, *cuts], [*cuts, len(wanted)], strict=True):
                if first < last:
                    near = run(int(wanted[first]), int(wanted[last - 1]) + 1)
                    taken[order[first:last]] = near[wanted[first:last] - wanted[first]]
        return taken

    @contextmanager
    def _opened(self) -> Iterator[Callable[[int, int], np.ndarray]]:
        """Give out what reads a run of rows."""
        if self.path.startswith("s3://"):
            folder, _, name = self.path.removeprefix("s3://").rpartition("/")
            yield partial(self._object_run, Backend(f"s3://{folder}"), name)
            return
        with open(self.path, "rb", buffering=0) as stream:
            yield partial(self._file_run, stream.fileno())

    def _object_run(self, backend: Backend, name: str, start: int, stop: int) -> np.ndarray:
        begin, end = (self.offset + row * self.row_bytes for row in (start, stop))
        content = backend.read_bytes(name, begin, end)
        if len(content) < end - begin:
            raise self._cut_short()
        return np.frombuffer(content, self.dtype).reshape(stop - start, self.columns)

    def _file_run(self, descriptor: int, start: int, stop: int) -> np.ndarray:
        """Read a run of rows into memory of their own."""
        rows = np.empty((stop - start, self.columns), self.dtype)
        if not read_into(rows, descriptor, self.offset + start * self.row_bytes):
            raise self._cut_short()
        return rows

    def _cut_short(self) -> OSError:
        return OSError(f"The file {self.path!r} ends before its last row; write it again.")


@dataclass(frozen=True, eq=False)
class MirroredRows(RowSource):
    """Rows that are here and stored elsewhere, too, where other processes may read them.

    Parameters
    ----------
    here : RowSource
        What this process reads.
    there : StoredRows
        The same rows, for others.
    """

    here: RowSource
    there: StoredRows

    @property
    def shape(self) -> tuple[int, int]:
        return self.here.shape

    @property
    def dtype(self) -> np.dtype:
        return self.here.dtype

    def part(self, start: int, stop: int) -> MirroredRows:
        return MirroredRows(self.here.part(start, stop), self.there.part(start, stop))

    def read(self) -> np.ndarray:
        return self.here.read()

    def take(self, positions: np.ndarray) -> np.ndarray:
        return self.here.take(positions)


def stored_at(address: str, X: np.ndarray) -> MirroredRows:
    """Return rows of which ``numpy.save`` made a file at an address.

    Parameters
    ----------
    address : str
        A path or ``s3://``.
    X : ndarray of shape (n, d)
        All rows of the file.

    Examples
    --------
    >>> stored_at("s3://bucket/rows.npy", np.zeros((4, 3), dtype=np.float32)).part(1, 4).there.offset
    140
    """
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(X))
    there = StoredRows(address, X.dtype.str, X.shape[0], X.shape[1], len(header.getvalue()))
    return MirroredRows(rows_of(X), there)


def rows_of(X: np.ndarray | RowSource) -> RowSource:
    """Return where rows are: those of a memory-mapped file are read from the file, a part at a time.

    Examples
    --------
    >>> type(rows_of(np.zeros((2, 1)))).__name__
    'HeldRows'
    """
    if isinstance(X, RowSource):
        return X
    root = X
    while isinstance(root.base, np.ndarray):
        root = root.base
    # Rows that a program changed in its own copy of the pages are not those in the file.
    if not isinstance(root, np.memmap) or root.filename is None or root.mode == "c":
        return HeldRows(X)
    if X.ndim != 2 or not X.flags.c_contiguous or not os.path.exists(root.filename):
        return HeldRows(X)
    ahead = X.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return StoredRows(os.path.abspath(root.filename), X.dtype.str, X.shape[0], X.shape[1], root.offset + ahead)
