"""Exact counts of each category by class, and the number of distinct values: all that encoders learn about categories.

Blocks of rows add up. Memory is bounded by the number of categories times that of classes; a column with more than
:data:`MOST_CATEGORIES` categories is no longer counted, and encoders look at a sample of the rows instead. The number
of distinct values is then estimated by a sketch of the smallest hashes (k minimum values): exact up to k values, with a
standard error of one in the square root of k beyond, and equal for any division and order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.tables.categories import factorise

MOST_CATEGORIES = 2**18
# Hashes that the sketch keeps: 2 MB per column. Beyond so many distinct values the error is 0.2 %.
KEPT_HASHES = 2**18
# Rows counted together: a column of nothing but distinct strings is given up before all of them are in memory.
_CHUNK_ROWS = 2**20


class DistinctCount:
    """Number of distinct values, from their 64-bit hashes."""

    def __init__(self, kept: int = KEPT_HASHES) -> None:
        self._kept = kept
        self._smallest = np.empty(0, dtype=np.uint64)
        self._pending: list[np.ndarray] = []
        self._limit: np.uint64 | None = None

    def add(self, hashes: np.ndarray) -> None:
        """Take the hashes of a block's values into account, repeated or not."""
        if self._limit is not None:
            hashes = hashes[hashes < self._limit]
        self._pending.append(np.asarray(pd.unique(hashes)))
        if sum(map(len, self._pending)) > self._kept:
            self._merge()

    @property
    def is_exact(self) -> bool:
        """Whether the number is exact."""
        self._merge()
        return self._limit is None

    @property
    def value(self) -> int:
        """The number of distinct values."""
        self._merge()
        if self._limit is None:
            return len(self._smallest)
        return round((self._kept - 1) / (float(self._smallest[-1]) / 2.0**64))

    def _merge(self) -> None:
        if not self._pending:
            return
        # Sorted by hand: np.unique looks hashes up in a table first, which takes ten times as long.
        merged = np.sort(np.concatenate([self._smallest, *self._pending]))
        merged = merged[np.append(True, merged[1:] != merged[:-1])[: len(merged)]]
        self._pending = []
        if len(merged) > self._kept or self._limit is not None:
            merged = merged[: self._kept]
            self._limit = merged[-1]
        self._smallest = merged.copy()


def mixed_bits(words: np.ndarray) -> np.ndarray:
    """Return 64-bit hashes of 64-bit words, one to one (the finaliser of SplitMix64)."""
    mixed = words.astype(np.uint64)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def hashed_numbers(numbers: np.ndarray) -> np.ndarray:
    """Return the hashes of numbers: integers by value, whatever their type, others by their bits."""
    if numbers.dtype.kind != "f":
        return mixed_bits(numbers.astype(np.int64).view(np.uint64))
    floats = numbers.astype(np.float64)
    # A column of integers comes as floats in blocks with missing values.
    integer = (np.abs(floats) < 2.0**53) & (np.floor(floats) == floats)
    words = floats.view(np.uint64).copy()
    words[integer] = floats[integer].astype(np.int64).view(np.uint64)
    return mixed_bits(words)


def hashed_texts(texts: list[str]) -> np.ndarray:
    """Return the hashes of strings."""
    cells: Any = np.array(texts, dtype=object)
    return np.asarray(pd.util.hash_array(cells, categorize=False), dtype=np.uint64)


@dataclass(frozen=True)
class CategoryCounts:
    """The categories of a column in the order in which they first appear, and their rows by class.

    ``table`` has the shape (categories, classes); ``missing`` counts the rows of each class without a value.
    """

    keys: list[str]
    table: np.ndarray
    missing: np.ndarray

    @classmethod
    def of(cls, series: pd.Series[Any], codes: np.ndarray | None = None, classes: int = 1) -> CategoryCounts:
        """Count the rows of one block, however many categories there are; without codes there is one class."""
        counter = CategoryCounter(most=len(series))
        counter.add(series, np.zeros(len(series), dtype=np.int64) if codes is None else codes)
        return counter.counts(np.arange(max(classes, 1 if codes is None or not len(codes) else int(codes.max()) + 1)))

    @property
    def rows(self) -> np.ndarray:
        """Rows of each category."""
        return np.asarray(self.table.sum(axis=1))


