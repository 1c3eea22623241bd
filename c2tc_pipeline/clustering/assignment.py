"""The nearest centre of each row: matrix products of runs of rows, dealt to a few threads.

A row is nearest to the centre whose product with it, less half the centre's squared norm, is largest. Runs are as long
as their scores stay in a processor's cache, and are cut alike for any number of threads, so that the labels do not
depend on who computed them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from c2tc_pipeline.clustering.dealt_work import deal

# Scores held at once by a thread; no more of the rows that they belong to.
_SCORE_BYTES = 2**21


def nearest_centers(X: np.ndarray, centers: np.ndarray, threads: int = 1) -> np.ndarray:
    """Return the nearest centre of each row, as int32; of several the first.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows, float32 or float64.
    centers : ndarray of shape (k, d)
        The centres, in the precision of the rows.
    threads : int
        How many threads share the work, this one among them.

    Examples
    --------
    >>> X = np.array([[0.0], [0.2], [0.9], [0.5]], dtype=np.float32)
    >>> nearest_centers(X, np.array([[0.0], [1.0]], dtype=np.float32))
    array([0, 0, 1, 0], dtype=int32)
    """
    labels = np.empty(len(X), dtype=np.int32)
    size = run_length(len(X), max(centers.shape), X.dtype)
    runs = [slice(start, start + size) for start in range(0, len(X), size)]
    deal(partial(_label, X, centers, labels, size), runs, threads)
    return labels


def run_length(rows: int, width: int, dtype: np.dtype) -> int:
    """Return how many rows are scored at once: even parts, and an even number of them, for two threads to share."""
    most = max(_SCORE_BYTES // dtype.itemsize // max(width, 1), 1)
    if rows <= most:
        return max(rows, 1)
    return -(-rows // (2 * -(-rows // (2 * most))))


def folded_centers(centers: np.ndarray) -> np.ndarray:
    """Return what rows with a further column of ones are multiplied with to get their scores.

    The column takes the half norms off within the product: a pass over the scores less.
    """
    return np.concatenate([centers.T, -np.einsum("ij,ij->i", centers, centers)[None, :] / 2])


def _label(X: np.ndarray, centers: np.ndarray, labels: np.ndarray, size: int, runs: Iterator[slice]) -> None:
    """Label runs of rows by the largest score in each row of their product with the centres."""
    k, d = centers.shape
    folded = folded_centers(centers)
    extended = np.ones((size, d + 1), X.dtype)
    scores = np.empty((size, k), X.dtype)
    for run in runs:
        rows = X[run]
        here = slice(len(rows))
        extended[here, :d] = rows
        labels[run] = np.matmul(extended[here], folded, out=scores[here]).argmax(axis=1)
