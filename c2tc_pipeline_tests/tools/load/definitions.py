"""How long definitions of a catalogue take to load, and how much memory they hold: in processes of their own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_LOAD = """
import json, psutil, time
from c2tc_pipeline import definitions
own = psutil.Process()
before = own.memory_info().rss
wall, cpu = time.perf_counter(), time.process_time()
repository = definitions.build_defs().get_repository_def()
jobs = repository.get_all_jobs()
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
after = own.memory_info().rss
print(json.dumps({"seconds": wall, "cpu": cpu, "grown_mb": (after - before) / 1e6, "held_mb": after / 1e6}))
"""


@dataclass(frozen=True)
class Loaded:
    """One loading of definitions.

    Parameters
    ----------
    seconds, cpu : float
        Of building and resolving them, after imports.
    grown_mb, held_mb : float
        What the process's memory rose by, and to.
    """

    seconds: float
    cpu: float
    grown_mb: float
    held_mb: float


def load_definitions(folder: Path) -> Loaded:
    """Load the definitions of the catalogue in a folder, as the code server and every run do."""
    done = subprocess.run(
        [sys.executable, "-c", _LOAD], env=_environment(folder), capture_output=True, text=True, check=True
    )
    return Loaded(**json.loads(done.stdout.splitlines()[-1]))


def validate_definitions(folder: Path) -> tuple[float, float]:
    """Run ``dagster definitions validate`` on a catalogue, and return its seconds of the clock and of the CPU."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-m", "c2tc_pipeline.definitions"],
        env={**_environment(folder), "DAGSTER_HOME": str(folder / "home")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _environment(folder: Path) -> dict[str, str]:
    place = {"C2TC_CATALOGUE": str(folder / "catalog.yaml"), "C2TC_STORAGE": str(folder / "store")}
    return {**os.environ, **place}
