"""How many cores there are to use, and who may use them.

What belongs here: the settings of other people's thread pools. What does not: deciding what goes on side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

Value = TypeVar("Value")


def cores() -> int:
    """Return how many threads OpenMP would take here: ``OMP_NUM_THREADS``, or a thread a core.

    Examples
    --------
    >>> cores() >= 1
    True
    """
    # Here, because those who only describe tables should not have to load scikit-learn.
    from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

    return int(_openmp_effective_n_threads())


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep matrix products on the thread that asks for them, where others have the other cores.

    Examples
    --------
    >>> with one_blas_thread():
    ...     cores() >= 1
    True
    """
    # By hand: threadpoolctl asks every library for its version and more each time, which small steps would feel.
    before = [(library, library.get_num_threads()) for library in _blas_libraries()]
    held = [(library, threads) for library, threads in before if threads != 1]
    for library, _ in held:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, threads in held:
            library.set_num_threads(threads)


def side_by_side(calls: Sequence[Callable[[], Value]]) -> Iterator[Value]:
    """Do things that keep one core busy each, as many at a time as there are cores; yield the results in order.

    They go on in threads, since nearly all of their time is spent in compiled code that lets others run meanwhile.

    Examples
    --------
    >>> list(side_by_side([lambda: "a", lambda: "b"]))
    ['a', 'b']
    """
    if min(len(calls), cores()) < 2:
        for call in calls:
            yield call()
        return
    with one_blas_thread(), ThreadPoolExecutor(cores()) as pool:
        yield from pool.map(lambda call: call(), calls)


@cache
def _blas_libraries() -> list[Any]:
    """Find the loaded thread pools once: the search reads the process's memory map and takes milliseconds."""
    # SciPy has a BLAS of its own, which scikit-learn's kernels call: loaded first, it is among those found.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
