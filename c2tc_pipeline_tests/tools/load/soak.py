"""A soak: the same small table made repeatedly, and the growth of memory, files, threads and processes."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import dagster as dg
import numpy as np
import psutil

from c2tc_pipeline.pipeline.steps import GPU_POOL
from c2tc_pipeline_tests.pipeline.live import CELL, TABLE
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, succeeded
from c2tc_pipeline_tests.tools.made_tables import mixed_table

RATIO = 0.1


@dataclass(frozen=True)
class Sample:
    """Resident memory, open files, threads and children of some processes, temporary files, and used pool slots."""

    memory_mb: float
    files: int
    threads: int
    processes: int
    temporary: int
    slots: int


@dataclass(frozen=True)
class Soaked:
    """A sample after each materialisation."""

    samples: list[Sample]

    def slope(self, name: str) -> float:
        """Return the growth per materialisation, by a line fitted to all but the first quarter; NaN if too few."""
        values = [float(asdict(sample)[name]) for sample in self.samples]
        kept = values[len(values) // 4 :]
        if len(kept) < 2:
            return math.nan
        return float(np.polyfit(np.arange(len(kept)), kept, 1)[0])


def soak(folder: Path, times: int, longest: float = math.inf) -> Soaked:
    """Make the cell of a small table repeatedly in this process, until a number or a time limit is reached."""
    samples, turns = [], _turns(times, time.monotonic() + longest)
    with own_temporary_folder(folder / "tmp") as temporary, Rig(folder) as rig:
        rig.add(TABLE, mixed_table(), ratios=[RATIO], evaluation={"seeds": 1, "models": ["logistic"]})
        succeeded(rig.run("ingest", TABLE))
        for number in turns:
            # Another setting each time, so that nothing but the loss curves comes from the cache.
            rig.change(TABLE, settings={"gamma": (number + 1) / (times + 1)})
            succeeded(rig.run("condense", CELL))
            samples.append(sample(psutil.Process(), temporary, rig.instance))
    return Soaked(samples)


def _turns(times: int, give_up: float) -> Iterator[int]:
    """Count to a number, or until a moment has passed."""
    for number in range(times):
        if time.monotonic() >= give_up:
            return
        yield number


def sample(process: psutil.Process, temporary: Path, instance: dg.DagsterInstance) -> Sample:
    """Return what a process and an instance hold now."""
    slots = instance.event_log_storage.get_concurrency_info(GPU_POOL)
    return Sample(
        memory_mb=process.memory_info().rss / 1e6,
        files=process.num_fds(),
        threads=process.num_threads(),
        processes=1 + len(process.children(recursive=True)),
        temporary=sum(1 for _ in temporary.rglob("*")),
        slots=slots.active_slot_count + slots.pending_step_count,
    )


@contextmanager
def own_temporary_folder(folder: Path) -> Iterator[Path]:
    """Let temporary files of this process and of those that it starts go into a folder, to be counted there."""
    folder.mkdir(parents=True)
    before = tempfile.tempdir, os.environ.get("TMPDIR")
    tempfile.tempdir, os.environ["TMPDIR"] = str(folder), str(folder)
    try:
        yield folder
    finally:
        tempfile.tempdir = before[0]
        if before[1] is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before[1]
