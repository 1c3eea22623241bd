"""How many threads a trial takes: one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch, scikit-learn and BLAS to one thread.

    The steps of a trial are too short to share: threads that wait for each other spin, and two runs side by side on two
    cores took eighteen times as long as one thread each. Trials gain from processes instead. One thread also adds up in
    the same order on machines with any number of cores.

    Examples
    --------
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)
