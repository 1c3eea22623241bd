"""The CPU seconds of one run with all its processes: the run, the process that its steps are forked from, the steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from c2tc_pipeline_tests.load.cpu import adopt_orphans, cpu_of_children, wait_for_all
from c2tc_pipeline_tests.made_tables import mixed_table
from c2tc_pipeline_tests.orchestration.faulty_definitions import _tags
from c2tc_pipeline_tests.orchestration.live import Site

TABLE = "people"


def execute_job(site: Site, job: str, partition: str, **environment: str) -> None:
    """Execute a job for one partition in a process of its own, with the pipeline's executor."""
    command = [sys.executable, "-m", "dagster", "job", "execute", "-m", "c2tc_pipeline.definitions", "-j", job]
    subprocess.run(
        [*command, "--tags", json.dumps(_tags(partition))],
        env={**os.environ, **site._environment, **environment},
        cwd=site.folder,
        capture_output=True,
        check=True,
    )


def run_costs(folder: Path, **environment: str) -> Iterator[tuple[str, float]]:
    """Yield each job of one small table with its CPU seconds; for a process that has no other children, on Linux.

    Parameters
    ----------
    folder : Path
        Empty.
    **environment : str
        Variables for the runs.
    """
    # The process that steps are forked from outlives its run, and would be counted nowhere.
    adopt_orphans()
    with Site(folder) as site:
        site.add(TABLE, mixed_table(200))
        ratio = site.catalogue[TABLE].ratios[0]
        for job, partition in (("ingest_job", TABLE), ("condense_job", f"{TABLE}|{ratio!r}")):
            before = cpu_of_children()
            execute_job(site, job, partition, **environment)
            wait_for_all()
            [run] = site.instance.get_runs(limit=1)
            assert run.job_name == job
            assert run.is_success
            yield job, cpu_of_children() - before
