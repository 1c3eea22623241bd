"""The source sensor: which states of sources launch a run, once; and failed runs posted to a webhook."""

from __future__ import annotations

import json
import logging
import os
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import fsspec
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline import sensors
from c2tc_pipeline.pipeline.sensors import (
    FAILURE_INTERVAL_SECONDS,
    INTERVAL_VARIABLE,
    failure_sensor,
    post_json,
    source_sensor,
)
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline_tests.pipeline.live import Webhook, running_webhook
from c2tc_pipeline_tests.pipeline.toy_pipeline import record, toy_catalogue, toy_definitions
from c2tc_pipeline_tests.storage.s3_server import BUCKET, SECRET, S3Server

CANARY = "canary-token-91ce"


class Watch:
    """A source sensor, tick by tick."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.instance = dg.DagsterInstance.ephemeral()
        self.sensor = source_sensor(catalogue)
        self.repository = toy_definitions(catalogue, sensors=[self.sensor]).get_repository_def()
        self.cursor: str | None = None
        self.skipped = ""
        self.run_keys: list[str | None] = []

    def ticks(self, number: int) -> list[list[str | None]]:
        """Return the partitions launched by each of some ticks."""
        return [self.tick() for _ in range(number)]

    def tick(self) -> list[str | None]:
        context = dg.build_sensor_context(self.instance, cursor=self.cursor, repository_def=self.repository)
        data = self.sensor.evaluate_tick(context)
        self.cursor = data.cursor
        self.skipped = data.skip_message or ""
        requests = data.run_requests or []
        self.run_keys += [request.run_key for request in requests]
        return [request.partition_key for request in requests]

    def ingest(self, *tables: str) -> None:
        for table in tables:
            record(self.instance, self.catalogue, "raw_table", table)


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    """Two tables that were ingested, and a sensor that has seen them."""
    made = Watch(toy_catalogue(tmp_path, "adult", "bank"))
    made.ingest("adult", "bank")
    assert made.ticks(3) == [[], [], []]
    yield made
    made.instance.dispose()


def write(folder: Path, table: str, text: str) -> None:
    (folder / f"{table}.csv").write_text(text)


def test_new_sources_are_launched_once_each(tmp_path: Path) -> None:
    watch = Watch(toy_catalogue(tmp_path, "adult", "bank"))
    assert watch.sensor.default_status == dg.DefaultSensorStatus.STOPPED
    assert watch.ticks(4) == [[], ["adult", "bank"], [], []]
    assert len(set(watch.run_keys)) == 2


def test_a_changed_source_launches_just_its_partition(watch: Watch, tmp_path: Path) -> None:
    for text in ("x,y\nbank,1\nbank,0\n", "x,y\nbank,2\n"):
        write(tmp_path, "bank", text)
        assert watch.ticks(4) == [[], ["bank"], [], []]


def test_a_touched_file_launches_nothing_and_is_read_once(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(tmp_path / "bank.csv", ns=(0, 1))
    assert watch.ticks(2) == [[], []]
    monkeypatch.setattr("c2tc_pipeline.sources.csv_files.CsvSource.digest", lambda source: pytest.fail("read"))
    assert watch.ticks(2) == [[], []]


def test_a_file_that_still_grows_is_waited_for(watch: Watch, tmp_path: Path) -> None:
    for rows in range(1, 4):
        write(tmp_path, "bank", "x,y\n" + "half,1\n" * rows)
        assert watch.tick() == []
    assert watch.ticks(2) == [["bank"], []]


def test_a_source_that_cannot_be_read_does_not_delay_the_others(watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "adult.csv").unlink()
    write(tmp_path, "bank", "x,y\nnew,1\n")
    assert watch.ticks(3) == [[], ["bank"], []]
    assert watch.skipped.startswith("adult: ")
    write(tmp_path, "adult", "x,y\nback,1\n")
    assert watch.ticks(3) == [[], ["adult"], []]


def test_a_return_to_earlier_bytes_is_a_delivery_of_its_own(watch: Watch, tmp_path: Path) -> None:
    for text in ("x,y\nB,1\n", "x,y\nbank,1\n", "x,y\nB,1\n"):
        write(tmp_path, "bank", text)
        assert watch.ticks(2) == [[], ["bank"]]
        watch.ingest("bank")
    assert len(set(watch.run_keys)) == 3


def test_a_delivery_keeps_its_key_when_the_cursor_is_lost(watch: Watch, tmp_path: Path) -> None:
    write(tmp_path, "bank", "x,y\nnew,1\n")
    assert watch.ticks(2) == [[], ["bank"]]
    watch.cursor = None
    assert watch.ticks(2) == [[], ["bank"]]
    assert len(set(watch.run_keys)) == 1


def test_a_source_on_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3_server: S3Server) -> None:
    filesystem = fsspec.get_filesystem_class("s3")
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    filesystem.clear_instance_cache()
    files = fsspec.filesystem("s3", **vars(s3_server.access), skip_instance_cache=True)
    here, absent = (f"s3://{BUCKET}/{uuid.uuid4().hex}/t.csv" for _ in range(2))
    files.pipe_file(here, b"x,y\n1,1\n")
    sources = {"here": here, "absent": absent}
    specs = {name: TableSpec(name=name, source=source, label="y") for name, source in sources.items()}
    watch = Watch(Catalogue(tmp_path / "catalog.yaml", specs))
    assert watch.ticks(2) == [[], ["here"]]
    watch.ingest("here")
    # Put again with the same bytes, then with others.
    files.pipe_file(here, b"x,y\n1,1\n")
    assert watch.ticks(2) == [[], []]
    assert absent in watch.skipped
    files.pipe_file(here, b"x,y\n1,0\n")
    assert watch.ticks(3) == [[], ["here"], []]
    filesystem.clear_instance_cache()
    assert SECRET not in f"{watch.cursor}{watch.run_keys}"


def test_the_interval_of_a_sensor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(INTERVAL_VARIABLE, raising=False)
    assert failure_sensor().minimum_interval_seconds == FAILURE_INTERVAL_SECONDS
    monkeypatch.setenv(INTERVAL_VARIABLE, " 600 ")
    assert failure_sensor().minimum_interval_seconds == 600
    for wrong in ("soon", "0", "-5", "1.5", "\u0663"):
        monkeypatch.setenv(INTERVAL_VARIABLE, wrong)
        with pytest.raises(InputError, match=INTERVAL_VARIABLE):
            failure_sensor()


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with running_webhook(f"hooks/{CANARY}") as webhook:
        yield webhook


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensors, "WEBHOOK_PAUSE_SECONDS", 0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in ("C2TC_WEBHOOK_URL", "C2TC_UI_URL"):
        monkeypatch.delenv(name, raising=False)


def fail(
    error: Exception | None, instance: dg.DagsterInstance, partition: str = "flights"
) -> dg.ExecuteInProcessResult:
    @dg.asset(partitions_def=dg.StaticPartitionsDefinition(["flights", "flights|0.001"]))
    def raw_table() -> int:
        if error is not None:
            raise error
        return 1

    @dg.asset_check(asset=raw_table, blocking=True)
    def schema() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=error is not None, metadata={"cell": CANARY})

    jobs, resources = [dg.define_asset_job("ingest_job")], {"io_manager": dg.mem_io_manager}
    defs = dg.Definitions([raw_table], jobs=jobs, asset_checks=[schema], resources=resources)
    return defs.resolve_job_def("ingest_job").execute_in_process(
        instance=instance, partition_key=partition, raise_on_error=False
    )


def skip_message(error: Exception | None = None, partition: str = "flights") -> str | None:
    """Let a run fail, and return what the sensor says about the post."""
    with dg.DagsterInstance.ephemeral() as instance:
        result = fail(error, instance, partition)
        assert not result.success
        context = dg.build_run_status_sensor_context(
            sensor_name="failure_sensor",
            dagster_event=result.get_run_failure_event(),
            dagster_instance=instance,
            dagster_run=result.dagster_run,
        ).for_run_failure()
        said = failure_sensor()(context)
    assert said is None or isinstance(said, dg.SkipReason)
    return said.skip_message if said else None


def test_what_is_posted(webhook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("C2TC_WEBHOOK_URL", webhook.url)
    monkeypatch.setenv("C2TC_UI_URL", f"https://me:{CANARY}@dagster.example.org/")
    assert skip_message(InputError("There is no column 'income'; choose another."), "flights|0.001") is None
    [message] = webhook.received
    run_id = message.pop("run_id")
    assert message == {
        "text": "ingest_job failed for flights|0.001: There is no column 'income'; choose another.",
        "job": "ingest_job",
        "partition": "flights|0.001",
        "table": "flights",
        "ratio": 0.001,
        "step": "raw_table",
        "error": "There is no column 'income'; choose another.",
        "link": f"https://dagster.example.org/runs/{run_id}",
    }


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (dg.Failure("The disk is full.\nmore", metadata={"cell": CANARY}), "The disk is full."),
        (RuntimeError(f"GET https://host/{CANARY} failed"), "The step failed with RuntimeError; see its log."),
        (None, "1 blocking asset check failed with ERROR severity: raw_table: schema"),
        (InputError("x" * 2000), "x" * 497 + "..."),
    ],
    ids=["failure", "unexpected", "check", "long"],
)
def test_only_one_sentence_meant_for_people_is_posted(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch, error: Exception | None, sentence: str
) -> None:
    monkeypatch.setenv("C2TC_WEBHOOK_URL", webhook.url)
    assert skip_message(error) is None
    [message] = webhook.received
    assert (message["error"], message["ratio"], message["link"]) == (sentence, None, None)
    assert CANARY not in json.dumps(message)


def test_nothing_is_posted_without_the_variable(webhook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("C2TC_WEBHOOK_URL", " ")
    assert failure_sensor().default_status == dg.DefaultSensorStatus.RUNNING
    assert skip_message(InputError("Wrong."))
    assert webhook.paths == []


@pytest.mark.parametrize(
    ("answers", "posts", "problem"),
    [
        ([500, 503], 3, None),
        ([429], 2, None),
        ([500] * 9, 3, "it answered 500"),
        ([404], 1, "it answered 404"),
        ([302], 1, "it answered 302"),
    ],
)
def test_retries_only_where_they_may_help(
    webhook: Webhook, answers: list[int], posts: int, problem: str | None
) -> None:
    webhook.answers += answers
    assert post_json(webhook.url, {"text": "hello"}) == problem
    assert len(webhook.paths) == posts
    assert len(webhook.received) == (problem is None)


@pytest.fixture
def ports() -> Iterator[dict[str, int]]:
    """A port that takes connections and never answers, and a closed one."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            found = {"silent": silent.getsockname()[1], "closed": closed.getsockname()[1]}
        yield found


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("http://127.0.0.1:{closed}/{canary}", "ConnectionRefusedError"),
        ("http://127.0.0.1:{silent}/{canary}", "TimeoutError"),
        ("http://127.0.0.1:{closed}/{canary} b", "InvalidURL"),
        ("http://127.0.0.1:{canary}/", "InvalidURL"),
        ("http://[{canary}/", "not a valid one"),
        ("http:///{canary}", "could not be reached"),
        ("file:///etc/{canary}", "does not begin with http"),
        ("{canary}", "does not begin with http"),
    ],
)
def test_a_dead_webhook_is_reported_without_its_address(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    ports: dict[str, int],
    address: str,
    problem: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(sensors, "WEBHOOK_TIMEOUT_SECONDS", 0.05)
    said = post_json(address.format(**ports, canary=CANARY), {"text": "hello"}) or ""
    assert problem in said
    assert CANARY not in said + caplog.text + "".join(capfd.readouterr())


def test_the_sensor_goes_on_after_a_dead_webhook(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch, ports: dict[str, int]
) -> None:
    """The whole tick, as the daemon runs it: a failure that could not be posted is passed, the next one is posted."""
    sensor = failure_sensor()
    with dg.DagsterInstance.ephemeral() as instance:

        def tick(cursor: str | None) -> str | None:
            data = sensor.evaluate_tick(dg.build_sensor_context(instance=instance, cursor=cursor))
            assert CANARY not in repr(data)
            return data.cursor

        cursor = tick(None)
        monkeypatch.setenv("C2TC_WEBHOOK_URL", f"http://127.0.0.1:{ports['closed']}/{CANARY}")
        fail(InputError("First."), instance)
        cursor = tick(cursor)
        monkeypatch.setenv("C2TC_WEBHOOK_URL", webhook.url)
        fail(InputError("Second."), instance)
        tick(tick(cursor))
    assert [message["error"] for message in webhook.received] == ["Second."]
