"""Timing with repeats, and the rows of the speed table."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any, Generic, TypeVar

import pandas as pd

T = TypeVar("T")
Clock = Callable[[], float]

_PACKAGES = ("c2tc_pipeline", "numpy", "pandas", "scikit-learn", "torch", "imbalanced-learn")
_TYPES = {"int": "int64", "float": "float64", "float | None": "float64", "bool": "bool", "bool | None": "boolean"}


@dataclass(frozen=True)
class Timed(Generic[T]):
    """The last value of a timed call, and the seconds of each call."""

    value: T
    times: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """The median."""
        return median(self.times)


@dataclass
class Bench:
    """Settings of a run: repeats of ours, the time limit of references, and the functions that time and report."""

    repeats: int = 3
    time_limit: float = 300.0
    report: Callable[[str], Any] = lambda line: None
    clock: Clock = time.perf_counter

    def time(self, call: Callable[[], T], *, repeats: int | None = None) -> Timed[T]:
        """Call and time."""
        times = []
        for _ in range(repeats or self.repeats):
            started = self.clock()
            value = call()
            times.append(self.clock() - started)
        return Timed(value, tuple(times))

    def once(self, call: Callable[[], T]) -> Timed[T]:
        """Time what is too slow to be repeated."""
        return self.time(call, repeats=1)


def spread(times: Sequence[float]) -> dict[str, Any]:
    """Return number, median, minimum and maximum of some times, as fields of a :class:`SpeedRow`."""
    return {"repeats": len(times), "seconds": median(times), "seconds_least": min(times), "seconds_most": max(times)}


def beside(reference: str, timed: Timed[Any], ours: Timed[Any]) -> dict[str, Any]:
    """Return the fields of a :class:`SpeedRow` about ours and a reference that ran to its end."""
    return {**spread(ours.times), "reference": reference, "reference_seconds": timed.seconds}


@dataclass(frozen=True, kw_only=True)
class SpeedRow:
    """A measurement and its reference.

    ``at_least`` marks a reference that was cut off; ``amount`` is measured beside or instead of the time, in ``unit``;
    ``holds`` is whether ``aim`` is reached, None where that is unknown.
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


def processor_name() -> str:
    """Return the processor's model name, or its family where the system does not report it."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text(encoding="utf-8", errors="replace").splitlines() if described.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
