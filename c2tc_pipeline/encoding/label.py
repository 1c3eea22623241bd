"""Label encoding, one of the paper's ablations: categories as evenly spaced numbers in the order of their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from c2tc_pipeline.encoding.base import Progress, TableEncoder
from c2tc_pipeline.encoding.numeric import NumericPart
from c2tc_pipeline.encoding.part import Part, PartState
from c2tc_pipeline.encoding.row_block import Rows
from c2tc_pipeline.encoding.stored_state import text_lists, texts
from c2tc_pipeline.tables.categories import factorise, natural_order
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline.tables.statistics import TableStatistics


class LabelPart(Part):
    """Categories numbered in the order of their names, scaled to [0, 1]; missing and unseen ones come last.

    Examples
    --------
    >>> import pandas as pd
    >>> part = LabelPart.fit(TableStatistics.of(pd.DataFrame({"c": ["b", "a", "c"]})), ["c"])
    >>> part.encode(pd.DataFrame({"c": ["a", "c", "?"]})).ravel().round(2)
    array([0.  , 0.67, 1.  ], dtype=float32)
    """

    kind = "label"

    def __init__(self, columns: list[str], keys: list[list[str]]) -> None:
        self.columns = columns
        self.keys = keys

    @classmethod
    def fit(cls, statistics: TableStatistics, columns: Sequence[str]) -> LabelPart:
        """Learn the categories of each column."""
        return cls(list(columns), [sorted(statistics.categories(name).keys, key=natural_order) for name in columns])

    def names(self) -> list[str]:
        return list(self.columns)

    def sources(self) -> list[list[str]]:
        return [[name] for name in self.columns]

    def encode(self, frame: Rows) -> np.ndarray:
        out = np.empty((len(frame), len(self.columns)), dtype=np.float32)
        for index, (name, known) in enumerate(zip(self.columns, self.keys, strict=True)):
            positions, keys = factorise(frame[name])
            place = {key: number for number, key in enumerate(known)}
            last = max(len(known), 1)
            numbers = np.array([*(place.get(key, last) for key in keys), last], dtype=np.float32)
            out[:, index] = numbers[positions] / last
        return out

    def state(self) -> PartState:
        return PartState({"columns": self.columns, "keys": self.keys})

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        columns = texts(values["columns"])
        return cls(columns, text_lists(values["keys"], len(columns)))


class LabelEncoder(TableEncoder):
    """Label encoding of all categorical columns, with scaled numeric ones.

    Parameters
    ----------
    numeric : {"minmax", "quantile"}, default="minmax"
        Scaling of numeric columns.
    roles : mapping of str to str, optional
        Roles of columns that inference would get wrong.
    random_state : int, default=0
        Determines the rows that quantiles are taken from.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"age": [20, 60, 40], "job": ["nurse", "cook", "nurse"]})
    >>> LabelEncoder().fit_transform(rows)
    array([[0. , 0.5],
           [1. , 0. ],
           [0.5, 0.5]], dtype=float32)
    """

    def __init__(
        self, numeric: str = "minmax", *, roles: Mapping[str, Role | str] | None = None, random_state: int = 0
    ) -> None:
        self.numeric = numeric
        self.roles = roles
        self.random_state = random_state

    def _fit_parts(self, statistics: TableStatistics, columns: list[str], progress: Progress | None) -> list[Part]:
        numeric = [name for name in columns if self.roles_[name].role is Role.NUMERIC]
        return [
            NumericPart.fit(statistics, numeric, self.numeric),
            LabelPart.fit(statistics, [name for name in columns if name not in numeric]),
        ]
