"""The nearest centre of each row: matrix products of runs of rows, dealt to a few threads.

A row is nearest to the centre whose product with it, less half the centre's squared norm, is largest. Runs are as long
as their scores stay in a processor's cache, and are cut alike for any number of threads, so that the labels do not
depend on who computed them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

import numpy as np

from c2tc_pipeline.threads import one_blas_thread

# Scores held at once by a thread.
_SCORE_BYTES = 2**21
# Rows whose scores are looked at together; with few centres more of them would leave the cache.
_MOST_ROWS = 10_000
# Centres up to which, and rows from which on, scores are compared centre with centre: a search in each row's own scores
# takes long for the few that it looks at, and comparing takes some calls for whatever number of rows.
_FEW_CENTERS = 96
_ROWS_FOR_FEW = 1_500


def nearest_centers(
    X: np.ndarray, centers: np.ndarray, threads: int = 1, *, columns: np.ndarray | None = None
) -> np.ndarray:
    """Return the nearest centre of each row, as int32; of several the first.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows, float32 or float64.
    centers : ndarray of shape (k, d)
        The centres, in the precision of the rows.
    threads : int
        How many threads share the work, this one among them.
    columns : ndarray of shape (d, n), optional
        The rows once more, column by column in memory, see :func:`wants_columns`.

    Examples
    --------
    >>> X = np.array([[0.0], [0.2], [0.9], [0.5]], dtype=np.float32)
    >>> nearest_centers(X, np.array([[0.0], [1.0]], dtype=np.float32))
    array([0, 0, 1, 0], dtype=int32)
    """
    labels = np.empty(len(X), dtype=np.int32)
    size = _run_length(len(X), len(centers), X.dtype)
    runs = [slice(start, start + size) for start in range(0, len(X), size)]
    if wants_columns(len(X), len(centers)):
        search = partial(_among_few, X.T if columns is None else columns, centers, labels, size)
    else:
        search = partial(_among_many, X, centers, labels, size)
    # Threads that share the rows leave no cores for threads inside a product.
    with one_blas_thread():
        _shared(search, runs, threads)
    return labels


def wants_columns(rows: int, k: int) -> bool:
    """Tell whether scores are compared centre with centre: fastest where the rows are there column by column.

    Examples
    --------
    >>> wants_columns(9_000, 4), wants_columns(9_000, 200)
    (True, False)
    """
    return k <= _FEW_CENTERS and rows >= _ROWS_FOR_FEW


def _run_length(rows: int, k: int, dtype: np.dtype) -> int:
    """Return how many rows are scored at once: even parts, and an even number of them, for two threads to share."""
    most = min(max(_SCORE_BYTES // dtype.itemsize // k, 1), _MOST_ROWS)
    if rows > most:
        rows = -(-rows // (2 * -(-rows // (2 * most))))
    # Scores of centre after centre at a distance of a power of two would push each other out of the cache.
    return (rows + 15) // 32 * 32 + 16


def _among_many(X: np.ndarray, centers: np.ndarray, labels: np.ndarray, size: int, runs: Iterator[slice]) -> None:
    """Label runs of rows by the largest score in each row of their product with the centres."""
    k, d = centers.shape
    # A further column of ones takes the half norms off within the product: a pass over the scores less.
    folded = np.concatenate([centers.T, -_half_norms(centers)[None, :]])
    extended = np.ones((size, d + 1), X.dtype)
    scores = np.empty((size, k), X.dtype)
    for run in runs:
        rows = X[run]
        here = slice(len(rows))
        extended[here, :d] = rows
        labels[run] = np.matmul(extended[here], folded, out=scores[here]).argmax(axis=1)


def _among_few(columns: np.ndarray, centers: np.ndarray, labels: np.ndarray, size: int, runs: Iterator[slice]) -> None:
    """Label runs of rows by rounds in which the scores of two centres at a time are compared for all rows."""
    k = len(centers)
    half_norms = _half_norms(centers)[:, None]
    numbers = np.arange(k, dtype=np.uint8)[:, None]
    held = np.empty((k, size), columns.dtype)
    held_larger = np.empty((k // 2, size), dtype=bool)
    held_winners = np.empty((k, size), dtype=np.uint8)
    for run in runs:
        block = columns[:, run]
        here = slice(block.shape[1])
        scores = np.matmul(centers, block, out=held[:, here])
        scores -= half_norms
        winners = held_winners[:, here]
        winners[:] = numbers
        while len(scores) > 1:
            # Neighbours, so that of equal scores the first centre's wins; an odd one out waits for the next round.
            pairs = len(scores) // 2
            first, second, larger = scores[: 2 * pairs : 2], scores[1::2], held_larger[:pairs, here]
            np.greater(second, first, out=larger)
            np.maximum(first, second, out=first)
            # The second's number is the larger one, and counts where it won; in bytes, for many at a time.
            number = larger.view(np.uint8)
            number *= winners[1::2]
            scores, winners = scores[::2], winners[::2]
            np.maximum(winners[:pairs], number, out=winners[:pairs])
        labels[run] = winners[0]


def _half_norms(centers: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", centers, centers) / 2


def _shared(work: Callable[[Iterator[slice]], None], runs: list[slice], threads: int) -> None:
    """Do the work on all runs, each taken by whichever thread is free next."""
    # A list's iterator, which may be asked from several threads.
    left = iter(runs)
    helpers = min(threads, len(runs)) - 1
    if helpers < 1:
        work(left)
        return
    pool = _pool(os.getpid(), threads - 1)
    tasks = [pool.submit(work, left) for _ in range(helpers)]
    try:
        work(left)
    finally:
        # A helper that did not get to begin is not waited for: there is nothing left to do.
        begun = [task for task in tasks if not task.cancel()]
        for task in begun:
            task.result()


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Return helpers that stay between steps; a forked process has none of its parent's threads, and gets its own."""
    return ThreadPoolExecutor(threads, thread_name_prefix="c2tc-assignment")
