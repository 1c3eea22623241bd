"""A soak: the same small table made repeatedly, and the growth of memory, files, threads and processes."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import dagster as dg
import numpy as np
import psutil

from c2tc_pipeline.pipeline.jobs import CONDENSE
from c2tc_pipeline.pipeline.steps import GPU_POOL
from c2tc_pipeline_tests.pipeline.live import CELL, TABLE, Site, running_dashboard
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, succeeded
from c2tc_pipeline_tests.tools.load.backfill import backfill
from c2tc_pipeline_tests.tools.made_tables import mixed_table

RATIO = 0.1
R = TypeVar("R", bound=Rig)


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


def soak_in_one_process(folder: Path, times: int, longest: float = math.inf) -> Soaked:
    """Make the cell of a small table repeatedly in this process, until a number or a time limit is reached."""
    samples = []
    with _ingested(Rig, folder, times, longest) as (rig, temporary, turns):
        for number in turns:
            # Another setting each time, so that nothing but the loss curves comes from the cache.
            rig.change(TABLE, settings={"gamma": (number + 1) / (times + 1)})
            succeeded(rig.run("condense_job", CELL))
            samples.append(sample([psutil.Process()], temporary, rig.instance))
    return Soaked(samples)


def soak_through_the_daemon(folder: Path, times: int, longest: float = math.inf) -> Soaked:
    """Make the cell of a small table repeatedly by the daemon; sample it and its code server between the runs."""
    samples = []
    with (
        _ingested(Site, folder, times, longest) as (site, temporary, turns),
        site.running("dagster-daemon", "run") as daemon,
        running_dashboard(site) as dashboard,
    ):
        root = psutil.Process(daemon.pid)
        for _ in turns:
            assert backfill(site, dashboard, CONDENSE, [CELL], timeout=600).ended == {"SUCCESS": 1}, site.said
            # The process of a run outlives the event of its end by a moment.
            site.wait_until(lambda: not _runs_below(root))
            samples.append(sample([root, *root.children(recursive=True)], temporary, site.instance))
    return Soaked(samples)


@contextmanager
def _ingested(kind: type[R], folder: Path, times: int, longest: float) -> Iterator[tuple[R, Path, Iterator[int]]]:
    """Make all that the cell is made from; yield where, the temporary folder, and the numbers of the turns to take."""
    turns = _turns(times, time.monotonic() + longest)
    with own_temporary_folder(folder / "tmp") as temporary, kind(folder) as rig:
        rig.add(TABLE, mixed_table(), ratios=[RATIO], evaluation={"seeds": 1, "models": ["logistic"]})
        succeeded(rig.run("ingest_job", TABLE))
        yield rig, temporary, turns


def _turns(times: int, give_up: float) -> Iterator[int]:
    """Count to a number, or until a moment has passed."""
    for number in range(times):
        if time.monotonic() >= give_up:
            return
        yield number


def sample(processes: Sequence[psutil.Process], temporary: Path, instance: dg.DagsterInstance) -> Sample:
    """Return what some processes and an instance hold now."""
    slots = instance.event_log_storage.get_concurrency_info(GPU_POOL)
    return Sample(
        memory_mb=sum(process.memory_info().rss for process in processes) / 1e6,
        files=sum(process.num_fds() for process in processes),
        threads=sum(process.num_threads() for process in processes),
        processes=len(processes) + (len(processes[0].children(recursive=True)) if len(processes) == 1 else 0),
        temporary=sum(1 for _ in temporary.rglob("*")),
        slots=slots.active_slot_count + slots.pending_step_count,
    )


def _runs_below(process: psutil.Process) -> list[psutil.Process]:
    """Return the processes of runs and steps, which multiprocessing starts."""
    found = []
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if any("multiprocessing" in part for part in child.cmdline()):
                found.append(child)
    return found


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
