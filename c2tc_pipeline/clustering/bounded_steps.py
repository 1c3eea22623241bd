"""Steps that compare only those rows with the centres whose nearest one may have changed.

Of each row it is known how far its own centre is at most, and how near any other can be at least. Centres that move
loosen both by the length of their way; where a gap is left, the row stays where it is without being looked at (Hamerly,
"Making k-means even faster"). In the last steps of a large class that is most of them. Rounding is part of the bounds,
so that the labels are those of a full search.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from c2tc_pipeline.clustering.assignment import folded_centers, run_length
from c2tc_pipeline.clustering.dealt_work import deal

# Rounding of a squared distance, as a share of the squares that it is made of: a row's length times that of float32.
_ROUNDING = 1e-5

_Run = np.ndarray | slice
"""Rows that are compared at once."""


class BoundedSteps:
    """The nearest centre of each row, for centres that move from one call to the next.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows.
    threads : int
        How many threads share the work.

    Examples
    --------
    >>> X = np.array([[0.0], [0.2], [0.9], [0.5]], dtype=np.float32)
    >>> steps = BoundedSteps(X, threads=1)
    >>> steps.nearest(np.array([[0.0], [1.0]], dtype=np.float32)).tolist()
    [0, 0, 1, 0]
    >>> steps.nearest(np.array([[0.0], [0.9]], dtype=np.float32)).tolist(), steps.compared
    ([0, 0, 1, 1], 1)
    """

    def __init__(self, X: np.ndarray, threads: int) -> None:
        self._X = X
        self._threads = threads
        self._power = np.einsum("ij,ij->i", X, X)
        self._own, self._other = np.empty_like(self._power), np.empty_like(self._power)
        self._labels = np.empty(0, dtype=np.int32)
        self._centers = np.empty((0, X.shape[1]), dtype=X.dtype)
        self.compared = 0
        """How many rows the last call compared with the centres."""

    def nearest(self, centers: np.ndarray) -> np.ndarray:
        """Return the nearest centre of each row, as int32; of several the first."""
        rounding = _ROUNDING * (self._power + np.einsum("ij,ij->i", centers, centers).max())
        if centers.shape == self._centers.shape:
            labels = self._labels.copy()
            places = np.flatnonzero(~self._loosened(centers, rounding))
            self.compared = len(places)
        else:
            labels, places = np.empty(len(self._X), dtype=np.int32), None
            self.compared = len(self._X)
        size = run_length(self.compared, max(centers.shape), self._X.dtype)
        cuts = [slice(start, start + size) for start in range(0, self.compared, size)]
        runs: list[_Run] = [*cuts] if places is None else [places[cut] for cut in cuts]
        deal(partial(self._compare, centers, labels, rounding, size), runs, self._threads)
        self._labels, self._centers = labels, centers.copy()
        return labels

    def _loosened(self, centers: np.ndarray, rounding: np.ndarray) -> np.ndarray:
        """Loosen the bounds by the ways of the centres, and return which rows stay where they are."""
        ways = np.sqrt(((centers.astype(np.float64) - self._centers) ** 2).sum(axis=1)).astype(self._X.dtype)
        farthest = int(ways.argmax())
        # No centre but its own moved farther than this.
        others = np.full(len(ways), ways[farthest])
        others[farthest] = np.partition(ways, -2)[-2] if len(ways) > 1 else 0
        self._own += ways[self._labels]
        self._other -= others[self._labels]
        gap = np.maximum(self._other, 0) ** 2 - self._own**2
        return np.asarray(gap > 2 * rounding)

    def _compare(
        self, centers: np.ndarray, labels: np.ndarray, rounding: np.ndarray, size: int, runs: Iterator[_Run]
    ) -> None:
        """Label some rows, and find how far their centre and the next one are."""
        k, d = centers.shape
        folded = folded_centers(centers)
        extended = np.ones((size, d + 1), self._X.dtype)
        scores = np.empty((size, k), self._X.dtype)
        for run in runs:
            rows, power, allowed = self._X[run], self._power[run], rounding[run]
            here = slice(len(rows))
            extended[here, :d] = rows
            found = np.matmul(extended[here], folded, out=scores[here])
            best = found.argmax(axis=1)
            labels[run] = best
            position = np.arange(len(rows))
            self._own[run] = np.sqrt(np.maximum(power - 2 * found[position, best], 0) + allowed)
            # The next best: numpy finds where the largest is faster than what it is.
            found[position, best] = -np.inf
            second = found[position, found.argmax(axis=1)]
            self._other[run] = np.sqrt(np.maximum(power - 2 * second - allowed, 0))
