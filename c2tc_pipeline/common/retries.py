"""Retry transient connection errors with exponential backoff."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

PAUSE_SECONDS = 0.5


def with_retries(action: Callable[[], Value], tries: int, *, pause: float = PAUSE_SECONDS) -> Value:
    """Call an idempotent action up to ``tries`` times; after a ConnectionError wait, twice as long each time.

    >>> answers = iter([ConnectionError("busy"), 7])
    >>> def request():
    ...     answer = next(answers)
    ...     if isinstance(answer, Exception):
    ...         raise answer
    ...     return answer
    >>> with_retries(request, 3, pause=0)
    7
    """
    for attempt in range(tries - 1):
        try:
            return action()
        except ConnectionError:
            time.sleep(pause * 2**attempt)
    return action()
