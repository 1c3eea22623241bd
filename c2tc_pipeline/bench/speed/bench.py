"""What every part measures with: a clock, repeats, a limit for the references, and the probe of the machine's noise."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Generic, TypeVar

from c2tc_pipeline.bench.speed.noise import Clock, NoiseProbe

T = TypeVar("T")


@dataclass(frozen=True)
class Timed(Generic[T]):
    """A call that was timed, once or several times.

    Parameters
    ----------
    value : object
        What the last call returned.
    times : tuple of float
        Seconds of each call.
    probe_seconds : float
        The longest time of the probe around the calls.

    Examples
    --------
    >>> timed = Timed(value=None, times=(3.0, 1.0, 9.0), probe_seconds=0.05)
    >>> timed.seconds, timed.columns()["seconds_most"]
    (3.0, 9.0)
    """

    value: T
    times: tuple[float, ...]
    probe_seconds: float

    @property
    def seconds(self) -> float:
        """The median."""
        return median(self.times)

    def columns(self) -> dict[str, Any]:
        """Return what a row says about the time."""
        return {**spread(self.times), "probe_seconds": self.probe_seconds}


@dataclass
class Bench:
    """How a run measures.

    Parameters
    ----------
    repeats : int
        How often ours is measured.
    time_limit : float
        Seconds after which a reference that can be stopped is stopped.
    report : callable
        Told what is about to take long.
    clock : callable
        Returns seconds.
    probe : NoiseProbe
        Timed before and after each measurement.

    Examples
    --------
    >>> timed = Bench(repeats=2, probe=NoiseProbe(lambda: None)).time(lambda: 7)
    >>> timed.value, len(timed.times)
    (7, 2)
    """

    repeats: int = 3
    time_limit: float = 300.0
    report: Callable[[str], Any] = lambda line: None
    clock: Clock = time.perf_counter
    probe: NoiseProbe = field(default_factory=NoiseProbe)

    def time(self, call: Callable[[], T], *, repeats: int | None = None) -> Timed[T]:
        """Call and time, the probe before and after each call.

        Parameters
        ----------
        call : callable
            What is measured.
        repeats : int, optional
            How often, instead of this run's repeats.
        """
        times, probes = [], [self.probe.sample()]
        for _ in range(repeats or self.repeats):
            started = self.clock()
            value = call()
            times.append(self.clock() - started)
            probes.append(self.probe.sample())
        return Timed(value, tuple(times), max(probes))

    def once(self, call: Callable[[], T]) -> Timed[T]:
        """Measure what is too slow to be repeated."""
        return self.time(call, repeats=1)


def spread(times: tuple[float, ...]) -> dict[str, Any]:
    """Return median, least and most of some times, as a row has them.

    Examples
    --------
    >>> spread((2.0, 1.0, 4.0))
    {'repeats': 3, 'seconds': 2.0, 'seconds_least': 1.0, 'seconds_most': 4.0}
    """
    return {
        "repeats": len(times),
        "seconds": median(times),
        "seconds_least": min(times),
        "seconds_most": max(times),
    }


def beside(reference: str, timed: Timed[Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row says about ours and its reference, when nothing was cut off."""
    worst = max(timed.probe_seconds, ours["probe_seconds"])
    return {**ours, "reference": reference, "reference_seconds": timed.seconds, "probe_seconds": worst}
