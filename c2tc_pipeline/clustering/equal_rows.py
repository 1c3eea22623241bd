"""Equal rows: found by hash, proven by comparison, merged into one weighted row when that pays.

A class of one block is looked through in full. Of a larger one it is only asked whether its distinct rows are few
enough to be held in memory; if they are not, merging them would save little and cost much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from c2tc_pipeline.clustering.row_numbers import let_go, row_numbers, runs
from c2tc_pipeline.clustering.row_source import RowSource

# Rows of a class from which on a sample is looked at first, its size, and how many equal rows a row may have on average
# to be called rare.
_SAMPLED_FROM = 40_000
_SAMPLE_ROWS = 8_192
_RARE = 0.1
# Rows hashed at once; the widened copy of a block stays small.
_CHUNK_ROWS = 32_768
# Rows read at once where not all are in memory.
_READ_ROWS = 16 * _CHUNK_ROWS


@dataclass(frozen=True)
class EqualRows:
    """Groups of equal rows.

    Parameters
    ----------
    group : ndarray of int
        The group of each row.
    first : ndarray of int
        The first row of each group.

    Examples
    --------
    >>> g = find_equal_rows(np.array([[1.0], [2.0], [1.0]], dtype=np.float32))
    >>> g.first[g.group].tolist()
    [0, 1, 0]
    """

    group: np.ndarray
    first: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows in each group."""
        sizes = np.zeros(len(self.first), dtype=np.int64)
        for run in runs(len(self.group)):
            sizes += np.bincount(self.group[run], minlength=len(sizes))
            let_go(self.group)
        return sizes


def find_equal_rows(X: np.ndarray) -> EqualRows:
    """Group the rows of ``X`` that are equal to the bit."""
    hashes = _row_hashes(np.ascontiguousarray(X))
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    equal_rows = EqualRows(group.astype(np.int32), first)
    for start in range(0, len(X), _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        if not np.array_equal(X[rows], X[first[group[rows]]]):
            # Two different rows share a 64-bit hash: the chance is negligible, the consequence would not be.
            _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
            return EqualRows(group.ravel(), first)
    return equal_rows


def rarely_equal(rows: RowSource) -> bool:
    """Tell from a sample whether so few rows have an equal one that there is nothing to gain from finding them.

    In a sample of m rows each row meets m / n of those that are equal to it. Where the rows of the whole have a tenth
    of an equal row on average, at least nineteen rows in twenty are distinct.

    Examples
    --------
    >>> from c2tc_pipeline.clustering.row_source import HeldRows
    >>> numbers = np.arange(100_000, dtype=np.float32)
    >>> rarely_equal(HeldRows(numbers[:, None])), rarely_equal(HeldRows(numbers[:, None] // 2))
    (True, False)
    """
    if len(rows) < _SAMPLED_FROM:
        return False
    picked = np.sort(np.random.default_rng(0).choice(len(rows), _SAMPLE_ROWS, replace=False))
    sizes = np.unique(_row_hashes(np.ascontiguousarray(rows.take(picked))), return_counts=True)[1]
    met = float((sizes * (sizes - 1)).sum()) / _SAMPLE_ROWS
    return met * len(rows) / _SAMPLE_ROWS < _RARE


def find_few_distinct(rows: RowSource, most: int) -> EqualRows | None:
    """Group equal rows of which not all are in memory, provided that there are at most ``most`` distinct ones.

    Memory is bounded by the distinct rows. Reading ends as soon as there are too many.

    Examples
    --------
    >>> from c2tc_pipeline.clustering.row_source import HeldRows
    >>> rows = HeldRows(np.array([[1.0], [2.0], [1.0]], dtype=np.float32))
    >>> len(find_few_distinct(rows, 2).first), find_few_distinct(rows, 1)
    (2, None)
    """
    known, first = np.empty(0, np.uint64), np.empty(0, np.int64)
    start = 0
    for part in rows.parts(_READ_ROWS):
        hashes, places = np.unique(_row_hashes(np.ascontiguousarray(part.read())), return_index=True)
        # Those known already are there twice now; the sort is stable, so the first of both is the earlier row.
        known, first = np.concatenate([known, hashes]), np.concatenate([first, start + places])
        order = np.argsort(known, kind="stable")
        known, first = known[order], first[order]
        fresh = np.concatenate([[True], known[1:] != known[:-1]])
        known, first = known[fresh], first[fresh]
        if len(known) > most:
            return None
        start += len(part)
    distinct = rows.take(first)
    group = row_numbers(len(rows))
    start = 0
    for part in rows.parts(_READ_ROWS):
        X = part.read()
        found = np.searchsorted(known, _row_hashes(np.ascontiguousarray(X)))
        if not np.array_equal(X, distinct[found]):
            # Two different rows share a hash. Nothing is lost but time: rows that are not merged are clustered as well.
            return None
        group[start : start + len(part)] = found
        let_go(group)
        start += len(part)
    return EqualRows(group, first)


def _row_hashes(X: np.ndarray) -> np.ndarray:
    words_per_row = X.shape[1] * X.itemsize // 4
    odd = np.random.default_rng(0x5EED).integers(2**62, size=words_per_row, dtype=np.uint64) * np.uint64(2) + np.uint64(
        1
    )
    hashes = np.empty(len(X), dtype=np.uint64)
    for start in range(0, len(X), _CHUNK_ROWS):
        # Adding zero turns -0.0 into 0.0, so that equal numbers have equal bits.
        block = (X[start : start + _CHUNK_ROWS] + X.dtype.type(0)).view(np.uint32)
        mixed = np.zeros(len(block), dtype=np.uint64)
        for column, multiplier in zip(block.T, odd, strict=True):
            mixed ^= mixed >> np.uint64(29)
            mixed = (mixed + column) * multiplier
        hashes[start : start + _CHUNK_ROWS] = mixed ^ (mixed >> np.uint64(32))
    return hashes
