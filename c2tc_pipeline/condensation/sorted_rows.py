"""Encoded rows in a file, in the order of their classes, written as they come.

How many rows each class has is known before the first row is written, so that every row goes straight to its place.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np


class ClassCursor:
    """Where the next rows of each class go, when rows of all classes come in the order of the source.

    Parameters
    ----------
    edges : ndarray of int of shape (classes + 1,)
        Where each class begins in the sorted rows, and the end.

    Examples
    --------
    >>> cursor = ClassCursor(np.array([0, 2, 4]))
    >>> cursor.places(np.array([1, 0])).tolist(), cursor.places(np.array([0, 1])).tolist()
    ([2, 0], [1, 3])
    """

    def __init__(self, edges: np.ndarray) -> None:
        self._next = np.asarray(edges[:-1], dtype=np.int64).copy()

    def runs(self, codes: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Return, for each class in the next rows, the place of its first one and which of them are of the class."""
        order = np.argsort(codes, kind="stable")
        rows = np.bincount(codes, minlength=len(self._next))
        runs = []
        for number, end in enumerate(np.cumsum(rows)):
            if rows[number]:
                runs.append((int(self._next[number]), order[end - rows[number] : end]))
        self._next += rows
        return runs

    def places(self, codes: np.ndarray) -> np.ndarray:
        """Return the place of each of the next rows, given the numbers of their classes."""
        places = np.empty(len(codes), dtype=np.int64)
        for first, own in self.runs(codes):
            places[own] = np.arange(first, first + len(own))
        return places


class SortedRowsFile:
    """A ``.npy`` file of float32 rows that is filled class by class, block by block.

    It is written and not mapped: pages of a mapped file count as memory of the process until the system takes them.

    Parameters
    ----------
    path : path
        The file; replaced.
    edges : ndarray of int of shape (classes + 1,)
        Where each class begins, and the end.
    columns : int
        Columns of a row.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.npy"
    >>> with SortedRowsFile(path, np.array([0, 1, 3]), 1) as file:
    ...     file.add(np.array([[0.5], [0.25], [1.0]], dtype=np.float32), np.array([1, 0, 1]))
    >>> np.load(path, mmap_mode="r").ravel().tolist()
    [0.25, 0.5, 1.0]
    """

    def __init__(self, path: Path, edges: np.ndarray, columns: int) -> None:
        self._cursor = ClassCursor(edges)
        self._row_bytes = columns * 4
        self._file = path.open("wb")
        header = {"descr": np.dtype(np.float32).str, "fortran_order": False, "shape": (int(edges[-1]), columns)}
        np.lib.format.write_array_header_1_0(self._file, header)
        self._start = self._file.tell()
        self._file.truncate(self._start + int(edges[-1]) * self._row_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, encoded: np.ndarray, codes: np.ndarray) -> None:
        """Write the next rows, given the numbers of their classes."""
        for first, own in self._cursor.runs(codes):
            rows = np.ascontiguousarray(encoded[own], dtype=np.float32).data.cast("B")
            place = self._start + first * self._row_bytes
            while rows:
                written = os.pwrite(self._file.fileno(), rows, place)
                rows, place = rows[written:], place + written
