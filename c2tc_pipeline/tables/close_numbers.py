"""Whole numbers that lie close together: they are counted in a table instead of being looked up one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# First rows among which the numbers of most columns have all been seen.
_FIRST_ROWS = 4_096


@dataclass(frozen=True)
class CloseNumbers:
    """A column of whole numbers as distances from the smallest.

    Parameters
    ----------
    low : int
        The smallest.
    width : int
        One more than the largest distance.
    places : ndarray of int64
        The distance of each number.

    Examples
    --------
    >>> close = CloseNumbers.of(np.array([7, 5, 7], dtype=np.int8), most=10)
    >>> close.places.tolist(), close.appeared(np.array([True, False, True])).tolist()
    ([2, 0, 2], [2, 0])
    """

    low: int
    width: int
    places: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray, *, most: int) -> CloseNumbers | None:
        """Return numbers whose width is at most so many; None where they lie farther apart, or are no whole numbers."""
        if numbers.dtype.kind not in "iu" or not len(numbers):
            return None
        low, high = int(numbers.min()), int(numbers.max())
        if high - low >= most:
            return None
        # Differences of small signed types would overflow; those of unsigned ones to their minimum never do.
        wide = numbers if numbers.dtype.kind == "u" else numbers.astype(np.int64, copy=False)
        places = wide if low == 0 else wide - wide.dtype.type(low)
        return cls(low, high - low + 1, places.astype(np.int64, copy=False))

    def appeared(self, occurs: np.ndarray) -> np.ndarray:
        """Return the places that occur in the order of their first rows, given for each whether it does."""
        found, first = np.unique(self.places[:_FIRST_ROWS], return_index=True)
        if len(found) < np.count_nonzero(occurs):
            found = np.flatnonzero(occurs)
            rows = np.empty(self.width, dtype=np.int64)
            # Of rows with the same number the one that is written last counts: the first.
            rows[self.places[::-1]] = np.arange(len(self.places) - 1, -1, -1)
            first = rows[found]
        return np.asarray(found[np.argsort(first)])
