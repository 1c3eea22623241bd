"""How many different values a column has: exact while they are few, a bounded sketch beyond.

The sketch keeps the smallest of the values' hashes (k minimum values). Up to k different values it is the exact number;
beyond, the largest hash kept tells how densely they lie, with a standard error of one in the square root of k. Blocks
of rows may come in any division and order, the sketch is the same to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

# Hashes kept: 2 MB a column. Beyond so many different values the error is 0.2 %.
KEPT_HASHES = 2**18
_SPAN = 2.0**64


class DistinctCount:
    """Counts different values from their 64-bit hashes.

    Examples
    --------
    >>> count = DistinctCount(kept=100)
    >>> count.add(mixed_bits(np.arange(60, dtype=np.uint64)))
    >>> count.add(mixed_bits(np.arange(30, 90, dtype=np.uint64)))
    >>> count.value, count.is_exact
    (90, True)
    """

    def __init__(self, kept: int = KEPT_HASHES) -> None:
        self._kept = kept
        self._smallest = np.empty(0, dtype=np.uint64)
        self._pending: list[np.ndarray] = []
        self._waiting = 0
        self._limit: np.uint64 | None = None

    def add(self, hashes: np.ndarray) -> None:
        """Take the hashes of a block's values into account, repeated or not."""
        if self._limit is not None:
            hashes = hashes[hashes < self._limit]
        hashes = np.asarray(pd.unique(hashes))
        self._pending.append(hashes)
        self._waiting += len(hashes)
        # Sorting pays for a good many at a time.
        if self._waiting > self._kept:
            self._settle()

    @property
    def is_exact(self) -> bool:
        """Whether the number is exact."""
        self._settle()
        return self._limit is None

    @property
    def value(self) -> int:
        """The number of different values."""
        self._settle()
        if self._limit is None:
            return len(self._smallest)
        return round((self._kept - 1) / (float(self._smallest[-1]) / _SPAN))

    def _settle(self) -> None:
        if not self._pending:
            return
        # Sorted by hand: np.unique looks hashes up in a table first, which takes ten times as long.
        merged = np.sort(np.concatenate([self._smallest, *self._pending]))
        merged = merged[np.append(True, merged[1:] != merged[:-1])[: len(merged)]]
        self._pending, self._waiting = [], 0
        if len(merged) > self._kept or self._limit is not None:
            merged = merged[: self._kept]
            self._limit = merged[-1]
        self._smallest = merged.copy()


def mixed_bits(words: np.ndarray) -> np.ndarray:
    """Return 64-bit hashes of 64-bit words; different words have different hashes (the finaliser of SplitMix64).

    Examples
    --------
    >>> mixed_bits(np.array([1], dtype=np.uint64)).tolist()
    [6238072747940578789]
    """
    mixed = words.astype(np.uint64)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def hashed_numbers(numbers: np.ndarray) -> np.ndarray:
    """Return the hashes of numbers that are present: whole ones by value, whatever their type, others by their bits.

    Examples
    --------
    >>> bool(hashed_numbers(np.array([3.0])) == hashed_numbers(np.array([3])))
    True
    """
    if numbers.dtype.kind != "f":
        return mixed_bits(numbers.astype(np.int64).view(np.uint64))
    floats = numbers.astype(np.float64)
    # A column of whole numbers comes as floats in blocks with gaps.
    whole = (np.abs(floats) < 2.0**53) & (np.floor(floats) == floats)
    words = floats.view(np.uint64).copy()
    words[whole] = floats[whole].astype(np.int64).view(np.uint64)
    return mixed_bits(words)


def hashed_texts(texts: list[str]) -> np.ndarray:
    """Return the hashes of strings.

    Examples
    --------
    >>> hashed_texts(["a", "b", "a"]).tolist().index(hashed_texts(["b"])[0])
    1
    """
    cells: Any = np.array(texts, dtype=object)
    return np.asarray(pd.util.hash_array(cells, categorize=False), dtype=np.uint64)
