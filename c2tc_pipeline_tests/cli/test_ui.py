"""``c2tc ui`` as a supervisor: lost runs, a lost code server, and a broken catalogue; services are stand-ins."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

from c2tc_pipeline.cli import supervisor as supervisor_module
from c2tc_pipeline.cli import ui
from c2tc_pipeline.cli.supervisor import Service
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.acceptance import IN_FORCE_VARIABLE, accept
from c2tc_pipeline.pipeline.instance import Workplace, open_instance
from c2tc_pipeline_tests.cli.test_supervisor import Ended, children, service, supervised, watch
from c2tc_pipeline_tests.pipeline.processes import KILLED_RUN
from c2tc_pipeline_tests.storage.s3_server import free_ports

# Starts a child whose command is like a code server's, writes its process into a file, and waits.
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "api", "grpc", "--socket"])
with open(sys.argv[1], "a") as file:
    print(child.pid, file=file)
while True:
    time.sleep(60)
"""
RIGHT = "tables: {bank: {source: bank.csv, label: y}}"
WRONG = "tables: {bank: {source: bank.csv, label: y, ratios: [2]}}"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_module, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(supervisor_module, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(ui, "RENEWAL_SECONDS", 0.5)
    monkeypatch.setattr(ui, "CHILD_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(ui, "CHILD_PATIENCE_SECONDS", 0.2)
    monkeypatch.delenv(IN_FORCE_VARIABLE, raising=False)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """A catalogue, and one stand-in for the services, which ends the test if nothing else does."""
    (tmp_path / "catalog.yaml").write_text(RIGHT)
    give_up = time.monotonic() + 120

    def late(_: int) -> bool:
        if time.monotonic() > give_up:
            raise Ended
        return False

    def stand_ins(*_: object) -> list[Service]:
        return [service("a", tmp_path, is_stale=late)]

    monkeypatch.setattr(ui, "dashboard_services", stand_ins)
    return Workplace(tmp_path / "catalog.yaml", str(tmp_path / "store"), tmp_path / "home")


def serve(place: Workplace, until: str) -> list[str]:
    """Serve until a sentence with these words is reported; return all that was said."""
    said = []

    def report(sentence: str) -> None:
        said.append(sentence)
        if until in sentence:
            raise KeyboardInterrupt
        if "The dashboard is at" in sentence:
            subprocess.run([sys.executable, "-c", KILLED_RUN, str(place.home)], capture_output=True, check=False)

    assert ui.serve_dashboard(place, host="127.0.0.1", port=free_ports(1)[0], report=report) == 0
    return said


def test_a_run_that_is_killed_later_is_ended_and_frees_its_slot(place: Workplace) -> None:
    serve(place, until="Ended run")
    with open_instance(place.home) as instance:
        [run] = instance.get_runs()
        assert run.status == dg.DagsterRunStatus.FAILURE
        assert instance.event_log_storage.get_concurrency_info("gpu").claimed_slots == []


def test_a_broken_catalogue_starts_with_the_accepted_one_and_says_so(place: Workplace) -> None:
    place.catalogue.write_text(WRONG)
    with pytest.raises(InputError, match="field 'ratios"):
        serve(place, until="The dashboard is at")
    place.catalogue.write_text(RIGHT)
    accept(place.catalogue, place.storage)
    place.catalogue.write_text(WRONG)
    said = serve(place, until="The dashboard is at")
    assert [line for line in said if "field 'ratios" in line] == said[:1]


@pytest.mark.skipif(sys.platform != "linux", reason="children of other processes are found on Linux only")
def test_a_dashboard_is_restarted_when_its_code_server_is_gone(tmp_path: Path) -> None:
    said: list[str] = []
    looks = 0
    with supervised(tmp_path, said, service("a", tmp_path, PARENT, is_stale=ui.lost_code_server())) as supervisor:

        def kill_once(_: float) -> None:
            nonlocal looks
            looks += 1
            # Not before it was seen.
            if looks == 50:
                os.kill(children(tmp_path, "a")[0], signal.SIGKILL)
            if len(children(tmp_path, "a")) == 2 or looks > 5_000_000:
                raise Ended

        watch(supervisor, kill_once)
    assert said.count("a is restarted.") == 1
    assert len(children(tmp_path, "a")) == 2
