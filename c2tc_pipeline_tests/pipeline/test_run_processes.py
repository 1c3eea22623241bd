"""Which process a run has, whether it is there, and what becomes of a run whose process was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

from c2tc_pipeline.pipeline.instance import open_instance
from c2tc_pipeline.pipeline.instance import RunProcess, end_dead_runs, process_of
from c2tc_pipeline_tests.pipeline.processes import KILLED_RUN

LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells when a process began")


def test_a_process_that_ended_is_not_alive() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert not RunProcess(ended.pid, time.time()).is_alive()


@LINUX
def test_a_process_that_ended_and_was_not_collected_is_not_alive() -> None:
    process = os.fork()
    if process == 0:
        os._exit(0)
    try:
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
        assert not RunProcess(process, time.time()).is_alive()
    finally:
        os.waitpid(process, 0)


@LINUX
def test_another_process_with_the_same_number_is_not_it() -> None:
    assert RunProcess(os.getpid(), time.time()).is_alive()
    assert not RunProcess(os.getpid(), time.time() - 7 * 86_400).is_alive()


def test_a_run_in_this_process_reports_it(tmp_path: Path) -> None:
    @dg.asset
    def table() -> None:
        pass

    with open_instance(tmp_path) as instance:
        run = dg.materialize([table], instance=instance).run_id
        found = process_of(instance, run)
        assert found is not None
        assert found.number == os.getpid()
        assert found.is_alive()
        assert process_of(instance, "no such run") is None


def test_a_killed_run_is_ended_and_gives_its_slot_back(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED_RUN, str(tmp_path)], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr

    @dg.asset(pool="gpu")
    def encoder() -> None:
        # The run that asks is alive, and is left alone.
        with open_instance(tmp_path) as other:
            assert end_dead_runs(other) == []

    with open_instance(tmp_path) as instance:
        [run] = instance.get_runs()
        assert run.status == dg.DagsterRunStatus.STARTED
        assert len(instance.event_log_storage.get_concurrency_info("gpu").claimed_slots) == 1
        assert end_dead_runs(instance) == [run.run_id]
        [run] = instance.get_runs()
        assert run.status == dg.DagsterRunStatus.FAILURE
        assert end_dead_runs(instance) == []
        assert dg.materialize([encoder], instance=instance).success
