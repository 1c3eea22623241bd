"""Work that a few threads share: each takes the next piece as soon as it is done with the last."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from c2tc_pipeline.common.threads import one_blas_thread

Piece = TypeVar("Piece")


def deal(work: Callable[[Iterator[Piece]], None], pieces: Sequence[Piece], threads: int) -> None:
    """Do the work on all pieces, each taken by whichever thread is free next.

    Parameters
    ----------
    work : callable
        Called once in each thread, with an iterator of the pieces that are left; what a thread needs for itself it
        makes before the first of them.
    pieces : sequence
        What there is to do.
    threads : int
        How many threads share it, this one among them.

    Examples
    --------
    >>> done = []
    >>> deal(done.extend, [1, 2, 3], threads=2)
    >>> sorted(done)
    [1, 2, 3]
    """
    # A list's iterator, which may be asked from several threads.
    left = iter(list(pieces))
    helpers = min(threads, len(pieces)) - 1
    # Threads that share the pieces leave no cores for threads inside a matrix product.
    with one_blas_thread():
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
    return ThreadPoolExecutor(threads, thread_name_prefix="c2tc-helper")
