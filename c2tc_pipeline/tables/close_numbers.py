"""Integers in a narrow range, counted by their offsets instead of in a hash table.

Without it in scaling (:mod:`c2tc_pipeline.encoding.numeric`) and in votes (:mod:`c2tc_pipeline.condensation.members`)
condensing Covertype to 0.1 % takes 17 to 34 % more CPU time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# First rows, among which the numbers of most columns all occur.
_FIRST_ROWS = 4_096


@dataclass(frozen=True)
class CloseNumbers:
    """A column of integers as distances (``places``) from the smallest (``low``); all are below ``width``.

    Places have any type that holds them: to be counted or looked up, not to be multiplied.
    """

    low: int
    width: int
    places: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray, *, most: int) -> CloseNumbers | None:
        """Return integers whose width is at most ``most``; None for a larger width and for other numbers."""
        if numbers.dtype.kind not in "iu" or not len(numbers):
            return None
        low, high = int(numbers.min()), int(numbers.max())
        if high - low >= most:
            return None
        # Differences of small signed types could overflow; unsigned numbers less their minimum never do.
        wide = numbers if low == 0 or numbers.dtype.kind == "u" else numbers.astype(np.int64, copy=False)
        places = wide if low == 0 else wide - wide.dtype.type(low)
        # uint64 can't be an index.
        return cls(low, high - low + 1, places.astype(np.int64) if places.dtype == np.uint64 else places)

    def counted(self, groups: np.ndarray, size: int, group_rows: np.ndarray | None = None) -> np.ndarray:
        """Return how often each place occurs in each of ``size`` groups of rows, as a table of shape (width, size).

        ``group_rows`` are the rows of each group, where they are known.
        """
        if self.width == 2:
            # Flags are common and seldom set: the other rows are all rows less those.
            high = np.bincount(groups.compress(self.places != 0), minlength=size)
            rows = np.bincount(groups, minlength=size) if group_rows is None else group_rows
            return np.stack([rows - high, high])
        cells = np.multiply(self.places, size, dtype=np.int64)
        cells += groups
        return np.bincount(cells, minlength=self.width * size).reshape(self.width, size)

    def distinct(self) -> np.ndarray:
        """Return the distinct numbers, ascending."""
        # Both ends occur, so that flags need not be counted.
        places = np.arange(self.width) if self.width <= 2 else np.flatnonzero(np.bincount(self.places))
        # The largest unsigned numbers do not fit int64.
        wide = np.int64 if self.low < 0 else np.uint64
        return places.astype(wide) + wide(self.low)

    def appeared(self, occurs: np.ndarray) -> np.ndarray:
        """Return the places that occur, in the order of their first rows."""
        if self.width == 2:
            # Both ends occur, and one of them in the first row.
            return np.array([self.places[0], 1 - self.places[0]])
        found, first = np.unique(self.places[:_FIRST_ROWS], return_index=True)
        if len(found) < np.count_nonzero(occurs):
            found = np.flatnonzero(occurs)
            rows = np.empty(self.width, dtype=np.int64)
            # The last assignment wins: that of the first row.
            rows[self.places[::-1]] = np.arange(len(self.places) - 1, -1, -1)
            first = rows[found]
        return np.asarray(found[np.argsort(first)])
