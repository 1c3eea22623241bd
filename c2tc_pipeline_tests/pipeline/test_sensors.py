"""The source sensor: which states of sources launch a run, once."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import dagster as dg
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline import jobs, sensors
from c2tc_pipeline.pipeline.acceptance import IN_FORCE_VARIABLE, accept
from c2tc_pipeline.pipeline.instance import open_instance
from c2tc_pipeline.pipeline.io_managers import without_retry
from c2tc_pipeline.pipeline.jobs import CONDENSE, all_jobs
from c2tc_pipeline.pipeline.sensors import (
    INTERVAL_VARIABLE,
    RETRY_PAUSES_SECONDS,
    SOURCE_INTERVAL_SECONDS,
    automation_sensor,
    catalogue_sensor,
    interval_seconds,
    source_sensor,
)
from c2tc_pipeline.pipeline.versioning import PARENTS, TableStep, steps_named
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline_tests.pipeline.live import Webhook, running_webhook
from c2tc_pipeline_tests.pipeline.toy_pipeline import changed, record, record_all, toy_catalogue, toy_definitions

CANARY = "canary-token-91ce"

Launched = dict[str, list[list[str]]]

pytestmark = pytest.mark.usefixtures("quick_messages")


class Watch:
    """A sensor, tick by tick; the clock is moved by hand."""

    def __init__(self, catalogue: Catalogue, make: Callable[..., dg.SensorDefinition] = source_sensor) -> None:
        self.instance = dg.DagsterInstance.ephemeral()
        self.cursor: str | None = None
        self.skipped = ""
        self.requests: list[dg.RunRequest] = []
        self._make = make
        self.load(catalogue)

    def load(self, catalogue: Catalogue) -> None:
        """Load a catalogue, as a reload of the code location does."""
        self.catalogue = catalogue
        targets = all_jobs(catalogue)
        self.sensor = self._make(catalogue, targets)
        self.repository = toy_definitions(catalogue, sensors=[self.sensor], jobs=targets).get_repository_def()

    def ticks(self, number: int) -> list[Launched]:
        return [self.tick() for _ in range(number)]

    def tick(self) -> Launched:
        """Return what one tick launches: jobs, and the tables of each of its runs."""
        context = dg.build_sensor_context(self.instance, cursor=self.cursor, repository_def=self.repository)
        data = self.sensor.evaluate_tick(context)
        self.cursor = data.cursor
        self.skipped = data.skip_message or ""
        self.requests = list(data.run_requests or [])
        launched: Launched = {}
        for request in self.requests:
            keys = request.asset_selection or []
            tables = sorted({TableStep.of_key(key).table for key in keys})
            launched.setdefault(str(request.job_name), []).append(tables)
        return launched

    def steps(self) -> list[str]:
        """Return the names of the steps that the last tick launched."""
        return [TableStep.of_key(key).name for request in self.requests for key in request.asset_selection or []]

    def made(self, *tables: str, steps: Collection[str] = tuple(PARENTS)) -> None:
        """Record that a run made what is out of date."""
        record_all(self.instance, self.catalogue, *tables, steps=steps)

    def ingested(self, table: str, *, refused: bool = False) -> None:
        record(self.instance, self.catalogue, TableStep(table, "raw_table"), refused=refused)

    def running(self, *keys: dg.AssetKey) -> str:
        run = dg.DagsterRun("condense_job", status=dg.DagsterRunStatus.STARTED, asset_selection=frozenset(keys) or None)
        self.instance.add_run(run)
        return run.run_id


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the sensors, in a list."""
    now = [1e9]
    monkeypatch.setattr(sensors.time, "time", lambda: now[0])
    return now


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    """Two tables of which everything was made, and a sensor that has seen their sources."""
    made = Watch(toy_catalogue(tmp_path, "adult", "bank"))
    made.made()
    assert made.ticks(2) == [{}, {}]
    yield made
    made.instance.dispose()


@pytest.fixture
def automation(tmp_path: Path) -> Iterator[Watch]:
    """The same for the sensor of what is out of date."""
    made = Watch(toy_catalogue(tmp_path, "adult", "bank"), automation_sensor)
    made.made()
    assert made.ticks(2) == [{}, {}]
    yield made
    made.instance.dispose()


def write(folder: Path, table: str, text: str) -> None:
    (folder / f"{table}.csv").write_text(text)


BANK: Launched = {"condense_job": [["bank"]]}


