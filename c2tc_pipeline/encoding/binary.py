"""Codes with two values keep {0, 1} (binary pass-through)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from c2tc_pipeline.encoding.part import Part, PartState
from c2tc_pipeline.encoding.row_block import Rows
from c2tc_pipeline.encoding.stored_state import numbers, text_lists, texts
from c2tc_pipeline.tables.categories import factorise, natural_order
from c2tc_pipeline.tables.category_counts import CategoryCounts
from c2tc_pipeline.tables.statistics import TableStatistics


class BinaryPart(Part):
    """Two-valued columns as 0 and 1, the smaller value first; anything else becomes the training mean.

    Examples
    --------
    >>> import pandas as pd
    >>> part = BinaryPart.fit(TableStatistics.of(pd.DataFrame({"sex": [1, 2, 2, 2]})), ["sex"])
    >>> part.encode(pd.DataFrame({"sex": [1, 2, 9]})).ravel()
    array([0.  , 1.  , 0.75], dtype=float32)
    """

    kind = "binary"

    def __init__(self, columns: list[str], values: list[list[str]], means: list[float]) -> None:
        self.columns = columns
        self.values = values
        self.means = means

    @classmethod
    def fit(cls, statistics: TableStatistics, columns: Sequence[str]) -> BinaryPart:
        """Learn which two values each column has."""
        part = cls(list(columns), [], [])
        for name in part.columns:
            counts = statistics.categories(name)
            ordered = sorted(counts.keys, key=natural_order)
            part.values.append(ordered)
            numbers = np.array([ordered.index(key) for key in counts.keys])
            part.means.append(float(numbers @ counts.rows / counts.rows.sum()))
        return part

    @staticmethod
    def fits(counts: CategoryCounts) -> bool:
        """Return whether a column has two values and no gaps."""
        return len(counts.keys) <= 2 and not counts.missing.any()

    def names(self) -> list[str]:
        return list(self.columns)

    def sources(self) -> list[list[str]]:
        return [[name] for name in self.columns]

    def encode(self, frame: Rows) -> np.ndarray:
        out = np.empty((len(frame), len(self.columns)), dtype=np.float32)
        for index, (name, values, mean) in enumerate(zip(self.columns, self.values, self.means, strict=True)):
            series = frame[name]
            if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biu":
                out[:, index] = _places_of_numbers(series.to_numpy(), values, mean)
                continue
            positions, keys = factorise(series)
            known = {value: float(place) for place, value in enumerate(values)}
            out[:, index] = np.array([*(known.get(key, mean) for key in keys), mean], dtype=np.float32)[positions]
        return out

    def state(self) -> PartState:
        return PartState({"columns": self.columns, "values": self.values, "means": self.means})

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        columns = texts(values["columns"])
        known = text_lists(values["values"], len(columns))
        return cls(columns, known, numbers(values["means"], len(columns)))


def _places_of_numbers(numbers: np.ndarray, values: Sequence[str], mean: float) -> np.ndarray:
    """Return the place of each whole number among the values, compared as numbers, which is quicker than as keys.

    Examples
    --------
    >>> _places_of_numbers(np.array([1, 2, 9]), ["1", "2"], 0.75).tolist()
    [0.0, 1.0, 0.75]
    """
    places, known = np.zeros(len(numbers), dtype=np.float32), np.zeros(len(numbers), dtype=bool)
    # The key of a whole number is its shortest spelling; other spellings are never met.
    for place, number in ((place, int(value)) for place, value in enumerate(values) if _is_whole(value)):
        equal = numbers == number
        known |= equal
        if place:
            places += np.float32(place) * equal
    if not known.all():
        places[~known] = mean
    return places


def _is_whole(value: str) -> bool:
    return value.removeprefix("-").isdecimal() and str(int(value)) == value
