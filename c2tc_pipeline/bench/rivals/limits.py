"""Limits of time and memory, and the two ways in which a method says that it reached one.

What belongs here: the clock, the check of an estimate, and turning whatever a machine says when memory is short into
one exception. What does not: how much memory a method needs, which each method estimates itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import ClassVar, TypeVar

from c2tc_pipeline.common.devices import is_out_of_memory
from c2tc_pipeline.common.errors import InputError

Result = TypeVar("Result")


class OutOfTime(RuntimeError):
    """A method took longer than it was allowed to.

    Examples
    --------
    >>> OutOfTime.code
    'OOT'
    """

    code: ClassVar[str] = "OOT"


class OutOfMemory(RuntimeError):
    """A method needs more memory than it is allowed to use, or than there is.

    Examples
    --------
    >>> OutOfMemory.code
    'OOM'
    """

    code: ClassVar[str] = "OOM"


class Deadline:
    """A moment after which a method must not go on.

    Parameters
    ----------
    method : str
        Who is timed, for the message.
    limit : float or None
        Seconds from now; None for no limit.
    clock : callable
        Returns seconds that never run backwards.

    Examples
    --------
    >>> seconds = iter([0.0, 50.0, 61.0])
    >>> deadline = Deadline("DM", 60, clock=lambda: next(seconds))
    >>> deadline.check("step 7 of 9")
    >>> deadline.check("step 8 of 9")
    Traceback (most recent call last):
    ...
    c2tc_pipeline.bench.rivals.limits.OutOfTime: DM took longer than its limit of 60 seconds and had come to step 8 of 9.
    """  # noqa: E501

    def __init__(self, method: str, limit: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.method = method
        self.limit = _checked("time_limit", limit)
        self.clock = clock
        self.end = clock() + self.limit

    def check(self, reached: str) -> None:
        """Raise OutOfTime once the time is over; ``reached`` says how far the method came."""
        if self.clock() > self.end:
            raise OutOfTime(
                f"{self.method} took longer than its limit of {self.limit:g} seconds and had come to {reached}."
            )


def check_memory(method: str, needed: float, limit: float | None) -> None:
    """Raise OutOfMemory when an estimate is over the limit.

    Parameters
    ----------
    method : str
        Who needs the memory, for the message.
    needed : float
        Bytes, as estimated.
    limit : float or None
        Bytes at most; None for no limit.

    Examples
    --------
    >>> check_memory("MTT", 5e8, 1e9)
    >>> check_memory("MTT", 5e9, 1e9)
    Traceback (most recent call last):
    ...
    c2tc_pipeline.bench.rivals.limits.OutOfMemory: MTT needs about 5,000 MB, more than its limit of 1,000 MB.
    """
    most = _checked("memory_limit", limit)
    if needed > most:
        raise OutOfMemory(f"{method} needs about {needed / 1e6:,.0f} MB, more than its limit of {most / 1e6:,.0f} MB.")


def within_memory(method: str, work: Callable[[], Result]) -> Result:
    """Do some work, and raise OutOfMemory when the machine has too little for it.

    Parameters
    ----------
    method : str
        Who works, for the message.
    work : callable
        What is done. Errors that are not about memory pass through.

    Examples
    --------
    >>> within_memory("GM", lambda: 1 + 1)
    2
    """
    try:
        return work()
    except MemoryError as error:
        reason = str(error)
    except RuntimeError as error:
        if isinstance(error, OutOfMemory) or not is_out_of_memory(error):
            raise
        reason = str(error)
    # Not before the error is gone: its traceback kept the tensors alive.
    said = reason.partition("\n")[0].rstrip(".") or "no more to be had"
    raise OutOfMemory(f"{method} ran out of memory ({said}).")


def _checked(name: str, limit: float | None) -> float:
    if limit is None:
        return math.inf
    if not limit > 0:
        raise InputError(f"Setting {name} is {limit!r}; it must be above 0, or None for no limit.")
    return limit
