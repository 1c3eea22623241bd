"""Groups of equal rows: found by hash, confirmed by comparison.

A class of one block is grouped in full, a larger one only if its distinct rows fit in memory: otherwise merging them
would save little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from c2tc_pipeline.clustering.rows import RowSource, release_pages, row_array, row_chunks

# Rows from which on a sample is examined first, its size, and the mean number of equal rows that counts as rare.
_SAMPLED_FROM = 40_000
_SAMPLE_ROWS = 8_192
_RARE = 0.1
_HASHED_ROWS = 32_768
_READ_ROWS = 16 * _HASHED_ROWS


@dataclass(frozen=True)
class EqualRows:
    """The group of each row, and the first row of each group."""

    group: np.ndarray
    first: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows in each group."""
        sizes = np.zeros(len(self.first), dtype=np.int64)
        for chunk in row_chunks(len(self.group)):
            sizes += np.bincount(self.group[chunk], minlength=len(sizes))
            release_pages(self.group)
        return sizes


def find_equal_rows(X: np.ndarray) -> EqualRows:
    """Group the rows of ``X`` that have equal values."""
    _, first, group = np.unique(_row_hashes(X), return_index=True, return_inverse=True)
    for start in range(0, len(X), _HASHED_ROWS):
        rows = slice(start, start + _HASHED_ROWS)
        if not np.array_equal(X[rows], X[first[group[rows]]]):
            # Different rows with the same 64-bit hash: improbable, but the result would be wrong.
            _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
            return EqualRows(group.ravel(), first)
    return EqualRows(group.astype(np.int32), first)


def rarely_equal(rows: RowSource) -> bool:
    """Tell from a sample whether merging equal rows would gain nothing.

    In a sample of m of n rows each row meets m / n of its equal rows. With a tenth of an equal row on average at least
    nineteen rows in twenty are distinct.
    """
    if len(rows) < _SAMPLED_FROM:
        return False
    picked = np.sort(np.random.default_rng(0).choice(len(rows), _SAMPLE_ROWS, replace=False))
    sizes = np.unique(_row_hashes(rows.take(picked)), return_counts=True)[1]
    met = float((sizes * (sizes - 1)).sum()) / _SAMPLE_ROWS
    return met * len(rows) / _SAMPLE_ROWS < _RARE


def find_few_distinct(rows: RowSource, max_distinct: int) -> EqualRows | None:
    """Group equal rows part by part; None as soon as there are more than ``max_distinct`` distinct ones."""
    known, first = np.empty(0, np.uint64), np.empty(0, np.int64)
    start = 0
    for part in rows.parts(_READ_ROWS):
        hashes, positions = np.unique(_row_hashes(part.read()), return_index=True)
        # A stable sort keeps the earlier row of hashes that occur twice.
        known, first = np.concatenate([known, hashes]), np.concatenate([first, start + positions])
        order = np.argsort(known, kind="stable")
        known, first = known[order], first[order]
        fresh = np.concatenate([[True], known[1:] != known[:-1]])
        known, first = known[fresh], first[fresh]
        if len(known) > max_distinct:
            return None
        start += len(part)
    distinct = rows.take(first)
    group = row_array(len(rows))
    start = 0
    for part in rows.parts(_READ_ROWS):
        X = part.read()
        found = np.searchsorted(known, _row_hashes(X))
        if not np.array_equal(X, distinct[found]):
            # A collision of hashes; clustering without merging is correct, too.
            return None
        group[start : start + len(part)] = found
        release_pages(group)
        start += len(part)
    return EqualRows(group, first)


def _row_hashes(X: np.ndarray) -> np.ndarray:
    X = np.ascontiguousarray(X)
    words = X.shape[1] * X.itemsize // 4
    odd = np.random.default_rng(0x5EED).integers(2**62, size=words, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    hashes = np.empty(len(X), dtype=np.uint64)
    for start in range(0, len(X), _HASHED_ROWS):
        # Adding zero turns -0.0 into 0.0, so that equal values have equal bits.
        block = (X[start : start + _HASHED_ROWS] + X.dtype.type(0)).view(np.uint32)
        mixed = np.zeros(len(block), dtype=np.uint64)
        for column, multiplier in zip(block.T, odd, strict=True):
            mixed ^= mixed >> np.uint64(29)
            mixed = (mixed + column) * multiplier
        hashes[start : start + _HASHED_ROWS] = mixed ^ (mixed >> np.uint64(32))
    return hashes
