"""Facts about a column that decide its role, gathered block by block in one pass.

Any division of the rows into blocks gives the same facts. What encoders learn of a column is gathered on the way, as
long as no fact rules its role out. The rules are in :mod:`c2tc_pipeline.tables.roles`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.tables.category_counts import (
    MAX_CATEGORIES,
    CategoryCounter,
    DistinctCount,
    added_by_stratum,
    hashed_numbers,
)
from c2tc_pipeline.tables.close_numbers import CloseNumbers
from c2tc_pipeline.tables.kinds import Kind, column_kind, joined_kind, plain, to_codes, to_numbers, to_text

# Rows converted together; keeps copies small beside a large table.
_CHUNK_ROWS = 2**20
# Width of integers whose distinct values are found in a table.
_CLOSE = 2**16


@dataclass(frozen=True)
class ColumnFacts:
    """The facts that the rules for roles use.

    ``distinct`` is exact where ``is_counted``, else an estimate; ``low`` and ``high`` are NaN where there are no
    numbers.
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
    """Minimum and maximum of a column of numbers, and its missing and infinite values, block by block."""

    def __init__(self) -> None:
        self.low = np.inf
        self.high = -np.inf
        self.missing = 0
        self.infinite = 0
        self.first_infinite: int | None = None

    def add(self, numbers: np.ndarray, row_ids: np.ndarray) -> None:
        """Add numbers, missing ones as NaN, with their rows in the source."""
        if numbers.dtype.kind == "f":
            absent, infinite = np.isnan(numbers), np.isinf(numbers)
            self.missing += int(absent.sum())
            if infinite.any():
                self.infinite += int(infinite.sum())
                if self.first_infinite is None:
                    self.first_infinite = int(row_ids[int(np.argmax(infinite))])
            numbers = numbers[~(absent | infinite)]
        if len(numbers):
            self.low, self.high = min(self.low, float(numbers.min())), max(self.high, float(numbers.max()))

    @property
    def is_empty(self) -> bool:
        """Whether there was no finite number."""
        return self.low > self.high


class ColumnGatherer:
    """Gathers the facts of one column, and the counts and limits that encoders need.

    ``role`` is the one given by the user; ``could_be_code`` says whether integers may turn out to be codes and have to
    be counted.
    """

    def __init__(self, role: str | None = None, *, could_be_code: bool = False) -> None:
        self._role = role
        self._most = MAX_CATEGORIES if could_be_code or role in ("code", "string") else 2
        self._kind = Kind.EMPTY
        self._rows = 0
        self._missing = 0
        self._is_category = False
        self._distinct = DistinctCount()
        self.counter: CategoryCounter | None = None
        self.range = NumberRange()
        self._early_missing = np.zeros(0, dtype=np.int64)

    def add(self, series: pd.Series[Any], strata: np.ndarray, row_ids: np.ndarray) -> None:
        """Add a block, with the strata of its rows and their places in the source."""
        kind = column_kind(series)
        self._kind = joined_kind(self._kind, kind)
        self._is_category = self._is_category or isinstance(series.dtype, pd.CategoricalDtype)
        self._rows += len(series)
        values = to_text(series) if kind is Kind.MIXED or self._role == "string" else plain(series)
        self._missing += int(values.isna().sum())
        if self._needs_counts(kind):
            if self.counter is None:
                self.counter = CategoryCounter(
                    MAX_CATEGORIES if kind in (Kind.TEXT, Kind.MIXED) or self._is_category else self._most
                )
                self.counter.add_missing(self._early_missing)
            self.counter.add(to_codes(series).values if self._role == "code" else values, strata)
        elif self.counter is not None:
            self.counter.add_missing(np.bincount(strata))
        elif kind is Kind.EMPTY:
            # Whether missing values have to be counted is known from the first value on.
            self._early_missing = added_by_stratum(self._early_missing, np.bincount(strata))
        if kind is Kind.EMPTY:
            self.range.missing += len(series)
        elif kind not in (Kind.TEXT, Kind.MIXED) or self._role == "numeric":
            self._add_numbers(series, row_ids)

    def _needs_counts(self, kind: Kind) -> bool:
        if self._role in ("string", "code", "numeric"):
            return self._role != "numeric"
        return kind in (Kind.TEXT, Kind.MIXED, Kind.BOOLEAN, Kind.INTEGER)

    def _add_numbers(self, series: pd.Series[Any], row_ids: np.ndarray) -> None:
        for start in range(0, len(series), _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            numbers = to_numbers(series.iloc[rows]).values
            if numbers.dtype.kind in "iu":
                present = found = numbers.to_numpy()
            else:
                found = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
                present = found[~np.isnan(found)]
            self.range.add(found, row_ids[rows])
            close = CloseNumbers.of(present, most=_CLOSE)
            self._distinct.add(hashed_numbers(present if close is None else close.distinct()))

    def facts(self) -> ColumnFacts:
        """Return the facts of the rows so far."""
        # Values are distinct when their texts are.
        compares_text = self._kind in (Kind.TEXT, Kind.MIXED) or self._role == "string"
        if compares_text and self.counter is not None:
            distinct, is_counted = self.counter.distinct, self.counter.distinct_is_exact
        else:
            distinct, is_counted = self._distinct.value, self._distinct.is_exact
        return ColumnFacts(
            kind=self._kind,
            rows=self._rows,
            missing=self._missing,
            distinct=min(distinct, self._rows - self._missing),
            is_counted=is_counted,
            low=np.nan if self.range.is_empty else self.range.low,
            high=np.nan if self.range.is_empty else self.range.high,
            is_category=self._is_category,
        )