def test_new_sources_are_launched_together_and_once(tmp_path: Path) -> None:
    watch = Watch(toy_catalogue(tmp_path, "adult", "bank"))
    assert watch.sensor.default_status == dg.DefaultSensorStatus.STOPPED
    assert watch.ticks(2) == [{}, {"condense_job": [["adult", "bank"]]}]
    keys = [each.key for name in CONDENSE for spec in watch.catalogue.values() for each in steps_named(name, spec)]
    assert set(watch.requests[0].asset_selection or []) == set(keys)
    assert watch.ticks(2) == [{}, {}]


def test_a_changed_source_launches_its_table_and_no_other(watch: Watch, tmp_path: Path) -> None:
    for text in ("x,y\nbank,1\nbank,0\n", "x,y\nbank,2\n"):
        write(tmp_path, "bank", text)
        assert watch.ticks(4) == [{}, BANK, {}, {}]
        watch.made("bank")


def test_large_tables_have_runs_of_their_own_and_a_tick_submits_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"table_{number}" for number in range(7)]
    monkeypatch.setattr(jobs, "SMALL_TABLES_A_RUN", 3)
    watch = Watch(toy_catalogue(tmp_path, *names))
    assert watch.ticks(2)[1] == {"condense_job": [names[:3], names[3:6], names[6:]]}
    monkeypatch.setattr(jobs, "SMALL_BYTES", 0)
    monkeypatch.setattr(sensors, "MAX_RUNS_A_TICK", 5)
    watch = Watch(watch.catalogue)
    first, second = watch.ticks(3)[1:]
    assert first == {"condense_job": [[name] for name in names[:5]]}
    assert second == {"condense_job": [[name] for name in names[5:]]}


