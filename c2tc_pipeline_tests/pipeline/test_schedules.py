"""The nightly schedules: what a tick launches after which change, and what it says when there is nothing to do."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from c2tc_pipeline.pipeline import jobs
from c2tc_pipeline.pipeline.instance import open_instance
from c2tc_pipeline.pipeline.jobs import ASSETS, CONDENSE, nightly_schedules
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline_tests.pipeline.toy_pipeline import every_step, record_all, toy_catalogue, toy_definitions

UP_TO_DATE = "Everything is up to date."


class Night:
    """The schedules over one instance."""

    def __init__(self, catalogue: Catalogue, instance: dg.DagsterInstance) -> None:
        self.catalogue = catalogue
        self.instance = instance
        schedules = nightly_schedules(catalogue)
        self.schedules = {schedule.name.removesuffix("_nightly"): schedule for schedule in schedules}
        self.repository = toy_definitions(catalogue, schedules=schedules).get_repository_def()

    def tick(self, name: str) -> list[str] | str:
        """Return the steps launched, or why there are none."""
        now = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
        # Left, so that the instance that the context opens does not outlive this test in Dagster's global state.
        with dg.build_schedule_context(self.instance, now, repository_def=self.repository) as context:
            data = self.schedules[name].evaluate_tick(context)
        keys = [key for request in data.run_requests or [] for key in request.asset_selection or []]
        return ["/".join(key.path) for key in keys] or data.skip_message or ""


# Dagster opens the instance again for each tick, which it can't do with one in memory.
@pytest.fixture
def night(tmp_path: Path) -> Iterator[Night]:
    with open_instance(tmp_path / "dagster") as instance:
        yield Night(toy_catalogue(tmp_path, "adult", "bank", ratios=(0.1,)), instance)


def test_each_job_follows_the_one_before(night: Night) -> None:
    launched = night.tick("condense")
    assert [name for name in launched if name.startswith("bank/")] == [
        *(f"bank/{name}" for name in CONDENSE[:4]),
        *(f"bank/{name}_0_1" for name in CONDENSE[4:]),
    ]
    assert night.tick("report") == night.tick("leaderboard") == UP_TO_DATE
    record_all(night.instance, night.catalogue, "bank", steps=CONDENSE)
    assert night.tick("report") == ["bank/evaluation_scores_0_1", "bank/report"]
    record_all(night.instance, night.catalogue, "bank")
    assert night.tick("leaderboard") == ["leaderboard", "ops_overview"]


def test_what_changed_is_launched_and_what_is_missing_is_named(night: Night, tmp_path: Path) -> None:
    record_all(night.instance, night.catalogue)
    assert [night.tick(name) for name in night.schedules] == [UP_TO_DATE] * 3
    os.utime(tmp_path / "bank.csv", ns=(0, 1))
    (tmp_path / "adult.csv").unlink()
    assert night.tick("condense") == UP_TO_DATE
    (tmp_path / "bank.csv").write_text("x,y\nnew,1\n")
    assert len(night.tick("condense")) == len(CONDENSE)
    run = dg.DagsterRun("condense_job", status=dg.DagsterRunStatus.STARTING)
    night.instance.add_run(run)
    assert night.tick("condense") == "bank: its run has not ended yet."
    night.instance.delete_run(run.run_id)
    night.instance.add_run(dg.DagsterRun("condense_job", status=dg.DagsterRunStatus.FAILURE))
    assert len(night.tick("condense")) == len(CONDENSE)


def test_a_night_submits_few_runs_and_the_next_goes_on(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "SMALL_TABLES_A_RUN", 1)
    monkeypatch.setattr(jobs, "MAX_RUNS_A_TICK", 1)
    launched = night.tick("condense")
    assert {name.partition("/")[0] for name in launched} == {"adult"}
    record_all(night.instance, night.catalogue, "adult")
    assert {name.partition("/")[0] for name in night.tick("condense")} == {"bank"}


def test_every_asset_belongs_to_a_job(night: Night) -> None:
    covered = [key for name in ASSETS for key in night.repository.get_job(name).asset_layer.executable_asset_keys]
    assert sorted(covered) == sorted(step.key for step in every_step(night.catalogue))
    assert {each.default_status for each in night.schedules.values()} == {dg.DefaultScheduleStatus.STOPPED}
