"""Runs that are lost with their code server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import dagster as dg
import psutil
import pytest

from c2tc_pipeline.pipeline.code_server import SERVER_TAG, end_runs, lost_runs
from c2tc_pipeline.pipeline.instance import open_instance
from c2tc_pipeline_tests.pipeline.live import TABLE, Dashboard, Site
from c2tc_pipeline_tests.storage.s3_server import free_ports
from c2tc_pipeline_tests.tools.made_tables import mixed_table

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


LAUNCH = "mutation($params: ExecutionParams!) { launchRun(executionParams: $params) { __typename } }"
SELECTOR = {
    "repositoryLocationName": "c2tc_pipeline.definitions",
    "repositoryName": "__repository__",
    "jobName": "condense_job",
}


@pytest.mark.slow
@pytest.mark.faults
def test_a_run_lost_with_its_code_server_is_retried_under_c2tc_ui(tmp_path: Path) -> None:
    [port] = free_ports(1)
    places = ["--catalogue", "catalog.yaml", "--home", "home", "--storage", "store", "--port", str(port)]
    with Site(tmp_path) as site, (tmp_path / "ui.log").open("w") as log:
        site.add(TABLE, mixed_table(400))
        command = [sys.executable, "-m", "c2tc_pipeline", "ui", *places]
        ui = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT)
        try:
            site.wait_until(lambda: "The dashboard is at" in site.said)
            asked = Dashboard(f"http://127.0.0.1:{port}").ask(LAUNCH, params={"selector": SELECTOR})
            assert asked["launchRun"]["__typename"] == "LaunchRunSuccess"
            site.wait_until(lambda: bool(site.runs(STARTED)))
            kill_code_servers(ui.pid)
            site.wait_until(lambda: bool(site.runs(dg.DagsterRunStatus.FAILURE)))
            site.wait_until(lambda: bool(site.runs(dg.DagsterRunStatus.SUCCESS)))
            assert len(site.runs()) == 2, "it was retried, not left to a sensor"
        finally:
            ui.terminate()
            ui.wait(120)


def kill_code_servers(process: int) -> None:
    """Kill the code servers below a process with their runs and steps."""
    for each in psutil.Process(process).children(recursive=True):
        if each.is_running() and "grpc" in each.cmdline():
            for victim in [each, *each.children(recursive=True)]:
                with suppress(ProcessLookupError):
                    os.kill(victim.pid, signal.SIGKILL)
