"""The noise of the machine: a fixed piece of work, timed again and again while other things are measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Clock = Callable[[], float]

TOO_MUCH = 1.25
"""How many times longer than usual the probe may take, and its third quartile than its first."""
_SIZE = 1_100


class NoiseProbe:
    """Times the same work whenever it is asked to.

    Parameters
    ----------
    work : callable, optional
        What is timed; a matrix product of some 50 milliseconds by default.
    clock : callable
        Returns seconds.

    Examples
    --------
    >>> ticks = iter([0.0, 0.05, 1.0, 1.07])
    >>> probe = NoiseProbe(work=lambda: None, clock=lambda: next(ticks))
    >>> round(probe.sample(), 3), round(probe.sample(), 3), len(probe.times)
    (0.05, 0.07, 2)
    """

    def __init__(self, work: Callable[[], Any] | None = None, clock: Clock = time.perf_counter) -> None:
        self.work = work or _matrix_product()
        self.clock = clock
        self.times: list[float] = []

    def sample(self) -> float:
        """Do the work once and return how long it took."""
        started = self.clock()
        self.work()
        self.times.append(self.clock() - started)
        return self.times[-1]


@dataclass(frozen=True)
class Noise:
    """What the probe says about a run.

    Parameters
    ----------
    samples : int
        How often it was timed.
    first, median, third : float
        The quartiles of its times, in seconds.

    Examples
    --------
    >>> Noise.of([0.05, 0.05, 0.051, 0.052]).too_much, Noise.of([0.05, 0.05, 0.09, 0.1]).too_much
    (False, True)
    """

    samples: int
    first: float
    median: float
    third: float

    @classmethod
    def of(cls, times: Sequence[float]) -> Noise:
        """Sum up the times of a run; without any, nothing is known, and nothing held against it."""
        first, median, third = np.percentile(times, [25, 50, 75]).tolist() if len(times) else (0.0, 0.0, 0.0)
        return cls(len(times), first, median, third)

    @property
    def too_much(self) -> bool:
        """Whether times of this run tell little."""
        return self.third > TOO_MUCH * self.first

    def disturbed(self, probe_seconds: float | None) -> bool:
        """Whether the probe was much slower than usual at one moment."""
        return probe_seconds is not None and probe_seconds > TOO_MUCH * self.median


def _matrix_product() -> Callable[[], Any]:
    left = np.random.default_rng(0).random((_SIZE, _SIZE), dtype=np.float32)
    made = np.empty_like(left)
    return lambda: np.matmul(left, left, out=made)
