"""Encoded training rows, sorted by class, in memory or in a ``.npy`` file."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from c2tc_pipeline.clustering.rows import RowSource
from c2tc_pipeline.condensation.column_weights import ColumnWeights
from c2tc_pipeline.storage.manifest import hash_json

_ROWS = "rows"


@dataclass(frozen=True)
class EncodedRows:
    """Encoded rows in the order of their classes.

    Examples
    --------
    >>> rows = EncodedRows(np.zeros((3, 1), dtype=np.float32), np.array([0, 1, 3]), ("age",), ("no", "yes"))
    >>> rows.class_rows, rows.codes().tolist()
    ([1, 2], [0, 1, 1])
    """

    X: np.ndarray  # float32, in memory or mapped from a file
    edges: np.ndarray  # where each class begins, and the end
    names: tuple[str, ...]  # of the encoded columns
    classes: tuple[str, ...]  # their names, for people
    validation: tuple[np.ndarray, np.ndarray] | None = None  # encoded rows, and their class numbers
    origin: str = ""  # the hash of the rows before encoding: different rows may be equal when encoded
    weights: ColumnWeights | None = None  # of the columns in distances
    address: str = ""  # of a .npy file or object that other processes may read; empty if there is none
    # The temporary directory of X, removed with this object.
    scratch: Any = field(default=None, repr=False, compare=False)

    @property
    def rows(self) -> RowSource:
        """The training rows, readable in parts and by other processes."""
        return RowSource.of(self.X, self.address or None)

    @property
    def weighted_rows(self) -> RowSource:
        """The training rows in the space of weighted distances."""
        return self.rows if self.weights is None else self.weights.scaled(self.rows)

    @property
    def weighted_validation(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The validation rows in the space of weighted distances, and their class numbers."""
        if self.weights is None or self.validation is None:
            return self.validation
        return self.weights.scaled(RowSource.of(self.validation[0])).read(), self.validation[1]

    def stored_in(self, folder: str) -> EncodedRows:
        """Return the rows with their address, given that of the folder with their files."""
        return replace(self, address=f"{folder}/{_ROWS}.npy")

    @property
    def class_rows(self) -> list[int]:
        """The number of rows of each class."""
        return [int(rows) for rows in np.diff(self.edges)]

    def codes(self) -> np.ndarray:
        """Return the class number of each row."""
        return np.repeat(np.arange(len(self.classes)), np.diff(self.edges))

    def digest(self) -> str:
        """Return the hash of everything in it."""
        arrays = [RowSource.of(_rows_2d(array)).digest() for array in self._arrays().values()]
        return hash_json([self._description(), arrays])

    def write_files(self, directory: Path) -> None:
        """Write the rows into an existing directory."""
        for name, array in self._arrays().items():
            if isinstance(array, np.memmap) and array.filename is not None:
                # Copied as a file: reading a mapped one would count as memory of the process.
                shutil.copyfile(array.filename, directory / f"{name}.npy")
            else:
                np.save(directory / f"{name}.npy", array, allow_pickle=False)
        text = json.dumps(self._description(), ensure_ascii=False)
        (directory / "encoded.json").write_text(text + "\n", encoding="utf-8", errors="surrogatepass")

    @classmethod
    def read_files(cls, directory: Path) -> EncodedRows:
        """Read what :meth:`write_files` wrote; large rows are mapped, which works also after the file is deleted."""
        values = json.loads((directory / "encoded.json").read_text(encoding="utf-8", errors="surrogatepass"))
        held = None
        if values["validation"]:
            held = _load(directory, "validation"), _load(directory, "validation_classes")
        edges = np.array(values["edges"], dtype=np.int64)
        names, classes = tuple(values["names"]), tuple(values["classes"])
        weights = None if values["weights"] is None else ColumnWeights.from_dict(values["weights"])
        return cls(_load(directory, _ROWS), edges, names, classes, held, values["origin"], weights)

    def _arrays(self) -> dict[str, np.ndarray]:
        held = self.validation
        return {_ROWS: self.X, **({} if held is None else {"validation": held[0], "validation_classes": held[1]})}

    def _description(self) -> dict[str, object]:
        return {
            "names": list(self.names),
            "classes": list(self.classes),
            "edges": [int(edge) for edge in self.edges],
            "validation": self.validation is not None,
            "origin": self.origin,
            "weights": None if self.weights is None else self.weights.to_dict(),
        }


# Bytes from which on stored rows are mapped instead of read.
_MAPPED_BYTES = 2**28


def _load(directory: Path, name: str) -> np.ndarray:
    path = directory / f"{name}.npy"
    is_large = path.stat().st_size >= _MAPPED_BYTES
    loaded: np.ndarray = np.load(path, mmap_mode="r" if is_large else None, allow_pickle=False)
    return loaded


def _rows_2d(array: np.ndarray) -> np.ndarray:
    return array if array.ndim == 2 else array.reshape(-1, 1)


class ClassCursor:
    """Positions in rows sorted by class, for rows that come in the order of the source."""

    def __init__(self, edges: np.ndarray) -> None:
        self._next = np.asarray(edges[:-1], dtype=np.int64).copy()

    def runs(self, codes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield, for each class in the next rows, the position of its first one and which of the rows are of it."""
        order = np.argsort(codes, kind="stable")
        rows = np.bincount(codes, minlength=len(self._next))
        firsts, ends = self._next.copy(), np.cumsum(rows)
        self._next += rows
        for code in np.flatnonzero(rows).tolist():
            yield int(firsts[code]), order[ends[code] - rows[code] : ends[code]]

    def places(self, codes: np.ndarray) -> np.ndarray:
        """Return the position of each of the next rows, given their class numbers."""
        places = np.empty(len(codes), dtype=np.int64)
        for first, own in self.runs(codes):
            places[own] = np.arange(first, first + len(own))
        return places


class SortedRows:
    """Encoded rows written to their places by class, block by block, in memory or in a ``.npy`` file.

    A file is written with ``pwrite`` and not mapped: pages of a mapped file count as memory of the process.
    """

    def __init__(self, path: Path | None, edges: np.ndarray, columns: int) -> None:
        self._cursor = ClassCursor(edges)
        self._path = path
        shape = int(edges[-1]), columns
        if path is None:
            self._held = np.empty(shape, dtype=np.float32)
            return
        self._row_bytes = columns * 4
        self._file = path.open("wb")
        header = {"descr": np.dtype(np.float32).str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)
        self._start = self._file.tell()
        self._file.truncate(self._start + shape[0] * self._row_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._path is not None:
            self._file.close()

    def add(self, encoded: np.ndarray, codes: np.ndarray) -> None:
        """Write the next rows, given their class numbers."""
        for first, own in self._cursor.runs(codes):
            if self._path is None:
                self._held[first : first + len(own)] = encoded[own]
                continue
            rows = np.ascontiguousarray(encoded[own], dtype=np.float32).data.cast("B")
            place = self._start + first * self._row_bytes
            while rows:
                written = os.pwrite(self._file.fileno(), rows, place)
                rows, place = rows[written:], place + written

    def result(self) -> np.ndarray:
        """Return the rows after the last block."""
        if self._path is None:
            return self._held
        mapped: np.ndarray = np.load(self._path, mmap_mode="r", allow_pickle=False)
        return mapped
