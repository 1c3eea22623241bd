"""Steps that are killed alone, or with their run, with the executor of the pipeline; runs are in the kill matrix."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from c2tc_pipeline.pipeline.instance import end_dead_runs
from c2tc_pipeline_tests.pipeline.faulty_definitions import execute, faulty_job_in_process
from c2tc_pipeline_tests.pipeline.pipeline_rig import PARTS, Rig
from c2tc_pipeline_tests.pipeline.processes import ended, start
from c2tc_pipeline_tests.tools.reliability.kill_matrix import differing

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.faults]


def rig_in(folder: Path) -> Rig:
    rig = Rig(folder)
    rig.folder.mkdir(parents=True, exist_ok=True)
    rig.add("people")
    return rig


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with rig_in(tmp_path_factory.mktemp("undisturbed")) as rig:
        rig.run_all()
        yield rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """The same table, nothing made of it."""
    with rig_in(tmp_path / "rig") as rig:
        yield rig


def newest_run(rig: Rig) -> str:
    return rig.instance.get_runs(limit=1)[0].run_id


def started(rig: Rig, *fault: str) -> subprocess.Popen[bytes]:
    """Start the ingest in a process of its own, with the executor of the pipeline."""
    command = [sys.executable, "-m", "c2tc_pipeline_tests.pipeline.faulty_definitions"]
    environment = {**os.environ, "C2TC_CATALOGUE": str(rig.folder / "catalog.yaml"), "OMP_NUM_THREADS": "1"}
    with (rig.folder / "log.txt").open("wb") as log:
        return subprocess.Popen(
            [*command, str(rig.folder), "ingest", "people", *fault],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def test_a_step_whose_process_is_killed_is_tried_again(rig: Rig, undisturbed: Rig) -> None:
    assert started(rig, "killed_once_in_encoder").wait(300) == 0, (rig.folder / "log.txt").read_text()
    assert (rig.folder / "killed").exists()
    events = [entry.dagster_event for entry in rig.instance.all_logs(newest_run(rig)) if entry.dagster_event]
    again = [event.step_key for event in events if event.event_type_value == "STEP_RESTARTED"]
    assert again == ["people__encoder"]
    assert differing(rig.stored_files(), undisturbed.stored_files(*PARTS["ingest"])) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent ended")
def test_a_step_ends_with_its_killed_run_and_the_next_run_makes_it(rig: Rig, undisturbed: Rig) -> None:
    for pipe in ("alive", "go"):
        os.mkfifo(rig.folder / pipe)
    run = started(rig, "held_in_encoder")
    with (rig.folder / "alive").open() as alive:
        step = psutil.Process(int(alive.readline()))
        run.kill()
        run.wait()
        _, left = psutil.wait_procs([step], timeout=60)
        assert left == []
    dead_run = newest_run(rig)
    assert end_dead_runs(rig.instance) == [dead_run]
    assert rig.store.latest("encoder/people") is None
    follower = start(execute, faulty_job_in_process, rig.folder, "ingest", "people", parent_run=dead_run)
    assert ended(follower) == 0
    assert differing(rig.stored_files(), undisturbed.stored_files(*PARTS["ingest"])) == []
