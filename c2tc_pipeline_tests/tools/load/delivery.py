"""Deliveries of many tables to a running daemon, and the CPU seconds of runs with all their processes (on Linux)."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg

from c2tc_pipeline.pipeline.jobs import ASSETS, UNFINISHED
from c2tc_pipeline.pipeline.records import Records
from c2tc_pipeline.pipeline.versioning import LEADERBOARD, TableStep
from c2tc_pipeline_tests.pipeline.live import TABLE, Site
from c2tc_pipeline_tests.tools.made_tables import mixed_table

_RUNNING = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
_PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Progress:
    """Runs by job and final status, the largest number of concurrent ones, and seconds to the leaderboard."""

    max_concurrent: int = 0
    ended: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: float = 0.0


def follow(site: Site, timeout: float) -> Progress:
    """Wait until everything is made of a site whose daemon and sensors are on, or for a number of seconds."""
    progress, began = Progress(), time.monotonic()
    before = {run.run_id for run in site.runs()}
    while True:
        runs = [run for run in site.runs() if run.run_id not in before]
        progress.max_concurrent = max(progress.max_concurrent, sum(run.status in _RUNNING for run in runs))
        progress.seconds = time.monotonic() - began
        is_idle = not any(run.status in UNFINISHED for run in runs)
        records = Records(site.instance, site.catalogue)
        if (is_idle and runs and records.is_current(TableStep("", LEADERBOARD))) or progress.seconds > timeout:
            progress.ended = Counter((run.job_name, run.status.value) for run in runs)
            return progress
        # Each poll reads all runs, on the machine that executes them.
        time.sleep(2)


def adopt_orphans() -> None:
    """Become the parent of processes whose parent ends, so that they are counted."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def cpu_of_children() -> float:
    """Wait for all children, and return the CPU seconds of all that were waited for, and of their children."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            return used.ru_utime + used.ru_stime


def run_costs(folder: Path, **environment: str) -> Iterator[tuple[str, float]]:
    """Yield each job of one small table with its CPU seconds, executed in a new process as Dagster's launcher does."""
    adopt_orphans()
    with Site(folder) as site:
        site.add(TABLE, mixed_table(200))
        for job in ASSETS:
            before = cpu_of_children()
            subprocess.run(
                [*(sys.executable, "-m", "dagster", "job", "execute", "-m", "c2tc_pipeline.definitions"), "-j", job],
                env={**os.environ, **site._environment, **environment},
                cwd=site.folder,
                capture_output=True,
                check=True,
            )
            yield job, cpu_of_children() - before
