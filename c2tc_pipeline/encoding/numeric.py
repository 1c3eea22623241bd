"""Numeric and two-valued columns: scaled to [0, 1], missing numbers at the median, marked in a column of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import pandas as pd

from c2tc_pipeline.common.defaults import SCALINGS, check_choice
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.encoding.part import Part, PartState, category_rows
from c2tc_pipeline.tables.category_counts import CategoryCounts
from c2tc_pipeline.tables.close_numbers import CloseNumbers
from c2tc_pipeline.tables.kinds import natural_order
from c2tc_pipeline.tables.statistics import TableStatistics, as_numbers

# Points of the distribution function that are kept; between them it is a straight line.
_KNOTS = 1_001


class MissingMark(NamedTuple):
    """A column of numbers and its mark: their places among encoded columns, and the encoding of missing numbers."""

    column: int
    mark: int
    height: float


@dataclass(eq=False)
class NumericPart(Part):
    """Numeric columns as their place in the training distribution, or between its limits.

    ``"minmax"`` is the paper's scaling. ``"quantile"`` maps a value to the share of training rows below it, so that a
    few outliers do not compress all other values.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = TableStatistics.of(pd.DataFrame({"x": [1.0, 2.0, 1000.0]}))
    >>> part = NumericPart.fit(rows, ["x"], "quantile")
    >>> part.encode(pd.DataFrame({"x": [1.0, 2.0, 1e9]})).ravel()
    array([0. , 0.5, 1. ], dtype=float32)
    """

    kind = "numeric"

    columns: list[str]
    knots: list[np.ndarray]
    heights: list[np.ndarray]
    medians: list[float]
    marked: list[bool]

    @classmethod
    def fit(cls, statistics: TableStatistics, columns: Sequence[str], scaling: str) -> NumericPart:
        """Learn the limits or the distribution of each column."""
        check_choice("Numeric scaling", scaling, SCALINGS)
        part = cls(list(columns), [], [], [], [])
        for name in part.columns:
            found = statistics.numbers(name)
            if found.infinite:
                raise InputError(
                    f"Column {name!r} holds {found.infinite} infinite values; "
                    "replace them by numbers or leave them empty."
                )
            limits = np.zeros(2) if found.is_empty else np.array([found.low, found.high])
            sample = as_numbers(statistics.sample[name])
            if statistics.is_sampled:
                # A sample may lack the limits.
                sample = np.append(sample, limits)
            if sample.dtype.kind == "f":
                sample = sample[~np.isnan(sample)]
            part.marked.append(found.missing > 0)
            part.medians.append(float(np.median(sample)) if len(sample) else 0.0)
            if scaling == "minmax" or limits[0] == limits[1]:
                knots, heights = limits, np.array([0.0, 1.0])
            else:
                knots, heights = _distribution(sample)
            part.knots.append(knots)
            part.heights.append(heights)
        return part

    def names(self) -> list[str]:
        marks = [f"{name}__missing" for name, marked in zip(self.columns, self.marked, strict=True) if marked]
        return [*self.columns, *marks]

    def sources(self) -> list[list[str]]:
        marked = [name for name, marked in zip(self.columns, self.marked, strict=True) if marked]
        return [[name] for name in (*self.columns, *marked)]

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        scaled, marks = [], []
        parts = zip(self.columns, self.knots, self.heights, self.medians, self.marked, strict=True)
        for name, knots, heights, median, marked in parts:
            values = as_numbers(frame[name])
            absent = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
            if absent.any():
                values = np.where(absent, median, values)
            scaled.append(_heights_at(values, knots, heights))
            if marked:
                marks.append(absent.astype(np.float32))
        return np.stack([*scaled, *marks], axis=1) if scaled else np.empty((len(frame), 0), np.float32)

    def marks(self) -> list[MissingMark]:
        """Return the marked columns, by their places in this part."""
        marked = np.flatnonzero(self.marked).tolist()
        return [
            MissingMark(
                column,
                len(self.columns) + place,
                float(_heights_at(np.array([self.medians[column]]), self.knots[column], self.heights[column])[0]),
            )
            for place, column in enumerate(marked)
        ]

    def decode(self, encoded: np.ndarray, *, has_jumps: bool) -> dict[str, np.ndarray]:
        """Return the numbers behind encoded columns, NaN where they are marked as missing.

        With ``has_jumps``, as for quantiles, a height between two knots that stand for many equal values each is that
        of the nearer one; elsewhere numbers lie on the line between knots.
        """
        numbers = {
            name: _values_at(encoded[:, place].astype(np.float64), knots, heights, has_jumps=has_jumps)
            for place, (name, knots, heights) in enumerate(zip(self.columns, self.knots, self.heights, strict=True))
        }
        for mark in self.marks():
            name = self.columns[mark.column]
            numbers[name] = np.where(encoded[:, mark.mark] > 0.5, np.nan, numbers[name])
        return numbers

    def state(self) -> PartState:
        arrays = {f"knots_{i}": knots for i, knots in enumerate(self.knots)}
        arrays |= {f"heights_{i}": heights for i, heights in enumerate(self.heights)}
        return PartState({"columns": self.columns, "medians": self.medians, "marked": self.marked}, arrays)

    @classmethod
    def from_state(cls, state: PartState) -> Self:
        columns = state.texts("columns")
        count = len(columns)
        knots = [state.array(f"knots_{i}", None) for i in range(count)]
        heights = [state.array(f"heights_{i}", len(known)) for i, known in enumerate(knots)]
        return cls(columns, knots, heights, state.numbers("medians", count), state.flags("marked", count))


def _heights_at(values: np.ndarray, knots: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Return the heights at some values, none of them missing; each of close integers is looked up once."""
    if knots[0] == knots[-1]:
        return np.zeros(len(values), dtype=np.float32)
    close = CloseNumbers.of(values, most=len(values) // 2)
    at = values if close is None else np.arange(close.low, close.low + close.width)
    # Between knots closer than 1e-308 the slope is infinite.
    found = np.clip(np.interp(at, knots, heights), 0, 1).astype(np.float32)
    return np.asarray(found if close is None else found[close.places])


def _values_at(wanted: np.ndarray, knots: np.ndarray, heights: np.ndarray, *, has_jumps: bool) -> np.ndarray:
    """Return the values at some heights; the inverse of :func:`_heights_at`."""
    if len(knots) < 2 or knots[0] == knots[-1]:
        return np.full(len(wanted), knots[0], dtype=np.float64)
    values = np.interp(wanted, heights, knots)
    if not has_jumps:
        return values
    below = np.clip(np.searchsorted(heights, wanted, side="right") - 1, 0, len(knots) - 2)
    gaps = np.diff(heights)[below]
    nearer = knots[np.where(wanted - heights[below] < gaps / 2, below, below + 1)]
    # Knots of a column without ties lie at most one step of the grid apart.
    return np.where(gaps > 1.5 / (_KNOTS - 1), nearer, values)


def _distribution(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points of the distribution function, with tied values at the middle of their step, from 0 to 1."""
    distinct, counts = np.unique(values, return_counts=True)
    ranks = np.cumsum(counts) - counts / 2
    if len(distinct) > _KNOTS:
        # Evenly spaced in rank, first and last kept.
        kept = np.unique(np.searchsorted(ranks, np.linspace(ranks[0], ranks[-1], _KNOTS)))
        distinct, ranks = distinct[kept], ranks[kept]
    return distinct.astype(np.float64, copy=False), (ranks - ranks[0]) / (ranks[-1] - ranks[0])


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
