"""Failed runs told to a webhook: a real server on the loopback, and everything that can be wrong with one."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import dagster as dg
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline import webhook
from c2tc_pipeline.pipeline.sensors import failure_sensor

CANARY = "canary-token-91ce"


@dataclass
class Receiver:
    """A webhook that keeps what it gets, and answers as told."""

    port: int
    answers: list[int] = field(default_factory=list)
    received: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks/{CANARY}"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.paths.append(self.path)
            code = kept.answers.pop(0) if kept.answers else 200
            if code == 200:
                kept.received.append(json.loads(body))
            self.send_response(code)
            if code == 302:
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def do_GET(self) -> None:
            kept.paths.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        kept = Receiver(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield kept
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "PAUSE_SECONDS", 0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in ("C2TC_WEBHOOK_URL", "C2TC_UI_URL"):
        monkeypatch.delenv(name, raising=False)


def fail(
    error: Exception | None, instance: dg.DagsterInstance, partition: str = "flights"
) -> dg.ExecuteInProcessResult:
    partitions = dg.StaticPartitionsDefinition(["flights", "flights|0.001"])

    @dg.asset(partitions_def=partitions)
    def raw_table() -> int:
        if error is not None:
            raise error
        return 1

    @dg.asset_check(asset=raw_table, blocking=True)
    def schema() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=error is not None, metadata={"cell": CANARY})

    job = dg.define_asset_job("ingest_job")
    resources = {"io_manager": dg.mem_io_manager}
    defs = dg.Definitions([raw_table], jobs=[job], asset_checks=[schema], resources=resources)
    return defs.resolve_job_def("ingest_job").execute_in_process(
        instance=instance, partition_key=partition, raise_on_error=False
    )


def tell(error: Exception | None = None, partition: str = "flights") -> dg.SkipReason | None:
    """Let a run fail and the sensor tell of it."""
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
    return said


def test_what_is_posted(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("C2TC_WEBHOOK_URL", receiver.url)
    monkeypatch.setenv("C2TC_UI_URL", f"https://me:{CANARY}@dagster.example.org/")
    assert tell(InputError("There is no column 'income'; choose another."), "flights|0.001") is None
    [message] = receiver.received
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
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, error: Exception | None, sentence: str
) -> None:
    monkeypatch.setenv("C2TC_WEBHOOK_URL", receiver.url)
    assert tell(error) is None
    [message] = receiver.received
    assert message["error"] == sentence
    assert message["ratio"] is None
    assert message["link"] is None
    assert CANARY not in json.dumps(message)


@pytest.mark.parametrize("value", [None, "", " "])
def test_off_when_absent(receiver: Receiver, monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is not None:
        monkeypatch.setenv("C2TC_WEBHOOK_URL", value)
    said = tell(InputError("Wrong."))
    assert said is not None
    assert said.skip_message == "C2TC_WEBHOOK_URL is not set, so nothing is sent."
    assert receiver.paths == []


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
def test_tries_again_only_where_that_may_help(
    receiver: Receiver, answers: list[int], posts: int, problem: str | None
) -> None:
    receiver.answers += answers
    assert webhook.post_json(receiver.url, {"text": "hello"}) == problem
    assert len(receiver.paths) == posts
    assert len(receiver.received) == (problem is None)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("http://127.0.0.1:{closed_port}/{canary}", "it could not be reached (ConnectionRefusedError)"),
        ("http://127.0.0.1:{silent_port}/{canary}", "it could not be reached (TimeoutError)"),
        ("http://127.0.0.1:{closed_port}/{canary} b", "it could not be reached (InvalidURL)"),
        ("http://127.0.0.1:{canary}/", "it could not be reached (InvalidURL)"),
        ("http://[{canary}/", "its address is not a valid one"),
        ("http:///{canary}", "it could not be reached (str)"),
        ("file:///etc/{canary}", "its address does not begin with http:// or https://"),
        ("{canary}", "its address does not begin with http:// or https://"),
    ],
)
def test_a_dead_webhook_is_told_of_without_its_address(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    closed_port: int,
    silent_port: int,
    address: str,
    problem: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(webhook, "TIMEOUT_SECONDS", 0.05)
    url = address.format(closed_port=closed_port, silent_port=silent_port, canary=CANARY)
    monkeypatch.setenv("C2TC_WEBHOOK_URL", url)
    said = tell(InputError("Wrong."))
    assert said is not None
    assert said.skip_message is not None
    assert said.skip_message.endswith(f"was not told to the webhook: {problem}.")
    assert CANARY not in said.skip_message + caplog.text + "".join(capfd.readouterr())


def test_the_daemon_goes_on_after_a_dead_webhook(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    """The whole tick, as the daemon runs it: the failure that could not be told is passed, the next one is told."""
    sensor = failure_sensor()
    with dg.DagsterInstance.ephemeral() as instance:

        def tick(cursor: str | None) -> str | None:
            context = dg.build_sensor_context(instance=instance, cursor=cursor)
            data = sensor.evaluate_tick(context)
            assert CANARY not in repr(data)
            return data.cursor

        cursor = tick(None)
        monkeypatch.setenv("C2TC_WEBHOOK_URL", f"http://127.0.0.1:{closed_port}/{CANARY}")
        fail(InputError("First."), instance)
        cursor = tick(cursor)
        monkeypatch.setenv("C2TC_WEBHOOK_URL", receiver.url)
        fail(InputError("Second."), instance)
        tick(tick(cursor))
    assert [message["error"] for message in receiver.received] == ["Second."]


def test_it_is_on_without_being_turned_on() -> None:
    assert failure_sensor().default_status == dg.DefaultSensorStatus.RUNNING
