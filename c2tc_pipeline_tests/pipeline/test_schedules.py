"""The nightly schedules: what a tick launches after which change, and what it says when there is nothing to do."""

from __future__ import annotations

import datetime
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from c2tc_pipeline.pipeline.instance import open_instance
from c2tc_pipeline.pipeline.jobs import CONDENSE, INGEST, nightly_schedules
from c2tc_pipeline.pipeline.versioning import PARENTS
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline_tests.pipeline.toy_pipeline import record, record_all, toy_catalogue, toy_definitions

Launched = dict[str | None, list[str]]


class Night:
    """The schedules over one instance."""

    def __init__(self, catalogue: Catalogue, instance: dg.DagsterInstance) -> None:
        self.catalogue = catalogue
        self.instance = instance
        schedules = nightly_schedules(catalogue)
        self.schedules = {schedule.name.removesuffix("_nightly"): schedule for schedule in schedules}
        self.repository = toy_definitions(catalogue, schedules=schedules).get_repository_def()

    def tick(self, name: str) -> Launched | str:
        """Return the assets launched for each partition, or why there are none."""
        context = dg.build_schedule_context(
            self.instance, datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), repository_def=self.repository
        )
        data = self.schedules[name].evaluate_tick(context)
        requests = data.run_requests or []
        assert len({request.run_key for request in requests}) == len(requests)
        assert all(request.run_key for request in requests)
        if not requests:
            return data.skip_message or ""
        return {
            request.partition_key: [key.to_user_string() for key in request.asset_selection or []]
            for request in requests
        }

    def all(self) -> dict[str, Launched | str]:
        return {name: self.tick(name) for name in self.schedules}

    def changed(self, **settings: object) -> Night:
        """Return the same night with other settings for the table bank."""
        bank = self.catalogue["bank"]
        new = bank.model_copy(update={"settings": bank.settings.model_copy(update=settings)})
        return Night(Catalogue(self.catalogue.path, {**self.catalogue, "bank": new}), self.instance)


UP_TO_DATE = "Everything is up to date."
NOTHING = dict.fromkeys(("ingest", "condense", "report", "leaderboard"), UP_TO_DATE)


# Dagster opens the instance again for each tick, which it can't do with one in memory.
@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Night]:
    with open_instance(tmp_path / "dagster") as instance:
        yield Night(toy_catalogue(tmp_path, "adult", "bank"), instance)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which everything was made; making it anew for each test takes long."""
    folder = tmp_path_factory.mktemp("made")
    with open_instance(folder / "dagster") as instance:
        record_all(instance, toy_catalogue(folder, "adult", "bank"))
    return folder


@pytest.fixture
def night(made: Path, tmp_path: Path) -> Iterator[Night]:
    """A night before which everything was made."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    with open_instance(tmp_path / "dagster") as instance:
        yield Night(toy_catalogue(tmp_path, "adult", "bank"), instance)


def test_first_night_ingests_and_nothing_more(fresh: Night) -> None:
    assert fresh.all() == {**NOTHING, "ingest": {"adult": list(INGEST), "bank": list(INGEST)}}


def test_each_job_follows_the_one_before(fresh: Night) -> None:
    record_all(fresh.instance, fresh.catalogue, "bank", assets=INGEST)
    grid = [*CONDENSE]
    assert fresh.tick("condense") == {"bank|0.1": grid, "bank|0.01": grid}
    record_all(fresh.instance, fresh.catalogue, "bank", assets=grid)
    assert fresh.tick("report") == {"bank": ["report"]}
    assert fresh.tick("leaderboard") == {None: ["leaderboard"]}


def test_an_unchanged_or_touched_source_launches_nothing(night: Night, tmp_path: Path) -> None:
    assert night.all() == NOTHING
    os.utime(tmp_path / "bank.csv", ns=(0, 1))
    assert night.all() == NOTHING


def test_a_changed_source_ingests_its_table_and_a_missing_one_is_named(night: Night, tmp_path: Path) -> None:
    (tmp_path / "adult.csv").unlink()
    said = night.tick("ingest")
    assert isinstance(said, str)
    assert said.startswith(f"{UP_TO_DATE} adult: There is no file ")
    (tmp_path / "bank.csv").write_text("x,y\nbank,2\n")
    assert night.all() == {**NOTHING, "ingest": {"bank": list(INGEST)}}


def test_a_setting_of_one_table_launches_what_reads_it(night: Night) -> None:
    grid = [*CONDENSE]
    assert night.changed(gamma=0.75).all() == {**NOTHING, "condense": {"bank|0.1": grid, "bank|0.01": grid}}
    assert night.changed(representative="medoid").tick("condense") == {"bank|0.1": grid[1:], "bank|0.01": grid[1:]}
    assert night.changed(strings="target").tick("ingest") == {"bank": ["encoder", "encoded_table"]}


def test_a_table_that_the_checks_stopped_is_not_taken_up_behind_them(night: Night, tmp_path: Path) -> None:
    (tmp_path / "bank.csv").write_text("x,y\nbad,1\n")
    record(night.instance, night.catalogue, "raw_table", "bank")
    assert night.tick("ingest") == {"bank": list(INGEST)}


@pytest.mark.parametrize("job", ["ingest_job", "__ASSET_JOB"])
def test_what_is_still_running_is_not_launched_again(night: Night, tmp_path: Path, job: str) -> None:
    (tmp_path / "bank.csv").write_text("x,y\nnew,1\n")
    run = dg.DagsterRun(
        job,
        run_id="7d1e",
        status=dg.DagsterRunStatus.STARTING,
        tags={"dagster/partition": "bank"},
        asset_selection=None if job == "ingest_job" else frozenset({dg.AssetKey("raw_table")}),
    )
    for other, state in (("report_job", dg.DagsterRunStatus.STARTED), ("ingest_job", dg.DagsterRunStatus.FAILURE)):
        night.instance.add_run(dg.DagsterRun(other, run_id=other, status=state, tags=run.tags))
    assert night.tick("ingest") == {"bank": list(INGEST)}
    night.instance.add_run(run)
    assert night.tick("ingest") == "bank: its run has not ended yet."


def test_they_run_at_night_in_order_and_only_when_turned_on(night: Night) -> None:
    times = []
    for schedule in night.schedules.values():
        assert schedule.execution_timezone == "UTC"
        assert schedule.default_status == dg.DefaultScheduleStatus.STOPPED
        minute, hour, *days = str(schedule.cron_schedule).split()
        assert days == ["*", "*", "*"]
        times.append((int(hour), int(minute)))
    assert times == sorted(times)
    assert max(times) < (6, 0)


def test_every_asset_belongs_to_a_job(fresh: Night) -> None:
    covered = set()
    for name in ("ingest_job", "condense_job", "report_job", "leaderboard_job"):
        covered |= {key.to_user_string() for key in fresh.repository.get_job(name).asset_layer.executable_asset_keys}
    assert covered == set(PARENTS)
