"""Clusters after some of their rows were removed: relabelled rows, and small clusters merged with neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from c2tc_pipeline.clustering.sums import cluster_sums
from c2tc_pipeline.common.errors import InputError


@dataclass(frozen=True)
class ThinnedPartition:
    """The new condensed row of each remaining row, and how the new condensed rows relate to the old ones.

    ``old`` has the old number of each new condensed row, ``touched`` tells whether its members changed; ``disappeared``
    condensed rows have no rows left, ``merged`` had too few and were merged with a neighbour.
    """

    labels: np.ndarray
    old: np.ndarray
    touched: np.ndarray
    disappeared: int
    merged: int


def thin_partition(
    X: np.ndarray, membership: np.ndarray, kept: np.ndarray, codes: np.ndarray, least: int, classes: list[Any]
) -> ThinnedPartition:
    """Keep some rows of each cluster, and merge clusters of fewer than ``least`` rows with the nearest of their class.

    ``X`` has the encoded rows that remain, ``membership`` the condensed row of all rows before, ``kept`` which of them
    remain, ``codes`` the class of each condensed row. An ``InputError`` refuses to leave a single class, or a class
    with fewer rows than ``least``.

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