def test_a_touched_file_launches_nothing_and_is_read_once(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(tmp_path / "bank.csv", ns=(0, 1))
    assert watch.ticks(2) == [{}, {}]
    monkeypatch.setattr("c2tc_pipeline.sources.csv_files.CsvSource.digest", lambda source: pytest.fail("read"))
    assert watch.ticks(2) == [{}, {}]


def test_a_file_that_still_grows_is_waited_for(watch: Watch, tmp_path: Path) -> None:
    for rows in range(1, 4):
        write(tmp_path, "bank", "x,y\n" + "half,1\n" * rows)
        assert watch.tick() == {}
    assert watch.ticks(2) == [BANK, {}]


def test_a_source_that_cannot_be_read_does_not_delay_the_others(watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "adult.csv").unlink()
    write(tmp_path, "bank", "x,y\nnew,1\n")
    assert watch.ticks(3) == [{}, BANK, {}]
    assert watch.skipped.startswith("adult: ")
    write(tmp_path, "adult", "x,y\nback,1\n")
    assert watch.ticks(3) == [{}, {"condense_job": [["adult"]]}, {}]


def test_a_source_that_never_answers_is_unreadable_and_delays_no_other(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "SOURCE_ANSWER_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        watch.load(changed(watch.catalogue, "adult", source=f"http://127.0.0.1:{port}/adult.csv"))
        write(tmp_path, "bank", "x,y\nnew,1\n")
        threads = threading.active_count()
        assert watch.ticks(3) == [{}, BANK, {}]
        assert "did not answer" in watch.skipped
        # The one that asks, and those of fsspec.
        waiting = threading.active_count()
        assert waiting > threads
        watch.tick()
        assert threading.active_count() == waiting, "it is not asked again while it is silent"


def test_a_delivery_that_was_judged_is_left_and_one_that_was_not_is_tried_again(
    watch: Watch, tmp_path: Path, clock: list[float]
) -> None:
    write(tmp_path, "bank", "x,y\nnew,1\n")
    assert watch.ticks(2) == [{}, BANK]
    keys = {watch.requests[0].run_key}
    for pause in RETRY_PAUSES_SECONDS:
        clock[0] += pause - 1
        assert watch.tick() == {}
        clock[0] += 1
        assert watch.tick() == BANK
        keys.add(watch.requests[0].run_key)
    clock[0] += 1e6
    assert watch.tick() == {}, "it is given up, and left to the nightly schedule"
    assert len(keys) == 1 + len(RETRY_PAUSES_SECONDS), "Dagster launches nothing twice under one key"
    write(tmp_path, "bank", "x,y\nbad,1\n")
    assert watch.ticks(2) == [{}, BANK]
    watch.ingested("bank", refused=True)
    clock[0] += 1e6
    assert watch.ticks(2) == [{}, {}]


def test_a_table_that_is_being_made_is_left_alone(watch: Watch, tmp_path: Path) -> None:
    write(tmp_path, "bank", "x,y\nnew,1\n")
    run = watch.running(TableStep("bank", "encoder").key)
    assert watch.ticks(3) == [{}, {}, {}]
    watch.instance.delete_run(run)
    run = watch.running()
    assert watch.tick() == {}, "a run without a selection makes all tables"
    watch.instance.delete_run(run)
    assert watch.tick() == BANK


def test_a_return_to_earlier_bytes_is_a_delivery_of_its_own(watch: Watch, tmp_path: Path) -> None:
    keys = set()
    for text in ("x,y\nB,1\n", "x,y\nbank,1\n", "x,y\nB,1\n"):
        write(tmp_path, "bank", text)
        assert watch.ticks(2) == [{}, BANK]
        keys.add(watch.requests[0].run_key)
        watch.ingested("bank")
    assert len(keys) == 3


def test_a_delivery_is_followed_by_one_run_of_each_job(automation: Watch, tmp_path: Path) -> None:
    write(tmp_path, "bank", "x,y\nnew,1\n")
    automation.ingested("bank")
    assert automation.tick() == BANK
    assert automation.steps()[0] == "validated_table"
    automation.made("bank", steps=CONDENSE)
    assert automation.tick() == {"report_job": [["bank"]]}
    assert automation.steps() == ["evaluation_scores_0_1", "evaluation_scores_0_01", "report"]
    automation.made("bank")
    assert automation.ticks(2) == [{"leaderboard_job": [[""]]}, {"leaderboard_job": [[""]]}]
    automation.made()
    assert automation.tick() == {}


def test_a_setting_that_comes_back_is_launched_anew(automation: Watch) -> None:
    keys = set()
    for gamma in (0.5, 0.75, 0.5, 0.75):
        automation.load(changed(automation.catalogue, "bank", settings={"gamma": gamma}))
        assert automation.tick() == BANK
        keys.add(automation.requests[0].run_key)
        automation.made()
    assert len(keys) == 4


def test_a_mistake_is_not_launched_again_before_something_changes(automation: Watch, clock: list[float]) -> None:
    def mistaken(step: TableStep) -> dict[str, str]:
        with without_retry():
            raise InputError("There are fewer rows than classes.")

    automation.load(changed(automation.catalogue, "bank", settings={"gamma": 0.75}))
    assert automation.tick() == BANK
    failing = toy_definitions(automation.catalogue, act=mistaken).resolve_job_def("condense_job")
    keys = list(automation.requests[0].asset_selection or [])
    failing.execute_in_process(instance=automation.instance, asset_selection=keys, raise_on_error=False)
    clock[0] += 1e6
    assert not [launched for launched in automation.ticks(3) if "condense_job" in launched]
    automation.load(changed(automation.catalogue, "bank", settings={"gamma": 0.5}))
    assert automation.tick() == BANK


def test_a_failed_run_renews_the_overview_once_whoever_launched_it(tmp_path: Path) -> None:
    with open_instance(tmp_path / "dagster") as instance:  # the order of events is that of its database
        automation = Watch(toy_catalogue(tmp_path, "adult"), automation_sensor)
        automation.instance = instance
        automation.made()
        assert automation.tick() == {}
        jobs = toy_definitions(automation.catalogue)

        def fail(job: str) -> None:
            run = instance.create_run_for_job(jobs.resolve_job_def(job), status=dg.DagsterRunStatus.STARTED)
            instance.report_run_failed(run)

        fail("condense_job")
        assert automation.tick() == {"leaderboard_job": [[""]]}
        assert automation.steps() == ["ops_overview"]
        record(instance, automation.catalogue, TableStep("", "ops_overview"))
        assert automation.tick() == {}
        fail("leaderboard_job")
        assert automation.tick() == {}, "it is not made again and again where it fails itself"


def test_a_source_that_was_gone_during_its_run_is_launched_when_it_is_back(watch: Watch, tmp_path: Path) -> None:
    write(tmp_path, "bank", "x,y\nnew,1\n")
    assert watch.ticks(2) == [{}, BANK]
    (tmp_path / "bank.csv").rename(tmp_path / "away.csv")
    assert watch.tick() == {}
    (tmp_path / "away.csv").rename(tmp_path / "bank.csv")
    assert watch.ticks(2) == [{}, BANK]


def test_what_fails_is_tried_again_and_holds_up_neither_other_ratios_nor_other_tables(
    automation: Watch, clock: list[float]
) -> None:
    automation.load(changed(automation.catalogue, "bank", ratios=(0.1, 0.01, 0.5)))
    assert automation.tick() == BANK
    assert {name.rpartition("_0_")[2] for name in automation.steps()} == {"5"}
    for pause in RETRY_PAUSES_SECONDS:
        assert automation.tick() == {}
        clock[0] += pause
        assert automation.tick() == BANK
    # The other ratios got another setting meanwhile, so they are made, and then reported without the one that fails.
    automation.load(changed(automation.catalogue, "bank", evaluation={"seeds": 9}))
    clock[0] += 1e6
    assert automation.tick() == {"report_job": [["bank"]]}
    assert automation.steps() == ["evaluation_scores_0_1", "evaluation_scores_0_01", "report"]
    automation.load(changed(automation.catalogue, "adult", settings={"gamma": 0.75}))
    assert automation.tick() == {"condense_job": [["adult"]]}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalogue file, which no process has accepted."""
    monkeypatch.delenv(IN_FORCE_VARIABLE, raising=False)
    file = tmp_path / "catalog.yaml"
    file.write_text("tables: {bank: {source: bank.csv, label: y}}")
    return file


WRONG = "tables: {bank: {source: bank.csv, label: y, ratios: [2]}}"


def test_one_version_of_the_catalogue_is_in_force_whatever_happens_to_its_file(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path / "store")
    assert accept(file, root).catalogue["bank"].label == "y"
    file.write_text("tables: {bank: {source: bank.csv, label: z}}")
    # Processes that this one starts inherit the variable.
    inherited = accept(file, root)
    assert inherited.catalogue["bank"].label == "y"
    assert inherited.catalogue.resolve_source(inherited.catalogue["bank"]) == str(tmp_path / "bank.csv")
    monkeypatch.delenv(IN_FORCE_VARIABLE)
    assert accept(file, root).catalogue["bank"].label == "z"
    for broken in (WRONG, "tables: {bank: {source: bank.csv, label: y, evaluation: {models: [no_such]}}}"):
        file.write_text(broken)
        monkeypatch.delenv(IN_FORCE_VARIABLE)
        assert accept(file, root).catalogue["bank"].label == "z"
    monkeypatch.delenv(IN_FORCE_VARIABLE)
    with pytest.raises(InputError, match="no_such"):
        accept(file, str(tmp_path / "another"))


def test_a_changed_catalogue_is_reloaded_and_a_wrong_one_reported_once(
    file: Path, tmp_path: Path, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor, cursor = catalogue_sensor(accept(file, str(tmp_path / "store"))), None

    def tick() -> str:
        nonlocal cursor
        with dg.DagsterInstance.ephemeral() as instance:
            context = dg.build_sensor_context(instance, cursor=cursor)
            data = sensor.evaluate_tick(context)
            cursor = data.cursor
            return data.skip_message or ""

    tick()
    file.write_text(WRONG)
    monkeypatch.setenv("C2TC_WEBHOOK_URL", webhook.url)
    assert all("field 'ratios" in tick() for _ in range(2))
    [message] = webhook.received
    assert "field 'ratios" in message["problem"]
    file.write_text("tables: {bank: {source: bank.csv, label: z}}")
    tick()
    assert [message["state"] for message in webhook.received] == ["failing", "over"]
    monkeypatch.setenv("C2TC_UI_URL", webhook.url.rpartition("/hooks")[0])
    tick()
    tick()
    assert webhook.paths.count("/graphql") == 1, "it is asked once"
    assert "reloadWorkspace" in webhook.received[-1]["query"]


def test_the_interval_of_a_sensor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(INTERVAL_VARIABLE, raising=False)
    assert interval_seconds(SOURCE_INTERVAL_SECONDS) == SOURCE_INTERVAL_SECONDS
    monkeypatch.setenv(INTERVAL_VARIABLE, " 600 ")
    assert interval_seconds(SOURCE_INTERVAL_SECONDS) == 600
    for wrong in ("soon", "0", "-5", "1.5", "\u0663"):
        monkeypatch.setenv(INTERVAL_VARIABLE, wrong)
        with pytest.raises(InputError, match=INTERVAL_VARIABLE):
            interval_seconds(SOURCE_INTERVAL_SECONDS)


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with running_webhook(f"hooks/{CANARY}") as webhook:
        yield webhook
