"""The launcher of one machine, under Dagster's real daemon: runs that are killed, stopped, and launched again."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import yaml

from c2tc_pipeline.pipeline.instance import prepare_home
from c2tc_pipeline.pipeline.instance import RunProcess, process_of
from c2tc_pipeline_tests.pipeline.live import Site
from c2tc_pipeline_tests.tools.made_tables import mixed_table

pytestmark = [pytest.mark.slow, pytest.mark.faults]

TABLE = "people"
OTHER = "a run that holds the device"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose daemon looks after runs every second."""
    folder = tmp_path_factory.mktemp("site")
    settings = prepare_home(folder / "home") / "dagster.yaml"
    changed = yaml.safe_load(settings.read_text())
    changed["run_monitoring"] |= {"poll_interval_seconds": 1, "free_slots_after_run_end_seconds": 1}
    settings.write_text(yaml.safe_dump(changed))
    with Site(folder) as site:
        site.add(TABLE, mixed_table(200))
        with site.running("dagster-daemon", "run"):
            yield site


def launched_and_waiting(site: Site) -> tuple[dg.DagsterRun, RunProcess]:
    """Launch the ingest while somebody else has the device; return it when it is waiting for that."""
    storage = site.instance.event_log_storage
    storage.initialize_concurrency_limit_to_default("gpu")
    assert storage.claim_concurrency_slot("gpu", OTHER, "encoder").slot_status.value == "CLAIMED"
    known = {run.run_id for run in site.runs()}
    tags = {"dagster/partition": TABLE, "dagster/run_key": str(len(known))}
    site.call("dagster", "job", "launch", "-j", "ingest_job", "--tags", json.dumps(tags))
    [run] = [run for run in site.runs() if run.run_id not in known]

    def waits() -> bool:
        return storage.get_concurrency_info("gpu").pending_step_count > 0

    site.wait_until(waits)
    process = process_of(site.instance, run.run_id)
    assert process is not None
    assert process.is_alive()
    return run, process


def give_back(site: Site) -> None:
    site.instance.event_log_storage.free_concurrency_slots_for_run(OTHER)


def status(site: Site, run: dg.DagsterRun) -> dg.DagsterRunStatus:
    found = site.instance.get_run_by_id(run.run_id)
    assert found is not None
    return found.status


def test_a_run_whose_process_is_killed_is_noticed_and_launched_again(site: Site) -> None:
    run, process = launched_and_waiting(site)
    os.kill(process.number, signal.SIGKILL)
    site.wait_until(lambda: status(site, run) is dg.DagsterRunStatus.FAILURE)
    said = [entry.message for entry in site.instance.all_logs(run.run_id)]
    assert any(f"The process of this run ({process.number}) is gone." in each for each in said), said

    def again() -> list[dg.DagsterRun]:
        return [each for each in site.runs() if each.parent_run_id == run.run_id]

    site.wait_until(lambda: bool(again()))
    give_back(site)
    site.wait_until(lambda: status(site, again()[0]) is dg.DagsterRunStatus.SUCCESS)
    assert [path.name for path in Path(site.storage).iterdir() if path.name == "encoded_table"] == ["encoded_table"]


def test_a_run_that_is_stopped_ends_as_cancelled(site: Site) -> None:
    run, process = launched_and_waiting(site)
    assert site.instance.run_launcher.terminate(run.run_id)
    site.wait_until(lambda: status(site, run) is dg.DagsterRunStatus.CANCELED)
    give_back(site)
    site.wait_until(lambda: not process.is_alive())
    assert not site.instance.run_launcher.terminate(run.run_id)
    assert [each for each in site.runs() if each.parent_run_id == run.run_id] == []
