"""The tables of a run, in the forms in which the parts want them, each made once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from c2tc_pipeline.bench.experiments.catalogue import PAPER_TABLES
from c2tc_pipeline.condensation.clusters import ClassOrder
from c2tc_pipeline.condensation.steps import encode_table, fit_encoder
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.tables.blocks import read_table
from c2tc_pipeline.tables.catalogue import load_catalogue
from c2tc_pipeline.tables.preparation import PreparedTable, prepare_table
from c2tc_pipeline.tables.spec import TableSpec


@dataclass(frozen=True)
class ClassRows:
    """Encoded rows in the order of their classes.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows.
    edges : ndarray of int of shape (classes + 1,)
        Where each class begins, and the end.
    """

    X: np.ndarray
    edges: np.ndarray

    @property
    def codes(self) -> np.ndarray:
        """The class number of each row."""
        sizes = np.diff(self.edges)
        return np.repeat(np.arange(len(sizes)), sizes)

    def by_class(self) -> list[np.ndarray]:
        """Return the rows of each class."""
        return np.split(self.X, self.edges[1:-1])


class SpeedTable:
    """A table of the benchmark.

    Parameters
    ----------
    spec : TableSpec
        Its description, with a source that can be opened.

    Examples
    --------
    >>> spec = TableSpec(name="made", source="made.parquet", label="y")
    >>> table = SpeedTable(spec)
    >>> table.frame = pd.DataFrame({"x": np.arange(60.0) % 7, "y": ["a", "b", "b"] * 20})
    >>> table.encoded.X.shape, table.encoded.edges.tolist()
    ((60, 1), [0, 20, 60])
    """

    def __init__(self, spec: TableSpec) -> None:
        self.spec = spec

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The table as it was read."""
        return read_table(self.spec.source)

    @property
    def prepared(self) -> PreparedTable:
        """All its rows, ready to be encoded."""
        return prepare_table(self.frame, label=self.spec.label, roles=self.spec.roles)

    @cached_property
    def encoded(self) -> ClassRows:
        """All its rows, encoded as they are by default."""
        prepared = self.prepared
        by_class = ClassOrder.of(prepared.y.to_numpy())
        encoder = fit_encoder(HybridEncoder(random_state=0), prepared)
        made = encode_table(encoder, prepared, by_class)
        return ClassRows(made.X, made.edges)


def paper_table(name: str, data: Path) -> SpeedTable | None:
    """Return a table of the paper from a folder, or None when it is not there."""
    spec = load_catalogue(PAPER_TABLES).table(name)
    source = data / spec.source
    return SpeedTable(spec.model_copy(update={"source": str(source)})) if source.is_file() else None