class CategoryCounter:
    """Counts categories block by block, until there are more than ``most``."""

    def __init__(self, most: int = MOST_CATEGORIES) -> None:
        self._most = most
        self._place: dict[str, int] = {}
        self._table = np.zeros((0, 0), dtype=np.int64)
        self._missing = np.zeros(0, dtype=np.int64)
        self._sketch: DistinctCount | None = None

    @property
    def is_exact(self) -> bool:
        """Whether all categories were counted."""
        return self._sketch is None

    @property
    def distinct(self) -> int:
        """The number of categories; an estimate where they are very many."""
        return len(self._place) if self._sketch is None else self._sketch.value

    @property
    def distinct_is_exact(self) -> bool:
        """Whether the number of categories is exact."""
        return self._sketch is None or self._sketch.is_exact

    def add(self, series: pd.Series[Any], codes: np.ndarray) -> None:
        """Count the rows of a block, given their class numbers."""
        for start in range(0, len(series), _CHUNK_ROWS):
            self._add(series.iloc[start : start + _CHUNK_ROWS], codes[start : start + _CHUNK_ROWS])

    def add_missing(self, rows: np.ndarray) -> None:
        """Count rows without a value, given how many each class has."""
        self._missing = added_by_class(self._missing, rows)

    def _add(self, series: pd.Series[Any], codes: np.ndarray) -> None:
        classes = max(int(codes.max()) + 1, len(self._missing))
        positions, keys = factorise(series)
        if self._sketch is not None or len(keys) > self._most:
            # A table of all categories by all classes may be far larger than the rows.
            self.add_missing(np.bincount(codes[positions < 0], minlength=classes))
            self._estimate(keys)
            return
        counted = np.bincount((positions + 1) * classes + codes, minlength=(len(keys) + 1) * classes)
        counted = counted.reshape(len(keys) + 1, classes)
        self.add_missing(counted[0])
        places = np.array([self._place.setdefault(key, len(self._place)) for key in keys], dtype=np.int64)
        if len(self._place) > self._most:
            self._estimate([])
            return
        if len(self._place) > len(self._table) or classes > self._table.shape[1]:
            # Twice as long each time, so that growing costs little in all.
            longer = len(self._table) if len(self._place) <= len(self._table) else 2 * len(self._place)
            table = np.zeros((longer, classes), dtype=np.int64)
            table[: len(self._table), : self._table.shape[1]] = self._table
            self._table = table
        self._table[places] += counted[1:]

    def _estimate(self, keys: list[str]) -> None:
        """Forget the counts, and from now on estimate the number of categories."""
        if self._sketch is None:
            self._sketch = DistinctCount()
            keys = [*self._place, *keys]
            self._place, self._table = {}, np.zeros((0, 0), dtype=np.int64)
        self._sketch.add(hashed_texts(keys))

    def counts(self, classes: np.ndarray) -> CategoryCounts:
        """Return the counts, with the classes in the given order of their numbers."""
        assert self._sketch is None
        table = _padded(self._table[: len(self._place)], len(classes))
        return CategoryCounts(list(self._place), table[:, classes], _padded(self._missing, len(classes))[classes])


def added_by_class(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Add rows by class where one of both may have fewer classes."""
    classes = max(len(one), len(other))
    return _padded(one, classes) + _padded(other, classes)


def _padded(counts: np.ndarray, classes: int) -> np.ndarray:
    """Return counts with zeros for further classes."""
    room = classes - counts.shape[-1]
    return counts if room <= 0 else np.pad(counts, [(0, 0)] * (counts.ndim - 1) + [(0, room)])
