"""What is known of a column after all its rows were seen once, block by block: enough to decide what it is used for.

Blocks add up, and any division of the rows into blocks gives the same facts. What encoders learn of a column is
gathered on the way, as far as its role is not yet ruled out. The rules are in :mod:`c2tc_pipeline.tables.roles`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.tables.category_counts import MOST_CATEGORIES, CategoryCounter, added_by_class
from c2tc_pipeline.tables.close_numbers import CloseNumbers
from c2tc_pipeline.tables.distinct import DistinctCount, hashed_numbers
from c2tc_pipeline.tables.kinds import Kind, column_kind, joined_kind, plain, to_codes, to_numbers, to_text

# Whole numbers that lie no farther apart are marked in a table of this size to find those that occur.
_CLOSE = 2**16
# Rows looked at together where numbers are converted; keeps copies small beside a large table.
_CHUNK_ROWS = 2**20


@dataclass(frozen=True)
class ColumnFacts:
    """What the rules for roles ask about a column.

    Parameters
    ----------
    kind : Kind
        What the values are, whatever the column is called.
    rows, missing, distinct : int
        Rows, rows without a value, and different values.
    is_counted : bool
        Whether ``distinct`` is exact rather than an estimate.
    low, high : float
        Limits of numbers; NaN for others.
    is_category : bool
        Whether the column is stored as a category.
    """

    kind: Kind
    rows: int
    missing: int
    distinct: int
    is_counted: bool
    low: float
    high: float
    is_category: bool


class NumberRange:
    """The limits of a column of numbers, block by block.

    Examples
    --------
    >>> numbers = NumberRange()
    >>> numbers.add(np.array([3.0, np.nan, np.inf]), np.arange(3))
    >>> numbers.low, numbers.missing, numbers.infinite, numbers.first_infinite
    (3.0, 1, 1, 2)
    """

    def __init__(self) -> None:
        self.low = np.inf
        self.high = -np.inf
        self.missing = 0
        self.infinite = 0
        self.first_infinite: int | None = None

    def add(self, numbers: np.ndarray, row_ids: np.ndarray) -> None:
        """Take numbers into account, missing ones as NaN, and where they stand in the source."""
        if numbers.dtype.kind in "iu":
            self._widen(numbers)
            return
        absent = np.isnan(numbers)
        self.missing += int(absent.sum())
        infinite = np.isinf(numbers)
        if infinite.any():
            self.infinite += int(infinite.sum())
            if self.first_infinite is None:
                self.first_infinite = int(row_ids[int(np.argmax(infinite))])
        self._widen(numbers[~(absent | infinite)])

    def _widen(self, present: np.ndarray) -> None:
        if len(present):
            self.low, self.high = min(self.low, float(present.min())), max(self.high, float(present.max()))

    @property
    def is_empty(self) -> bool:
        """Whether there was no number at all."""
        return self.low > self.high


class ColumnGatherer:
    """Gathers the facts of one column, and the counts and limits that encoders need.

    Parameters
    ----------
    role : str, optional
        The role that the user gave the column.
    could_be_code : bool
        Whether whole numbers may turn out to be codes, so that they have to be counted.
    facts_only : bool
        The whole column comes as one block, and nothing is wanted but its facts: what they do not need is not counted.
    """

    def __init__(self, role: str | None = None, *, could_be_code: bool = False, facts_only: bool = False) -> None:
        self._role = role
        self._facts_only = facts_only
        self._most = MOST_CATEGORIES if could_be_code or role in ("code", "string") else 2
        self._kind = Kind.EMPTY
        self._rows = 0
        self._missing = 0
        self._is_category = False
        self._distinct = DistinctCount()
        self.counter: CategoryCounter | None = None
        self.range = NumberRange()
        self._early_missing = np.zeros(0, dtype=np.int64)

    def add(self, series: pd.Series[Any], codes: np.ndarray, row_ids: np.ndarray) -> None:
        """Take a block into account, with the class numbers of its rows and their places in the source."""
        kind = column_kind(series)
        self._kind = joined_kind(self._kind, kind)
        self._is_category = self._is_category or isinstance(series.dtype, pd.CategoricalDtype)
        self._rows += len(series)
        values = to_text(series) if kind is Kind.MIXED or self._role == "string" else plain(series)
        self._missing += int(values.isna().sum())
        if self._is_to_be_counted(kind):
            if self.counter is None:
                self.counter = CategoryCounter(
                    MOST_CATEGORIES if kind in (Kind.TEXT, Kind.MIXED) or self._is_category else self._most
                )
                self.counter.add_missing(self._early_missing)
            self.counter.add(to_codes(series).values if self._role == "code" else values, codes)
        elif self.counter is None and kind is Kind.EMPTY:
            # Whether gaps have to be counted shows when the first value comes.
            self._early_missing = added_by_class(self._early_missing, np.bincount(codes))
        elif self.counter is not None:
            self.counter.add_missing(np.bincount(codes))
        if kind is Kind.EMPTY:
            self.range.missing += len(series)
        elif kind not in (Kind.TEXT, Kind.MIXED) or self._role == "numeric":
            self._add_numbers(series, row_ids)

    def _is_to_be_counted(self, kind: Kind) -> bool:
        if self._facts_only and not self._goes_by_text(kind):
            return False
        if self._role in ("string", "code", "numeric"):
            return self._role != "numeric"
        return kind in (Kind.TEXT, Kind.MIXED, Kind.BOOLEAN, Kind.WHOLE)

    def _goes_by_text(self, kind: Kind) -> bool:
        """Whether different values are told apart by their text."""
        return kind in (Kind.TEXT, Kind.MIXED) or self._role == "string"

    def _add_numbers(self, series: pd.Series[Any], row_ids: np.ndarray) -> None:
        for start in range(0, len(series), _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            numbers = to_numbers(series.iloc[rows]).values
            if numbers.dtype.kind in "iu":
                exact = found = numbers.to_numpy()
            else:
                found = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
                exact = found[~np.isnan(found)]
            self.range.add(found, row_ids[rows])
            self._distinct.add(hashed_numbers(_without_repeats(exact)))

    def facts(self) -> ColumnFacts:
        """Return what is known of the rows seen so far."""
        if self._goes_by_text(self._kind) and self.counter is not None:
            distinct, is_counted = self.counter.distinct, self.counter.distinct_is_exact
        else:
            distinct, is_counted = self._distinct.value, self._distinct.is_exact
        low, high = (np.nan, np.nan) if self.range.is_empty else (self.range.low, self.range.high)
        present = self._rows - self._missing
        return ColumnFacts(
            kind=self._kind,
            rows=self._rows,
            missing=self._missing,
            distinct=min(distinct, present),
            is_counted=is_counted,
            low=low,
            high=high,
            is_category=self._is_category,
        )


def _without_repeats(numbers: np.ndarray) -> np.ndarray:
    """Drop repeats of whole numbers that lie close together, which is quicker than hashing every one of them.

    Examples
    --------
    >>> _without_repeats(np.array([7, 3, 7], dtype=np.int8))
    array([3, 7])
    """
    close = CloseNumbers.of(numbers, most=_CLOSE + 1)
    if close is None:
        return numbers
    wide = numbers.dtype.type if numbers.dtype.kind == "u" else np.int64
    if close.width <= 2:
        # Both ends occur: most columns are flags, and nobody has to count them for that.
        return np.arange(close.width).astype(wide) + wide(close.low)
    return np.flatnonzero(np.bincount(close.places)).astype(wide) + wide(close.low)
