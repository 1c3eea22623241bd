"""A backfill of many partitions through the queue, and the CPU seconds of runs with all their processes (on Linux)."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg

from c2tc_pipeline.pipeline.jobs import UNFINISHED
from c2tc_pipeline_tests.pipeline.faulty_definitions import _tags
from c2tc_pipeline_tests.pipeline.live import CELL, TABLE, Dashboard, Site
from c2tc_pipeline_tests.tools.made_tables import mixed_table

_LAUNCH = """mutation($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) { __typename
    ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
_CANCEL = "mutation($id: String!) { cancelPartitionBackfill(backfillId: $id) { __typename } }"
_RUNNING = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
_PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Progress:
    """A backfill: its partitions, the largest number of concurrent runs, runs by final status, and seconds."""

    wanted: int
    max_concurrent: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def backfill(site: Site, dashboard: Dashboard, assets: Sequence[str], keys: Sequence[str], timeout: float) -> Progress:
    """Launch partitions of some assets, and wait until all have ended or the timeout; cancel what is left.

    The site's daemon must be running.
    """
    params = {"assetSelection": [{"path": [asset]} for asset in assets], "partitionNames": list(keys)}
    answer = dashboard.ask(_LAUNCH, params=params)["launchPartitionBackfill"]
    assert answer["__typename"] == "LaunchBackfillSuccess", answer
    chosen = dg.RunsFilter(tags={"dagster/backfill": answer["backfillId"]})
    progress = Progress(len(keys))
    began = time.monotonic()
    while True:
        states = Counter(run.status for run in site.instance.get_runs(chosen))
        progress.max_concurrent = max(progress.max_concurrent, sum(states[state] for state in _RUNNING))
        progress.seconds = time.monotonic() - began
        if states.total() == len(keys) and not any(states[state] for state in UNFINISHED):
            break
        if progress.seconds > timeout:
            dashboard.ask(_CANCEL, id=answer["backfillId"])
            site.wait_until(lambda: not site.runs(*UNFINISHED))
            break
        # Each poll reads all runs, on the machine that executes them.
        time.sleep(2)
    progress.ended = Counter(run.status.value for run in site.instance.get_runs(chosen))
    return progress


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
        for job, partition in (("ingest_job", TABLE), ("condense_job", CELL)):
            before = cpu_of_children()
            subprocess.run(
                [
                    *(sys.executable, "-m", "dagster", "job", "execute", "-m", "c2tc_pipeline.definitions"),
                    *("-j", job, "--tags", json.dumps(_tags(partition))),
                ],
                env={**os.environ, **site._environment, **environment},
                cwd=site.folder,
                capture_output=True,
                check=True,
            )
            yield job, cpu_of_children() - before
