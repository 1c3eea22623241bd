"""The CPU seconds of one run with all its processes: the run, the process that its steps are forked from, the steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

from c2tc_pipeline.pipeline.fork_client import ForkClient
from c2tc_pipeline_tests.pipeline.faulty_definitions import _tags
from c2tc_pipeline_tests.pipeline.live import Site
from c2tc_pipeline_tests.tools.load.cpu import adopt_orphans, cpu_of_children, wait_for_all
from c2tc_pipeline_tests.tools.made_tables import mixed_table

TABLE = "people"


def execute_job(site: Site, job: str, partition: str, **environment: str) -> None:
    """Execute a job for one partition in a process of its own, with the pipeline's executor."""
    subprocess.run(
        [sys.executable, "-m", "dagster", *_arguments(job, partition)],
        env={**os.environ, **site._environment, **environment},
        cwd=site.folder,
        capture_output=True,
        check=True,
    )


def run_costs(folder: Path, *, forked: bool, **environment: str) -> Iterator[tuple[str, float]]:
    """Yield each job of one small table with its CPU seconds; for a process that has no other children, on Linux.

    Parameters
    ----------
    folder : Path
        Empty.
    forked : bool
        Whether runs are copies of a prepared process, as under the launcher of the default instance. What it costs to
        prepare it is not counted.
    **environment : str
        Variables for the runs.
    """
    # The process that steps are forked from outlives its run, and would be counted nowhere.
    adopt_orphans()
    with Site(folder) as site, mock.patch.dict(os.environ, {**site._environment, **environment}):
        site.add(TABLE, mixed_table(200))
        ratio = site.catalogue[TABLE].ratios[0]
        prepared = _cpu_of_forked(["--version"]) if forked else 0.0
        for job, partition in (("ingest_job", TABLE), ("condense_job", f"{TABLE}|{ratio!r}")):
            if forked:
                cost = _cpu_of_forked(_arguments(job, partition)) - prepared
            else:
                before = cpu_of_children()
                execute_job(site, job, partition)
                wait_for_all()
                cost = cpu_of_children() - before
            [run] = site.instance.get_runs(limit=1)
            assert run.job_name == job
            assert run.is_success
            yield job, cost


def _arguments(job: str, partition: str) -> list[str]:
    module = ["-m", "c2tc_pipeline.definitions"]
    return ["job", "execute", *module, "-j", job, "--tags", json.dumps(_tags(partition))]


def _cpu_of_forked(arguments: Sequence[str]) -> float:
    """Return the CPU seconds of preparing a process and executing one command in a copy of it."""
    before = cpu_of_children()
    client = ForkClient()
    client.start(arguments)
    client.close()
    wait_for_all()
    return cpu_of_children() - before
