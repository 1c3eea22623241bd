"""Stages of a condensation: seconds of each, and a listener to their progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str, int, int], None]
"""Called with (stage, steps done, steps in all); the first call of a stage has 0 steps done, the last has all."""


class StageClock:
    """Times stages and passes their progress on."""

    def __init__(self, listener: Listener | None = None) -> None:
        self.listener = listener
        self.seconds: dict[str, float] = {}
        # CPU seconds of all threads, which other programs on the machine do not change.
        self.processor_seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[Callable[[int, int], None]]:
        """Time a stage; yields what its code calls with (steps done, steps in all)."""
        self._report(name, 0, 1)
        started, used = time.perf_counter(), time.process_time()
        yield lambda done, total: self._report(name, done, total)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started
        self.processor_seconds[name] = self.processor_seconds.get(name, 0.0) + time.process_time() - used
        self._report(name, 1, 1)

    def _report(self, name: str, done: int, total: int) -> None:
        if self.listener is not None:
            self.listener(name, done, total)
