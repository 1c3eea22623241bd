"""What encoders learn from: counts of categories, limits of numbers, and a sample of rows.

Counts and limits are exact. Distributions of numbers, and which categories go together, are read off a sample of at
most 262,144 rows, which is all rows when there are no more (:mod:`c2tc_pipeline.tables.row_sample`). All of it can be
had from one pass over a table that does not fit in memory; a table that does is the case of one block.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.tables.category_counts import MOST_CATEGORIES, CategoryCounter, CategoryCounts
from c2tc_pipeline.tables.column_facts import NumberRange
from c2tc_pipeline.tables.kinds import as_floats
from c2tc_pipeline.tables.overview import TableOverview
from c2tc_pipeline.tables.row_sample import SAMPLE_ROWS, sampled_numbers

# Whole numbers of so many bytes all have a float64 of their own.
_EXACT_BYTES = 4


class TableStatistics:
    """Statistics of typed rows, gathered or still to be taken.

    Parameters
    ----------
    rows : int
        Rows in all.
    class_rows : ndarray of int
        Rows of each class; one class when there are no labels.
    is_labelled : bool
        Whether there are labels.
    sample : DataFrame
        Sampled rows, in the form that their roles ask for.
    sample_codes : ndarray of int, optional
        Their class numbers, where counts may have to be taken from the sample.
    counts : mapping of str to CategoryCounts
        Counts that were gathered before.
    ranges : mapping of str to NumberRange
        Limits that were gathered before.
    """

    def __init__(
        self,
        rows: int,
        class_rows: np.ndarray,
        *,
        is_labelled: bool,
        sample: pd.DataFrame,
        sample_codes: np.ndarray,
        counts: Mapping[str, CategoryCounts],
        ranges: Mapping[str, NumberRange],
    ) -> None:
        self.rows = rows
        self.class_rows = class_rows
        self.is_labelled = is_labelled
        self._sample = sample
        self._sample_codes = sample_codes
        self._counts = dict(counts)
        self._ranges = dict(ranges)

    @classmethod
    def of(
        cls, frame: pd.DataFrame, codes: np.ndarray | None = None, *, seed: int = 0, most: int = SAMPLE_ROWS
    ) -> TableStatistics:
        """Return the statistics of rows in memory; they are taken when they are asked for.

        Parameters
        ----------
        frame : DataFrame
            Rows in the form that roles ask for.
        codes : ndarray of int, optional
            Their class numbers.
        seed : int
            Determines the sample.
        most : int
            Rows of the sample.

        Examples
        --------
        >>> statistics = TableStatistics.of(pd.DataFrame({"x": [1.0, 5.0], "c": ["a", "b"]}), np.array([0, 1]))
        >>> statistics.numbers("x").high, statistics.categories("c").table.tolist()
        (5.0, [[1, 0], [0, 1]])
        """
        return _FrameStatistics(frame, codes, sampled_numbers(len(frame), seed=seed, most=most))

    @classmethod
    def gathered(cls, overview: TableOverview) -> TableStatistics:
        """Return the statistics that one pass over a table has gathered."""
        return cls(
            overview.rows,
            overview.classes.rows,
            is_labelled=True,
            sample=overview.sample,
            sample_codes=overview.sample_codes,
            counts=overview.counts,
            ranges=overview.ranges,
        )

    @property
    def is_sampled(self) -> bool:
        """Whether the sample is a part of the rows only."""
        return len(self._sample) < self.rows

    def sampled(self, name: str) -> pd.Series[Any]:
        """Return a column of the sampled rows."""
        return self._sample[name]

    def categories(self, name: str) -> CategoryCounts:
        """Return the counts of a column's categories; those of the sample where there are too many to count."""
        if name not in self._counts:
            self._counts[name] = self._counted(name)
        return self._counts[name]

    def numbers(self, name: str) -> NumberRange:
        """Return the limits of a numeric column."""
        return self._ranges[name]

    def _counted(self, name: str) -> CategoryCounts:
        return CategoryCounts.of(self.sampled(name), self._sample_codes, len(self.class_rows))


class _FrameStatistics(TableStatistics):
    """Statistics of rows that are in memory, taken as one block."""

    def __init__(self, frame: pd.DataFrame, codes: np.ndarray | None, picked: np.ndarray) -> None:
        self._frame = frame
        self._codes = np.zeros(len(frame), dtype=np.int64) if codes is None else codes
        self._picked = picked
        self.rows = len(frame)
        self.class_rows = np.bincount(self._codes, minlength=1)
        self.is_labelled = codes is not None
        self._counts, self._ranges = {}, {}

    @property
    def is_sampled(self) -> bool:
        return len(self._picked) < self.rows

    def sampled(self, name: str) -> pd.Series[Any]:
        # A column at a time: many are counted in full, and their sample is never asked for.
        return self._frame[name].iloc[self._picked] if self.is_sampled else self._frame[name]

    @property
    def _sample_codes(self) -> np.ndarray:  # type: ignore[override]
        return self._codes[self._picked]

    def _counted(self, name: str) -> CategoryCounts:
        counter = CategoryCounter(MOST_CATEGORIES)
        counter.add(self._frame[name], self._codes)
        return counter.counts(np.arange(len(self.class_rows))) if counter.is_exact else super()._counted(name)

    def numbers(self, name: str) -> NumberRange:
        if name not in self._ranges:
            self._ranges[name] = NumberRange()
            self._ranges[name].add(as_numbers(self._frame[name]), np.arange(self.rows))
        return self._ranges[name]


def as_numbers(series: pd.Series[Any]) -> np.ndarray:
    """Return a numeric column as whole numbers that float64 has, too, where it holds such, else as float64.

    Examples
    --------
    >>> as_numbers(pd.Series([1, 2], dtype="int16")).dtype.name, as_numbers(pd.Series([1, 2])).dtype.name
    ('int16', 'float64')
    """
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iu" and dtype.itemsize <= _EXACT_BYTES:
        return series.to_numpy()
    return as_floats(series)
