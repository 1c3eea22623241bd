"""Columns of two values as 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from c2tc_pipeline.encoding.part import Part, PartState, category_rows
from c2tc_pipeline.tables.categories import natural_order
from c2tc_pipeline.tables.category_counts import CategoryCounts
from c2tc_pipeline.tables.statistics import TableStatistics


@dataclass(eq=False)
class BinaryPart(Part):
    """Two-valued columns as 0 and 1, the smaller value first; anything else becomes the training mean."""

    kind = "binary"

    columns: list[str]
    values: list[list[str]]
    means: list[float]

    @classmethod
    def fit(cls, statistics: TableStatistics, columns: Sequence[str]) -> BinaryPart:
        """Learn which two values each column has."""
        part = cls(list(columns), [], [])
        for counts in map(statistics.categories, columns):
            ordered = sorted(counts.keys, key=natural_order)
            part.values.append(ordered)
            numbers = np.array([ordered.index(key) for key in counts.keys])
            part.means.append(float(numbers @ counts.rows / counts.rows.sum()))
        return part

    @staticmethod
    def fits(counts: CategoryCounts) -> bool:
        """Return whether a column has two values and no gaps."""
        return len(counts.keys) <= 2 and not counts.missing

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        out = np.empty((len(frame), len(self.columns)), dtype=np.float32)
        for index, (name, values, mean) in enumerate(zip(self.columns, self.values, self.means, strict=True)):
            codes = np.array([*range(len(values)), mean], dtype=np.float32)
            out[:, index] = codes[category_rows(frame[name], values, unseen=len(values))]
        return out

    def state(self) -> PartState:
        return PartState({"columns": self.columns, "values": self.values, "means": self.means})

    @classmethod
    def from_state(cls, state: PartState) -> Self:
        columns = state.texts("columns")
        return cls(columns, state.text_lists("values", len(columns)), state.numbers("means", len(columns)))

    def known(self) -> list[list[str]]:
        return self.values
