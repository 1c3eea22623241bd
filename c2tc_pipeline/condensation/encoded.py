"""A table as numbers: the encoded training rows, sorted by class."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from c2tc_pipeline.clustering.rows import RowSource
from c2tc_pipeline.storage.hashing import hash_array, hash_json

_ROWS = "rows"


@dataclass(frozen=True)
class EncodedTable:
    """Encoded rows in the order of their classes.

    Parameters
    ----------
    X : ndarray of float32 of shape (n, d)
        The training rows.
    edges : ndarray of int of shape (classes + 1,)
        Where each class begins, and the end.
    names : tuple of str
        The encoded columns.
    classes : tuple of str
        The names of the classes, for people.
    validation : tuple of (rows, class numbers), optional
        Validation rows of known classes.
    address : str
        Where other processes may read the rows, as a ``.npy`` file or object; empty if they are not stored. No part of
        what the table is.
    origin : str
        The hash of what the rows were before, where they have one: different rows may look alike when encoded.

    Examples
    --------
    >>> table = EncodedTable(np.zeros((3, 1), dtype=np.float32), np.array([0, 1, 3]), ("age",), ("no", "yes"))
    >>> table.class_rows
    [1, 2]
    """

    X: np.ndarray
    edges: np.ndarray
    names: tuple[str, ...]
    classes: tuple[str, ...]
    validation: tuple[np.ndarray, np.ndarray] | None = None
    origin: str = ""
    address: str = ""

    @property
    def rows(self) -> RowSource:
        """The training rows, for those who read them in parts or elsewhere."""
        return RowSource.of(self.X, self.address or None)

    def stored_in(self, folder: str) -> EncodedTable:
        """Return the table with the address of its rows, given that of the folder with its files."""
        return replace(self, address=f"{folder}/{_ROWS}.npy")

    @property
    def class_rows(self) -> list[int]:
        """The number of rows of each class."""
        return [int(rows) for rows in np.diff(self.edges)]

    def digest(self) -> str:
        """Return the hash of everything in it."""
        return hash_json([self._description(), [hash_array(array) for array in self._arrays().values()]])

    def write_files(self, directory: Path) -> None:
        """Write the table into an existing directory."""
        for name, array in self._arrays().items():
            np.save(directory / f"{name}.npy", array, allow_pickle=False)
        text = json.dumps(self._description(), ensure_ascii=False)
        (directory / "encoded.json").write_text(text + "\n", encoding="utf-8", errors="surrogatepass")

    @classmethod
    def read_files(cls, directory: Path) -> EncodedTable:
        """Read what :meth:`write_files` wrote."""
        values = json.loads((directory / "encoded.json").read_text(encoding="utf-8", errors="surrogatepass"))

        def array(name: str) -> np.ndarray:
            return np.load(directory / f"{name}.npy", allow_pickle=False)

        held = (array("validation"), array("validation_classes")) if values["validation"] else None
        edges = np.array(values["edges"], dtype=np.int64)
        return cls(array(_ROWS), edges, tuple(values["names"]), tuple(values["classes"]), held, values["origin"])

    def _arrays(self) -> dict[str, np.ndarray]:
        held = (
            {}
            if self.validation is None
            else dict(zip(("validation", "validation_classes"), self.validation, strict=True))
        )
        return {_ROWS: self.X, **held}

    def _description(self) -> dict[str, object]:
        return {
            "names": list(self.names),
            "classes": list(self.classes),
            "edges": [int(edge) for edge in self.edges],
            "validation": self.validation is not None,
            "origin": self.origin,
        }
