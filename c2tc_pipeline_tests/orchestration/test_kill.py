"""Runs and steps that are killed: executed again from failure, they end with the bytes of an undisturbed run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from c2tc_pipeline.orchestration.instance import end_dead_runs
from c2tc_pipeline.orchestration.ledger import Ledger
from c2tc_pipeline.orchestration.versioning import partition_keys
from c2tc_pipeline_tests.orchestration.faulty_definitions import execute, faulty_job_in_process
from c2tc_pipeline_tests.orchestration.pipeline_rig import JOBS, Rig
from c2tc_pipeline_tests.orchestration.processes import ended, start

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


def differing(ours: dict[str, bytes], theirs: dict[str, bytes]) -> list[str]:
    return [name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]


def newest_run(rig: Rig) -> str:
    return rig.instance.get_runs(limit=1)[0].run_id


def killed_at_every_boundary(rig: Rig, job: str, partition: str | None, moment: str) -> None:
    """Kill a run of a job at its first asset, the run that goes on from there at the second, and so on to the end."""
    parent_run = None
    for asset in JOBS[job]:
        fault = ("killed_at_manifest", asset, moment)
        run = start(execute, faulty_job_in_process, rig.folder, job, partition, *fault, parent_run=parent_run)
        assert ended(run) == -signal.SIGKILL
        parent_run = newest_run(rig)
        assert end_dead_runs(rig.instance) == [parent_run]
    last = start(execute, faulty_job_in_process, rig.folder, job, partition, parent_run=parent_run)
    assert ended(last) == 0
    assert rig.instance.get_runs(limit=1)[0].is_success


# The moments differ only in what the next run finds of the asset; to find finished ones, one job will do.
@pytest.mark.parametrize(("moment", "jobs"), [("before", [*JOBS]), ("after", ["ingest_job"])])
def test_a_run_killed_at_every_asset_ends_with_the_same_bytes(
    rig: Rig, undisturbed: Rig, moment: str, jobs: list[str]
) -> None:
    assets = [asset for job in jobs for asset in JOBS[job]]
    for job in jobs:
        for partition in partition_keys(JOBS[job][0], rig.catalogue):
            killed_at_every_boundary(rig, job, partition, moment)
    assert differing(rig.stored_files(*assets), undisturbed.stored_files(*assets)) == []
    assert rig.versions(*assets) == undisturbed.versions(*assets)
    # A version that was visible when its run died is made once more, one that was not is made once.
    made = {rig.told(asset, key)["version"] for asset in assets for key in partition_keys(asset, rig.catalogue)}
    assert made == {2 if moment == "after" else 1}
    assert all(Ledger(rig.instance, rig.catalogue).out_of_date(asset) == [] for asset in assets)


def started(rig: Rig, *fault: str) -> subprocess.Popen[bytes]:
    """Start the ingest in a process of its own, with the executor of the pipeline."""
    command = [sys.executable, "-m", "c2tc_pipeline_tests.orchestration.faulty_definitions"]
    environment = {**os.environ, "C2TC_CATALOGUE": str(rig.folder / "catalog.yaml"), "OMP_NUM_THREADS": "1"}
    with (rig.folder / "log.txt").open("wb") as log:
        return subprocess.Popen(
            [*command, str(rig.folder), "ingest_job", "people", *fault],
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
    assert again == ["encoder"]
    assert differing(rig.stored_files(), undisturbed.stored_files(*JOBS["ingest_job"])) == []


def test_a_step_that_outlives_its_killed_run_comes_too_late(rig: Rig, undisturbed: Rig) -> None:
    for pipe in ("alive", "go"):
        os.mkfifo(rig.folder / pipe)
    run = started(rig, "held_in_encoder")
    with (rig.folder / "alive").open() as alive:
        step = int(alive.readline())
        try:
            run.kill()
            run.wait()
            dead_run = newest_run(rig)
            assert end_dead_runs(rig.instance) == [dead_run]
            follower = start(execute, faulty_job_in_process, rig.folder, "ingest_job", "people", parent_run=dead_run)
            assert ended(follower) == 0
            winner = rig.store.latest("encoder/people")
            (rig.folder / "go").write_bytes(b"go")
            assert alive.read() == "", "it ends when it has been told"
        finally:
            if _is_alive(step):
                os.kill(step, signal.SIGKILL)
    assert rig.store.latest("encoder/people") == winner
    assert differing(rig.stored_files(), undisturbed.stored_files(*JOBS["ingest_job"])) == []
    told = [
        entry.get_dagster_event().step_failure_data
        for entry in rig.instance.all_logs(dead_run)
        if entry.is_dagster_event and entry.get_dagster_event().is_step_failure
    ]
    assert [failure.user_failure_data.description for failure in told if failure.user_failure_data] == [
        "Another run published version 1 of 'encoder/people' while this one was at work; its result stands and this "
        "one's is dropped."
    ]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
