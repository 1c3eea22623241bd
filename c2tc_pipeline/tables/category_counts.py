"""How often each category of a column occurs in each class: all that encoders learn about strings and codes.

Counts are exact and blocks of rows add up. Memory is bounded by the number of different categories times that of
classes; a column with more than :data:`MOST_CATEGORIES` categories, be it within one block, is no longer counted, and
encoders then look at a sample of the rows instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.tables.categories import category_key, factorise
from c2tc_pipeline.tables.close_numbers import CloseNumbers
from c2tc_pipeline.tables.distinct import DistinctCount, hashed_texts

MOST_CATEGORIES = 2**18
# Rows looked at together: a column of nothing but different strings is given up before all of them are in memory.
_CHUNK_ROWS = 2**20


@dataclass(frozen=True)
class CategoryCounts:
    """The categories of a column and their rows by class.

    Parameters
    ----------
    keys : list of str
        The categories, in the order in which they first appear.
    table : ndarray of int of shape (categories, classes)
        Rows of each category in each class.
    missing : ndarray of int of shape (classes,)
        Rows of each class without a value.

    Examples
    --------
    >>> counts = CategoryCounts.of(pd.Series(["b", "a", None, "b"]), np.array([0, 1, 1, 1]))
    >>> counts.keys, counts.table.tolist(), counts.missing.tolist()
    (['b', 'a'], [[1, 1], [0, 1]], [0, 1])
    """

    keys: list[str]
    table: np.ndarray
    missing: np.ndarray

    @classmethod
    def of(cls, series: pd.Series[Any], codes: np.ndarray | None = None, classes: int = 1) -> CategoryCounts:
        """Count the rows of one block, however many categories there are; without classes all are of one."""
        counter = CategoryCounter(most=len(series))
        counter.add(series, np.zeros(len(series), dtype=np.int64) if codes is None else codes)
        return counter.counts(np.arange(max(classes, 1 if codes is None or not len(codes) else int(codes.max()) + 1)))

    @property
    def rows(self) -> np.ndarray:
        """Rows of each category."""
        return np.asarray(self.table.sum(axis=1))


class CategoryCounter:
    """Counts categories block by block, until there are too many.

    Parameters
    ----------
    most : int
        Different categories that are counted.

    Examples
    --------
    >>> counter = CategoryCounter(most=2)
    >>> counter.add(pd.Series(["a", "b"]), np.array([0, 0]))
    >>> counter.is_exact, counter.distinct
    (True, 2)
    >>> counter.add(pd.Series(["c"]), np.array([0]))
    >>> counter.is_exact, counter.distinct
    (False, 3)
    """

    def __init__(self, most: int = MOST_CATEGORIES) -> None:
        self._most = most
        self._place: dict[str, int] = {}
        self._table = np.zeros((0, 0), dtype=np.int64)
        self._missing = np.zeros(0, dtype=np.int64)
        self._beyond: DistinctCount | None = None

    @property
    def is_exact(self) -> bool:
        """Whether all categories were counted."""
        return self._beyond is None

    @property
    def distinct(self) -> int:
        """The number of different categories; an estimate where they are very many."""
        return len(self._place) if self._beyond is None else self._beyond.value

    @property
    def distinct_is_exact(self) -> bool:
        """Whether the number of different categories is exact."""
        return self._beyond is None or self._beyond.is_exact

    def add(self, series: pd.Series[Any], codes: np.ndarray, class_rows: np.ndarray | None = None) -> None:
        """Count the rows of a block, given their class numbers and, where that is known, how many each class has."""
        if len(series) <= _CHUNK_ROWS:
            self._add(series, codes, class_rows)
            return
        for start in range(0, len(series), _CHUNK_ROWS):
            self._add(series.iloc[start : start + _CHUNK_ROWS], codes[start : start + _CHUNK_ROWS])

    def add_missing(self, rows: np.ndarray) -> None:
        """Count rows without a value, given how many each class has."""
        self._missing = added_by_class(self._missing, rows)

    def _add(self, series: pd.Series[Any], codes: np.ndarray, class_rows: np.ndarray | None = None) -> None:
        if not len(series):
            return
        if class_rows is None:
            class_rows = np.bincount(codes, minlength=len(self._missing))
        most = self._most if self._beyond is None else 0
        keys, missing, block = _counted(series, codes, class_rows, most=most)
        classes = len(class_rows)
        self.add_missing(missing)
        if self._beyond is not None or block is None:
            self._count_distinct(keys)
            return
        places = np.array([self._place.setdefault(key, len(self._place)) for key in keys], dtype=np.int64)
        if len(self._place) > self._most:
            self._count_distinct([])
            return
        if len(self._place) > len(self._table) or classes > self._table.shape[1]:
            # Twice as long each time, so that growing costs little in all.
            longer = len(self._table) if len(self._place) <= len(self._table) else 2 * len(self._place)
            table = np.zeros((longer, classes), dtype=np.int64)
            table[: len(self._table), : self._table.shape[1]] = self._table
            self._table = table
        self._table[places] += block

    def _count_distinct(self, keys: list[str]) -> None:
        """From now on know no more of categories than how many there are."""
        if self._beyond is None:
            self._beyond = DistinctCount()
            keys = [*self._place, *keys]
            self._place, self._table = {}, np.zeros((0, 0), dtype=np.int64)
        self._beyond.add(hashed_texts(keys))

    def counts(self, classes: np.ndarray) -> CategoryCounts:
        """Return the counts, with the classes in the given order of their numbers."""
        assert self._beyond is None
        table = _widened(self._table[: len(self._place)], len(classes))
        return CategoryCounts(list(self._place), table[:, classes], _widened(self._missing, len(classes))[classes])


def added_by_class(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Add rows by class where one of both may know of fewer classes.

    Examples
    --------
    >>> added_by_class(np.array([1, 2]), np.array([0, 1, 5])).tolist()
    [1, 3, 5]
    """
    classes = max(len(one), len(other))
    return _widened(one, classes) + _widened(other, classes)


def _counted(
    series: pd.Series[Any], codes: np.ndarray, class_rows: np.ndarray, most: int
) -> tuple[list[str], np.ndarray, np.ndarray | None]:
    """Return the categories as they first appear, the rows by class without a value, and those of each category.

    There are none of the last where there are too many categories: a table of all of them by all classes may be larger
    than the rows by far.
    """
    classes = len(class_rows)
    if isinstance(series.dtype, np.dtype):
        close = CloseNumbers.of(series.to_numpy(), most=max(len(series) // classes, 1))
        if close is not None:
            table = close.counted(codes, classes, class_rows)
            order = close.appeared(table.sum(axis=1) > 0)
            keys = [category_key(close.low + place) for place in order.tolist()]
            return keys, np.zeros(classes, dtype=np.int64), table[order] if len(keys) <= most else None
    positions, keys = factorise(series)
    if len(keys) > most:
        return keys, np.bincount(codes[positions < 0], minlength=classes), None
    counted = np.bincount((positions + 1) * classes + codes, minlength=(len(keys) + 1) * classes)
    table = counted.reshape(len(keys) + 1, classes)
    return keys, table[0], table[1:]


def _widened(counts: np.ndarray, classes: int) -> np.ndarray:
    """Return counts with zeros for classes that came later."""
    room = classes - counts.shape[-1]
    return counts if room <= 0 else np.pad(counts, [(0, 0)] * (counts.ndim - 1) + [(0, room)])
