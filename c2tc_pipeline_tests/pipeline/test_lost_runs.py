"""Runs that are lost with their code server, and steps whose run was killed."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import dagster as dg
import psutil
import pytest

from c2tc_pipeline.pipeline.code_server import SERVER_TAG, end_runs, lost_runs
from c2tc_pipeline.pipeline.instance import open_instance

HOST = "127.0.0.1"
STARTED, CANCELING = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING


def test_runs_of_servers_that_are_gone_end_with_their_slots_and_others_go_on(tmp_path: Path) -> None:
    @dg.asset(pool="gpu")
    def made() -> None:
        pass

    job = dg.Definitions([made], jobs=[dg.define_asset_job("job")]).resolve_job_def("job")
    with socket.create_server((HOST, 0)) as living, socket.create_server((HOST, 0)) as other:
        mine, alive = 1, living.getsockname()[1]
        gone = other.getsockname()[1]
        other.close()
        with open_instance(tmp_path) as instance:

            def launched(status: dg.DagsterRunStatus, host: str | None, port: int) -> str:
                tags = {} if host is None else {SERVER_TAG: json.dumps({"host": host, "port": port})}
                return instance.create_run_for_job(job, status=status, tags=tags).run_id

            lost = [launched(STARTED, HOST, mine), launched(STARTED, HOST, gone)]
            canceled = launched(CANCELING, HOST, mine)
            going_on = [
                launched(STARTED, HOST, alive),
                launched(STARTED, "elsewhere", mine),
                launched(STARTED, None, 0),
            ]
            instance.event_log_storage.initialize_concurrency_limit_to_default("gpu")
            claim = instance.event_log_storage.claim_concurrency_slot("gpu", lost[0], "made")
            assert claim.is_claimed
            again = launched(dg.DagsterRunStatus.STARTING, HOST, mine)
            found = lost_runs(instance, HOST, mine)
            assert set(found) == {*lost, canceled, again}
            starting = dg.DagsterEvent(event_type_value="PIPELINE_STARTING", job_name="job")
            instance.report_dagster_event(starting, run_id=again)
            assert sorted(end_runs(instance, found)) == sorted([*lost, canceled])
            assert instance.event_log_storage.get_concurrency_info("gpu").claimed_slots == []
            statuses = {run.run_id: run.status for run in instance.get_runs()}
            assert {statuses[run] for run in lost} == {dg.DagsterRunStatus.FAILURE}
            assert statuses[canceled] == dg.DagsterRunStatus.CANCELED
            assert {statuses[run] for run in going_on} == {STARTED}
            # Dagster retries what was lost, and nothing else.
            retried = [run.run_id for run in instance.get_runs() if run.tags.get("dagster/will_retry") == "true"]
            assert sorted(retried) == sorted(lost)


RUN = """
import multiprocessing, os, time
def step():
    os.write(1, f"{os.getpid()}\\n".encode())  # at once, so that lines stay whole
    time.sleep(600)
if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["c2tc_pipeline.pipeline.preloaded"])
    for _ in range(2):
        context.Process(target=step).start()
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent ended")
def test_steps_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    """As the steps of Dagster's multiprocess executor are started."""
    program = tmp_path / "run.py"
    program.write_text(RUN)
    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True) as run:
        try:
            assert run.stdout is not None
            steps = [psutil.Process(int(run.stdout.readline())) for _ in range(2)]
        finally:
            run.kill()
    _, alive = psutil.wait_procs(steps, timeout=30)
    assert alive == []
