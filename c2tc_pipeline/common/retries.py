"""Trying again what a server may have been too busy or too short of breath for; a few times only."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

PAUSE_SECONDS = 0.5


def with_retries(action: Callable[[], Value], tries: int, *, pause: float = PAUSE_SECONDS) -> Value:
    """Do something that has no effect but its value, and again after a pause when the connection failed.

    Parameters
    ----------
    action : callable
        What to do.
    tries : int
        How often in all.
    pause : float
        Seconds after the first try; twice as long after each further one.

    Examples
    --------
    >>> answers = [ConnectionError("busy"), 7]
    >>> def ask():
    ...     answer = answers.pop(0)
    ...     if isinstance(answer, Exception):
    ...         raise answer
    ...     return answer
    >>> with_retries(ask, 3, pause=0)
    7
    """
    for further in reversed(range(tries)):
        try:
            return action()
        except ConnectionError:
            if not further:
                raise
        time.sleep(pause)
        pause *= 2
    raise ValueError("There has to be one try at least.")
