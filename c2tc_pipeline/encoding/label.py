"""Categories as numbers in the order of their names: two values as {0, 1}, or evenly spaced label encoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
import pandas as pd

from c2tc_pipeline.common.seeds import RandomStateLike
from c2tc_pipeline.encoding.base import Progress, TableEncoder
from c2tc_pipeline.encoding.numeric import NumericPart
from c2tc_pipeline.encoding.part import Part, PartState, category_rows
from c2tc_pipeline.tables.categories import natural_order
from c2tc_pipeline.tables.category_counts import CategoryCounts
from c2tc_pipeline.tables.roles import Role
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


@dataclass(eq=False)
class LabelPart(Part):
    """Categories numbered in the order of their names, scaled to [0, 1]; missing and unseen ones come last."""

    kind = "label"

    columns: list[str]
    keys: list[list[str]]

    @classmethod
    def fit(cls, statistics: TableStatistics, columns: Sequence[str]) -> LabelPart:
        """Learn the categories of each column."""
        return cls(list(columns), [sorted(statistics.categories(name).keys, key=natural_order) for name in columns])

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        out = np.empty((len(frame), len(self.columns)), dtype=np.float32)
        for index, (name, known) in enumerate(zip(self.columns, self.keys, strict=True)):
            last = len(known)
            out[:, index] = category_rows(frame[name], known, unseen=last).astype(np.float32) / last if known else 1
        return out

    def state(self) -> PartState:
        return PartState({"columns": self.columns, "keys": self.keys})

    @classmethod
    def from_state(cls, state: PartState) -> Self:
        columns = state.texts("columns")
        return cls(columns, state.text_lists("keys", len(columns)))

    def known(self) -> list[list[str]]:
        return self.keys


@dataclass(eq=False, repr=False)
class LabelEncoder(TableEncoder):
    """Label encoding of all categorical columns, with scaled numeric ones: one of the paper's ablations.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"age": [20, 60, 40], "job": ["nurse", "cook", "nurse"]})
    >>> LabelEncoder().fit_transform(rows)
    array([[0. , 0.5],
           [1. , 0. ],
           [0.5, 0.5]], dtype=float32)
    """

    numeric: str = "minmax"
    _: KW_ONLY
    roles: Mapping[str, Role | str] | None = None
    random_state: RandomStateLike = 0

    def _fit_parts(self, statistics: TableStatistics, columns: list[str], progress: Progress | None) -> list[Part]:
        numeric = [name for name in columns if self.roles_[name].role is Role.NUMERIC]
        return [
            NumericPart.fit(statistics, numeric, self.numeric),
            LabelPart.fit(statistics, [name for name in columns if name not in numeric]),
        ]
