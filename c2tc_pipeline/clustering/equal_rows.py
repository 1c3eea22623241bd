"""Equal rows: found by hash, proven by comparison, merged into one weighted row when that pays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Rows hashed at once; the widened copy of a block stays small.
_CHUNK_ROWS = 32_768


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
        return np.bincount(self.group, minlength=len(self.first))


def find_equal_rows(X: np.ndarray) -> EqualRows:
    """Group the rows of ``X`` that are equal to the bit."""
    hashes = _row_hashes(np.ascontiguousarray(X))
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    equal_rows = EqualRows(group, first)
    for start in range(0, len(X), _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        if not np.array_equal(X[rows], X[first[group[rows]]]):
            # Two different rows share a 64-bit hash: the chance is negligible, the consequence would not be.
            _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
            return EqualRows(group.ravel(), first)
    return equal_rows


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
