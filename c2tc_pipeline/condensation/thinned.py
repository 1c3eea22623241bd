"""A partition without some of its rows: who is left where, which clusters are other than before or too small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from c2tc_pipeline.clustering.sums import cluster_sums
from c2tc_pipeline.common.errors import InputError


@dataclass(frozen=True)
class ThinnedPartition:
    """Which condensed row each remaining row belongs to now, and which of the old ones the new ones are.

    Parameters
    ----------
    labels : ndarray of int
        The new condensed row of each remaining row.
    old : ndarray of int
        The old number of each new condensed row; their order stays.
    touched : ndarray of bool
        Which of the new ones stand for other rows than before.
    disappeared : int
        Condensed rows that have no row left.
    merged : int
        Condensed rows that had too few rows left and were joined with a neighbour.
    """

    labels: np.ndarray
    old: np.ndarray
    touched: np.ndarray
    disappeared: int
    merged: int


def thin_partition(
    X: np.ndarray, membership: np.ndarray, kept: np.ndarray, codes: np.ndarray, least: int, classes: list[Any]
) -> ThinnedPartition:
    """Take rows out of their clusters, and join clusters that are too small with their neighbours of the same class.

    Parameters
    ----------
    X : ndarray of shape (m, d)
        The rows that remain, encoded.
    membership : ndarray of int of shape (n,)
        The condensed row of each row, the forgotten ones among them.
    kept : ndarray of bool of shape (n,)
        Which of them remain.
    codes : ndarray of int
        The class of each condensed row.
    least : int
        Rows that each condensed row must stand for.
    classes : list
        The classes, for messages.

    Raises
    ------
    InputError
        When one class only would be left, or a class with fewer rows than ``least``.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [5.0], [9.0]])
    >>> membership, kept = np.array([0, 0, 1, 1, 2]), np.array([True, True, True, False, True])
    >>> thinned = thin_partition(X, membership, kept, np.array([0, 0, 1]), 1, ["no", "yes"])
    >>> thinned.labels.tolist(), thinned.touched.tolist()
    ([0, 0, 1, 2], [False, True, False])
    """
    size = len(codes)
    labels = membership[kept].astype(np.int64)
    touched = np.zeros(size, dtype=bool)
    touched[membership[~kept]] = True
    sums = cluster_sums(X, labels, size)
    counts, totals = sums.counts.copy(), sums.sums.copy()
    goes_to = np.arange(size)
    merged = 0
    if len(np.unique(codes[counts > 0])) < 2:
        raise InputError("Rows of one class only would be left; there is nothing to tell apart, so delete the table.")
    while len(small := np.flatnonzero((counts > 0) & (counts < least))):
        cluster = int(small[counts[small].argmin()])
        others = np.flatnonzero((codes == codes[cluster]) & (counts > 0))
        others = others[others != cluster]
        if not len(others):
            raise InputError(
                f"Class {classes[codes[cluster]]!r} would be left with {int(counts[cluster])} rows, fewer than "
                f"min_rows_per_condensed_row={least}; condense the table anew without these rows and this class."
            )
        center = totals[cluster] / counts[cluster]
        gaps = ((totals[others] / counts[others, None] - center) ** 2).sum(axis=1)
        target = int(others[gaps.argmin()])
        totals[target] += totals[cluster]
        counts[target] += counts[cluster]
        counts[cluster] = 0
        goes_to[goes_to == cluster] = target
        touched[target] = True
        merged += 1
    old = np.flatnonzero(counts > 0)
    return ThinnedPartition(
        labels=np.searchsorted(old, goes_to[labels]),
        old=old,
        touched=touched[old],
        disappeared=size - len(old) - merged,
        merged=merged,
    )
