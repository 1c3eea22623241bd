"""Exact counts of each category by class and fold, and the number of distinct values.

Blocks of rows add up. Only counts above 0 are held, so that memory is bounded by the rows, however many categories and
classes there are; a column with more than :data:`MAX_CATEGORIES` categories is no longer counted, and encoders look at
a sample of the rows instead. The number of distinct values is then estimated by a sketch of the smallest hashes (k
minimum values): exact up to k values, with a standard error of one in the square root of k beyond, and equal for any
division and order of the rows.

The fold of a row depends on its position in the source alone, so that rows can be encoded out of fold block by block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from c2tc_pipeline.tables.close_numbers import CloseNumbers
from c2tc_pipeline.tables.kinds import factorise

MAX_CATEGORIES = 2**18
# Hashes that the sketch keeps: 2 MB per column. Beyond this many distinct values the error is 0.2 %.
KEPT_HASHES = 2**18
# Rows counted together: counting a column of distinct strings stops before all of them are in memory.
_CHUNK_ROWS = 2**20
# Counts that are kept apart at first, before they are added up.
_PENDING_CELLS = 2**16
# A cell of the counts as one number: the category in the upper half, the stratum in the lower.
_STRATUM_BITS = 32

FOLDS = 5
"""Parts of the training rows; the rows of each are encoded by the other parts."""
_FOLD_SEED = np.uint64(0xD1B54A32D192ED03)


def folds_of(row_ids: np.ndarray) -> np.ndarray:
    """Return the folds of rows, given their positions in the source."""
    return (mixed_bits(row_ids.astype(np.uint64) * _FOLD_SEED + _FOLD_SEED) % np.uint64(FOLDS)).astype(np.int64)


def strata_of(codes: np.ndarray, row_ids: np.ndarray) -> np.ndarray:
    """Return one number for the class and the fold of each row; strata of a class are next to each other."""
    return codes.astype(np.int64) * FOLDS + folds_of(row_ids)


class DistinctCount:
    """Number of distinct values, from their 64-bit hashes."""

    def __init__(self, kept: int = KEPT_HASHES) -> None:
        self._kept = kept
        self._smallest = np.empty(0, dtype=np.uint64)
        self._pending: list[np.ndarray] = []
        self._limit: np.uint64 | None = None

    def add(self, hashes: np.ndarray) -> None:
        """Add the hashes of a block's values, repeated or not."""
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
        # Not np.unique, which looks hashes up in a table first and takes ten times as long.
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
    """The categories of a column in the order in which they first appear, and their rows by class and fold.

    ``cells`` has a row for each category and a last one for missing values, and a column for each stratum.
    """

    keys: list[str]
    cells: sparse.csr_array

    @classmethod
    def of(
        cls,
        series: pd.Series[Any],
        codes: np.ndarray | None = None,
        classes: int = 1,
        row_ids: np.ndarray | None = None,
    ) -> CategoryCounts:
        """Count the rows of one block, however many categories there are; without codes there is one class."""
        counter = CategoryCounter(most=len(series))
        codes = np.zeros(len(series), dtype=np.int64) if codes is None else codes
        classes = max(classes, int(codes.max(initial=0)) + 1)
        counter.add(series, strata_of(codes, np.arange(len(series)) if row_ids is None else row_ids))
        return counter.counts(classes)

    @property
    def rows(self) -> np.ndarray:
        """Rows of each category."""
        return np.asarray(self.cells.sum(axis=1))[:-1]

    @property
    def missing(self) -> int:
        """Rows without a value."""
        return int(self.cells[[-1]].sum())

    def by_class(self) -> sparse.csr_array:
        """Return the rows of each category, and of missing values, by class."""
        joined = self.cells.tocoo()
        shape = self.cells.shape[0], self.cells.shape[1] // FOLDS
        return sparse.csr_array((joined.data, (joined.row, joined.col // FOLDS)), shape=shape)

    def of_fold(self, fold: int) -> sparse.csr_array:
        """Return the rows of a fold of each category, and of missing values, by class."""
        return self.cells[:, fold::FOLDS]


class CategoryCounter:
    """Counts categories by stratum, block by block, until there are more than ``most``."""

    def __init__(self, most: int = MAX_CATEGORIES) -> None:
        self._most = most
        self._place: dict[str, int] = {}
        self._cells = _Cells()
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

    def add(self, series: pd.Series[Any], strata: np.ndarray) -> None:
        """Count the rows of a block, given their strata."""
        for start in range(0, len(series), _CHUNK_ROWS):
            self._add(series.iloc[start : start + _CHUNK_ROWS], strata[start : start + _CHUNK_ROWS])

    def add_missing(self, rows: np.ndarray) -> None:
        """Count rows without a value, given how many each stratum has."""
        self._missing = added_by_stratum(self._missing, rows)

    def _add(self, series: pd.Series[Any], strata: np.ndarray) -> None:
        keys, missing, counted = _counted(series, strata, 0 if self._sketch is not None else self._most)
        self.add_missing(missing)
        if counted is None:
            self._estimate(keys)
            return
        places = np.array([self._place.setdefault(key, len(self._place)) for key in keys], dtype=np.int64)
        if len(self._place) > self._most:
            self._estimate([])
            return
        own, stratum, rows = counted
        self._cells.add(places[own] << _STRATUM_BITS | stratum, rows)

    def _estimate(self, keys: list[str]) -> None:
        """Forget the counts, and from now on estimate the number of categories."""
        if self._sketch is None:
            self._sketch = DistinctCount()
            keys = [*self._place, *keys]
            self._place, self._cells = {}, _Cells()
        self._sketch.add(hashed_texts(keys))

    def counts(self, classes: int) -> CategoryCounts:
        """Return the counts, with columns for this number of classes."""
        assert self._sketch is None
        cells, rows = self._cells.summed()
        absent = np.flatnonzero(self._missing)
        place = np.concatenate([cells >> _STRATUM_BITS, np.full(len(absent), len(self._place))])
        stratum = np.concatenate([cells & (2**_STRATUM_BITS - 1), absent])
        rows = np.concatenate([rows, self._missing[absent]])
        shape = len(self._place) + 1, classes * FOLDS
        return CategoryCounts(list(self._place), sparse.csr_array((rows, (place, stratum)), shape=shape))


class _Cells:
    """Numbers of rows by cell, where only cells with rows are held."""

    def __init__(self) -> None:
        self._cells = [np.empty(0, dtype=np.int64)]
        self._rows = [np.empty(0, dtype=np.int64)]

    def add(self, cells: np.ndarray, rows: np.ndarray) -> None:
        self._cells.append(cells)
        self._rows.append(rows)
        # Added up when there are twice as many as before, so that this costs little in all.
        if sum(map(len, self._cells)) > 2 * len(self._cells[0]) + _PENDING_CELLS:
            self.summed()

    def summed(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the cells, ascending, and their rows."""
        cells, places = np.unique(np.concatenate(self._cells), return_inverse=True)
        rows = np.bincount(places, np.concatenate(self._rows), minlength=len(cells)).astype(np.int64)
        self._cells, self._rows = [cells], [rows]
        return cells, rows


def _counted(
    series: pd.Series[Any], strata: np.ndarray, most: int
) -> tuple[list[str], np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray] | None]:
    """Return the categories, the missing values by stratum, and the cells of the others: category, stratum and rows.

    The last is None for more than ``most`` categories.
    """
    size = int(strata.max()) + 1
    cells = series.to_numpy() if isinstance(series.dtype, np.dtype) else np.empty(0)
    close = CloseNumbers.of(cells, most=max(len(series) // size, 1))
    if close is not None:
        table = close.counted(strata, size)
        order = close.appeared(table.sum(axis=1) > 0)
        keys = [str(close.low + place) for place in order.tolist()]
        return keys, np.zeros(size, dtype=np.int64), _nonzero(table[order]) if len(keys) <= most else None
    positions, keys = factorise(series)
    if len(keys) > most:
        return keys, np.bincount(strata[positions < 0], minlength=size), None
    joined = (positions + 1) * size + strata
    if (len(keys) + 1) * size <= len(series):
        table = np.bincount(joined, minlength=(len(keys) + 1) * size).reshape(-1, size)
        return keys, table[0], _nonzero(table[1:])
    # A table of all categories by all strata may be far larger than the rows.
    found, rows = np.unique(joined, return_counts=True)
    missing = np.zeros(size, dtype=np.int64)
    absent = int(np.searchsorted(found, size))
    missing[found[:absent]] = rows[:absent]
    return keys, missing, (found[absent:] // size - 1, found[absent:] % size, rows[absent:])


def _nonzero(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    place, stratum = np.nonzero(table)
    return place, stratum, table[place, stratum]


def added_by_stratum(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Add rows by stratum where one of both may have fewer strata."""
    total = np.zeros(max(len(one), len(other)), dtype=np.int64)
    total[: len(one)] += one
    total[: len(other)] += other
    return total
