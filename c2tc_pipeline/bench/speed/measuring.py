"""Timing with repeats, a probe of the machine's noise, and the rows of the speed table."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd

T = TypeVar("T")
Clock = Callable[[], float]

TOO_MUCH = 1.25
"""Largest ratio of the probe's time to its median, and of its third quartile to its first, in a quiet run."""

_PROBE_SIZE = 1_100
_PACKAGES = ("c2tc_pipeline", "numpy", "pandas", "scikit-learn", "torch", "imbalanced-learn")
_TYPES = {"int": "int64", "float": "float64", "float | None": "float64", "bool": "bool", "bool | None": "boolean"}


class NoiseProbe:
    """Times a fixed piece of work again and again: a matrix product of some 50 milliseconds by default."""

    def __init__(self, work: Callable[[], Any] | None = None, clock: Clock = time.perf_counter) -> None:
        self.work = work or _matrix_product()
        self.clock = clock
        self.times: list[float] = []

    def sample(self) -> float:
        """Do the work once and return its seconds."""
        started = self.clock()
        self.work()
        self.times.append(self.clock() - started)
        return self.times[-1]


def _matrix_product() -> Callable[[], Any]:
    left = np.random.default_rng(0).random((_PROBE_SIZE, _PROBE_SIZE), dtype=np.float32)
    made = np.empty_like(left)
    return lambda: np.matmul(left, left, out=made)


@dataclass(frozen=True)
class Noise:
    """Number and quartiles of the probe's times in a run."""

    samples: int
    first: float
    median: float
    third: float

    @classmethod
    def of(cls, times: Sequence[float]) -> Noise:
        """Summarise the times of a run."""
        first, median, third = np.percentile(times, [25, 50, 75]).tolist() if len(times) else (0.0, 0.0, 0.0)
        return cls(len(times), first, median, third)

    @property
    def too_much(self) -> bool:
        """Whether the run was too noisy for its times to be trusted."""
        return self.third > TOO_MUCH * self.first

    def disturbed(self, probe_seconds: float | None) -> bool:
        """Whether one time of the probe was much longer than the median."""
        return probe_seconds is not None and probe_seconds > TOO_MUCH * self.median


@dataclass(frozen=True)
class Timed(Generic[T]):
    """The last value of a timed call, the seconds of each call, and the longest time of the probe around them."""

    value: T
    times: tuple[float, ...]
    probe_seconds: float

    @property
    def seconds(self) -> float:
        """The median."""
        return median(self.times)

    def columns(self) -> dict[str, Any]:
        """Return the fields of a :class:`SpeedRow` about the time."""
        return {**spread(self.times), "probe_seconds": self.probe_seconds}


@dataclass
class Bench:
    """Settings of a run: repeats of ours, the time limit of references, and the functions that time and report."""

    repeats: int = 3
    time_limit: float = 300.0
    report: Callable[[str], Any] = lambda line: None
    clock: Clock = time.perf_counter
    probe: NoiseProbe = field(default_factory=NoiseProbe)

    def time(self, call: Callable[[], T], *, repeats: int | None = None) -> Timed[T]:
        """Call and time, with the probe before and after each call."""
        times, probes = [], [self.probe.sample()]
        for _ in range(repeats or self.repeats):
            started = self.clock()
            value = call()
            times.append(self.clock() - started)
            probes.append(self.probe.sample())
        return Timed(value, tuple(times), max(probes))

    def once(self, call: Callable[[], T]) -> Timed[T]:
        """Time what is too slow to be repeated."""
        return self.time(call, repeats=1)


def spread(times: Sequence[float]) -> dict[str, Any]:
    """Return number, median, minimum and maximum of some times, as fields of a :class:`SpeedRow`."""
    return {"repeats": len(times), "seconds": median(times), "seconds_least": min(times), "seconds_most": max(times)}


def beside(reference: str, timed: Timed[Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a :class:`SpeedRow` about ours and a reference that ran to its end."""
    worst = max(timed.probe_seconds, ours["probe_seconds"])
    return {**ours, "reference": reference, "reference_seconds": timed.seconds, "probe_seconds": worst}


@dataclass(frozen=True, kw_only=True)
class SpeedRow:
    """A measurement and its reference.

    ``at_least`` marks a reference that was cut off; ``amount`` is measured beside or instead of the time, in ``unit``;
    ``holds`` is whether ``aim`` is reached, None where that is unknown; ``probe_seconds`` is the longest time of the
    noise probe around the measurement.
    """

    part: str
    what: str
    table: str = ""
    ratio: float | None = None
    repeats: int = 1
    seconds: float | None = None
    seconds_least: float | None = None
    seconds_most: float | None = None
    reference: str = ""
    reference_seconds: float | None = None
    times_faster: float | None = None
    at_least: bool = False
    amount: float | None = None
    reference_amount: float | None = None
    unit: str = ""
    objective: float | None = None
    reference_objective: float | None = None
    aim: str = ""
    holds: bool | None = None
    probe_seconds: float | None = None
    noisy: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        if self.times_faster is None and self.reference_seconds is not None and self.seconds:
            object.__setattr__(self, "times_faster", self.reference_seconds / self.seconds)

    def sentence(self) -> str:
        """Return the row as a line of text, for progress."""
        where = f"{self.table}{'' if self.ratio is None else f' at {100 * self.ratio:g} %'}"
        said = [] if self.seconds is None else [f"{self.seconds:.3g} s"]
        if self.times_faster is not None:
            took = "" if self.reference_seconds is None else f" ({self.reference_seconds:.3g} s)"
            least = "at least " if self.at_least else ""
            said.append(f"{least}{self.times_faster:.3g} times as fast as {self.reference}{took}")
        if self.amount is not None:
            against = "" if self.reference_amount is None else f" against {self.reference_amount:.4g}"
            said.append(f"{self.amount:.4g}{against} {self.unit}")
        if self.objective is not None and self.reference_objective is not None:
            said.append(f"objective {self.objective:.5g} against {self.reference_objective:.5g}")
        return f"{', '.join(filter(None, [self.part, where]))}: {self.what}: {', '.join(said)}"


def to_frame(rows: Iterable[SpeedRow]) -> pd.DataFrame:
    """Return rows as a table with the same columns and types whatever was measured."""
    types = {field.name: _TYPES.get(str(field.type), "str") for field in fields(SpeedRow)}
    return pd.DataFrame([asdict(row) for row in rows], columns=list(types)).astype(types)


def reaches(times_faster: float | None, aim: float, at_least: bool) -> bool | None:
    """Return whether a ratio reaches an aim; None when the reference was cut off before."""
    if times_faster is None:
        return None
    return True if times_faster >= aim else (None if at_least else False)


def all_hold(parts: Sequence[bool | None]) -> bool | None:
    """Return False if any part is False, else None if any is unknown, else True."""
    return False if False in parts else (None if None in parts else True)


def machine_facts() -> dict[str, Any]:
    """Return cores, threads, processor and versions as JSON values."""
    import torch
    from threadpoolctl import threadpool_info

    return {
        "cores": os.cpu_count() or 1,
        "torch_threads": torch.get_num_threads(),
        "threads": {pool["internal_api"]: pool["num_threads"] for pool in threadpool_info()},
        "processor": processor_name(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in _PACKAGES},
    }


def processor_name(description: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's model name, or its family where the system does not tell."""
    if description.is_file():
        for line in description.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
