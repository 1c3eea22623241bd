"""Alerts: which events of an instance become messages, once, and how they are delivered by real servers."""

# No postponed annotations here: Dagster compares that of a context with the class itself.
import json
import logging
import socket
import socketserver
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from typing import Any

import dagster as dg
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline import alerts as alerts_module
from c2tc_pipeline.pipeline import messages
from c2tc_pipeline.pipeline.alerts import Alerts, Place, alert_sensor, place_of, report
from c2tc_pipeline.pipeline.io_managers import without_retry
from c2tc_pipeline.pipeline.messages import send, targets
from c2tc_pipeline.pipeline.versioning import TableStep
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline_tests.pipeline.live import Webhook, running_webhook
from c2tc_pipeline_tests.tools.serving import serving

CANARY = "canary-token-91ce"
RATIOS = dg.StaticPartitionsDefinition(["0.01", "0.001"])

pytestmark = pytest.mark.usefixtures("quick_messages")


@pytest.fixture
def webhook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    with running_webhook(f"hooks/{CANARY}") as webhook:
        monkeypatch.setenv("C2TC_WEBHOOK_URL", webhook.url)
        yield webhook


class Operation:
    """An instance, tables whose steps do what the test says, and the alert sensor, tick by tick."""

    def __init__(self, catalogue: dict[str, TableSpec] | None = None) -> None:
        self.instance = dg.DagsterInstance.ephemeral()
        self.outcomes: dict[str, BaseException | str | None] = {}
        self.sensor = alert_sensor(catalogue)
        self.cursor: str | None = None
        self.said = ""
        self.tick()

    def tick(self) -> None:
        data = self.sensor.evaluate_tick(dg.build_sensor_context(self.instance, cursor=self.cursor))
        self.cursor, self.said = data.cursor, data.skip_message or ""
        assert CANARY not in repr(data)

    def run(self, table: str, step: str = "raw_table", ratio: str | None = None, **tags: str) -> dg.DagsterRun:
        """Run a step of a table; its outcome is an error, the words of a check that fails, or a success."""
        outcome = self.outcomes.get(f"{table}/{step}")

        @dg.asset(key=TableStep(table, step, None if ratio is None else float(ratio)).key)
        def made() -> int:
            if isinstance(outcome, BaseException):
                raise outcome
            return 1

        def checked(name: str, blocking: bool) -> dg.AssetChecksDefinition:
            @dg.asset_check(asset=made, name=name, blocking=blocking)
            def check() -> dg.AssetCheckResult:
                severity = dg.AssetCheckSeverity.ERROR if blocking else dg.AssetCheckSeverity.WARN
                passed = not (isinstance(outcome, str) and outcome.startswith(name))
                return dg.AssetCheckResult(
                    passed=passed, severity=severity, description=str(outcome), metadata={"cell": CANARY}
                )

            return check

        checks = [checked("fits_schema", True), checked("label_drift", False), checked("near_bound", False)]
        defs = dg.Definitions(
            [made], asset_checks=checks, jobs=[dg.define_asset_job("job")], resources={"io_manager": dg.mem_io_manager}
        )
        result = defs.resolve_job_def("job").execute_in_process(instance=self.instance, raise_on_error=False, tags=tags)
        return result.dagster_run

    def lose(self, message: str | None = None, **tags: str) -> None:
        """Let a run end from outside, as when its process was killed."""
        run = self.instance.create_run_for_job(
            dg.Definitions(
                [dg.asset(key=["adult", "raw_table"])(lambda: 1)], jobs=[dg.define_asset_job("job")]
            ).resolve_job_def("job"),
            status=dg.DagsterRunStatus.STARTED,
            tags=tags,
        )
        self.instance.report_run_failed(run, message)


@pytest.fixture
def operation() -> Operation:
    return Operation()


def spec(name: str, **fields: Any) -> TableSpec:
    return TableSpec(name=name, source=f"{name}.csv", label="y", **fields)


def told(webhook: Webhook) -> list[tuple[str, str]]:
    return [(message["text"], message["problem"]) for message in webhook.received]


def test_table_and_ratio_of_every_form_of_assets() -> None:
    assert place_of(dg.AssetKey(["adult", "report"])) == Place("adult", "report", None)
    condensed = [dg.AssetKey(["adult", f"condensed_table_{part}"]) for part in ("0_001", "1")]
    assert place_of(condensed[0]) == Place("adult", "condensed_table", "0.001")
    assert place_of(condensed[1], "near") == Place("adult", "condensed_table", "1", "near")
    assert place_of(dg.AssetKey("leaderboard")) == Place(None, "leaderboard", None)


def test_one_message_for_a_cause_and_one_when_it_is_over(
    operation: Operation, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("C2TC_UI_URL", f"https://me:{CANARY}@dagster.example.org/")
    operation.run("adult", "condensed_table", "0.01")
    operation.outcomes["adult/raw_table"] = "fits_schema: column 'age' fails 'number' in 12 values ('x', 'y')"
    first = operation.run("adult")
    operation.tick()
    operation.run("adult")
    operation.tick()
    [message] = webhook.received
    assert message["problem"] == operation.outcomes["adult/raw_table"]
    assert (message["tables"], message["step"], message["check"]) == (["adult"], "raw_table", "fits_schema")
    assert message["link"] == f"https://dagster.example.org/runs/{first.run_id}"
    assert "stays in force" in message["lines"][-1]
    operation.outcomes.clear()
    operation.run("adult")
    operation.tick()
    operation.tick()
    assert [each["state"] for each in webhook.received] == ["failing", "over"]
    assert webhook.received[1]["since"] == message["since"]


def test_another_problem_of_the_same_cause_is_another_message_with_the_same_beginning(
    operation: Operation, webhook: Webhook
) -> None:
    for problem in ("The disk is full.", "The table has no rows."):
        operation.outcomes["adult/raw_table"] = InputError(problem)
        operation.run("adult")
        operation.tick()
    assert [problem for _, problem in told(webhook)] == ["The disk is full.", "The table has no rows."]
    assert len({message["since"] for message in webhook.received}) == 1


def test_ratios_and_tables_with_the_same_problem_share_a_message(operation: Operation, webhook: Webhook) -> None:
    for table in ("adult", "bank"):
        operation.outcomes[f"{table}/condensed_table"] = InputError("The bucket can't be reached.")
        for ratio in ("0.01", "0.001"):
            operation.run(table, "condensed_table", ratio)
    operation.tick()
    [message] = webhook.received
    assert (message["tables"], message["ratios"]) == (["adult", "bank"], [0.001, 0.01])
    operation.outcomes.clear()
    operation.run("adult", "condensed_table", "0.01")
    operation.tick()
    assert len(webhook.received) == 1
    operation.run("adult", "condensed_table", "0.001")
    operation.tick()
    assert [(each["state"], each["tables"]) for each in webhook.received[1:]] == [("over", ["adult"])]


@pytest.mark.parametrize(("check", "level"), [("label_drift", "warning"), ("near_bound", None)])
def test_only_warnings_that_matter_are_told(
    operation: Operation, webhook: Webhook, check: str, level: str | None
) -> None:
    operation.outcomes["adult/raw_table"] = f"{check}: moved by 0.4"
    assert operation.run("adult").is_success
    operation.tick()
    assert [message["level"] for message in webhook.received] == ([level] if level else [])


def test_a_lost_run_is_told_after_its_last_retry(operation: Operation, webhook: Webhook) -> None:
    operation.lose(**{"dagster/will_retry": "true"})
    operation.tick()
    assert webhook.received == []
    operation.lose(**{"dagster/will_retry": "false"})
    operation.tick()
    [(text, problem)] = told(webhook)
    assert text.startswith("adult: raw_table")
    assert "process of the run was lost" in problem
    operation.run("adult")
    operation.tick()
    assert [message["state"] for message in webhook.received] == ["failing", "over"]


def test_a_run_that_a_sensor_launches_again_is_not_told_but_a_refused_delivery_is(
    operation: Operation, webhook: Webhook
) -> None:
    operation.outcomes["adult/raw_table"] = InputError("The bucket can't be reached.")
    operation.run("adult", **{alerts_module.RETRY_TAG: "true"})
    operation.tick()
    assert webhook.received == []
    operation.outcomes["adult/raw_table"] = "fits_schema: column 'age' is absent"
    operation.run("adult", **{alerts_module.RETRY_TAG: "true"})
    operation.tick()
    assert [message["check"] for message in webhook.received] == ["fits_schema"]


def test_a_failure_waits_for_the_decision_on_its_retry(
    operation: Operation, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dg.DagsterInstance, "run_retries_enabled", True)
    monkeypatch.setattr(dg.DagsterInstance, "add_run_tags", lambda *_: None)
    operation.lose()
    operation.tick()
    assert webhook.received == []
    monkeypatch.setattr(alerts_module, "_DECISION_SECONDS", 0.0)
    operation.tick()
    assert len(webhook.received) == 1


def test_canceled_and_interrupted_runs_are_no_failures(operation: Operation, webhook: Webhook) -> None:
    operation.outcomes["adult/raw_table"] = dg.DagsterExecutionInterruptedError()
    operation.run("adult")
    job = dg.Definitions(jobs=[dg.GraphDefinition("job").to_job()]).resolve_job_def("job")
    operation.instance.report_run_canceled(
        operation.instance.create_run_for_job(job, status=dg.DagsterRunStatus.CANCELING)
    )
    operation.tick()
    assert webhook.received == []


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (dg.Failure("The disk is full.\nmore", metadata={"cell": CANARY}), "The disk is full."),
        (RuntimeError(f"GET https://host/{CANARY} failed"), "RuntimeError"),
        (InputError("x" * 2000), "x" * 497 + "..."),
    ],
    ids=["failure", "unexpected", "long"],
)
def test_only_one_sentence_meant_for_people_is_told(
    operation: Operation, webhook: Webhook, error: Exception, sentence: str
) -> None:
    operation.outcomes["adult/raw_table"] = error
    operation.run("adult")
    operation.tick()
    [(_, problem)] = told(webhook)
    assert sentence in problem
    assert "\n" not in problem
    assert len(problem) <= 500
    assert CANARY not in json.dumps(webhook.received)


def test_what_is_not_delivered_is_sent_later_and_in_order(
    operation: Operation, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mail_server() as mail:
        monkeypatch.setenv("C2TC_SMTP_URL", mail.url)
        monkeypatch.setenv("C2TC_MAIL_TO", "ops@example.org")
        operation.outcomes["adult/raw_table"] = InputError("First.")
        operation.run("adult")
        webhook.answers += [500] * messages.TRIES
        operation.tick()
        assert "it answered 500" in operation.said
        assert webhook.received == []
        operation.outcomes.clear()
        operation.run("adult")
        operation.tick()
        assert [message["state"] for message in webhook.received] == ["failing", "over"]
        assert len(mail.received) == 2


def test_a_refused_delivery_is_one_cause(operation: Operation, webhook: Webhook) -> None:
    refusal = "fits_schema: column 'age' is absent"
    operation.outcomes |= {"adult/raw_table": refusal, "adult/validated_table": InputError(refusal)}
    operation.run("adult")
    operation.run("adult", "validated_table")
    operation.tick()
    assert [message["check"] for message in webhook.received] == ["fits_schema"]
    operation.outcomes["adult/validated_table"] = InputError("The disk is full.")
    operation.run("adult", "validated_table")
    operation.tick()
    assert [problem for _, problem in told(webhook)] == [refusal, "The disk is full."]


def test_a_mistake_is_told_at_once_although_a_sensor_looks_after_the_run(
    operation: Operation, webhook: Webhook
) -> None:
    with pytest.raises(dg.Failure) as mistake, without_retry():
        raise InputError("The label column 'y' is absent.")
    operation.outcomes["adult/validated_table"] = mistake.value
    operation.run("adult", "validated_table", **{alerts_module.RETRY_TAG: "true"})
    operation.tick()
    assert [problem for _, problem in told(webhook)] == ["The label column 'y' is absent."]


def test_causes_of_removed_tables_and_ratios_are_closed(webhook: Webhook) -> None:
    tables = {"adult": spec("adult", ratios=(0.1, 0.01)), "bank": spec("bank")}
    operation = Operation(tables)
    for name in ("adult", "bank"):
        operation.outcomes[f"{name}/condensed_table"] = InputError(f"Wrong {name}.")
    operation.run("adult", "condensed_table", "0.1")
    operation.run("bank", "condensed_table", f"{tables['bank'].ratios[0]}")
    operation.tick()
    assert len(webhook.received) == 2
    operation.sensor = alert_sensor({"adult": spec("adult", ratios=(0.01,))})
    operation.tick()
    operation.tick()
    closed = webhook.received[2:]
    assert [(each["state"], each["tables"]) for each in closed] == [("over", ["adult"]), ("over", ["bank"])]
    assert all("no longer in the catalogue" in each["text"] for each in closed)
    assert "Open causes: none." in operation.said


def test_a_table_that_a_sensor_does_not_look_at_any_more_is_closed(webhook: Webhook) -> None:
    source = Place("adult", "raw_table", None, "source")
    state = None
    with dg.DagsterInstance.ephemeral() as instance:
        for problems in ({source: "It is gone."}, {source: "It is gone."}, {}, {}):
            state = report(instance, state, problems)
    assert [message["state"] for message in webhook.received] == ["failing", "over"]


def test_the_cursor_stays_bounded() -> None:
    alerts = Alerts()
    with dg.DagsterInstance.ephemeral() as instance:
        for number in range(alerts_module.MAX_OPEN + 50):
            alerts.fail(Place(f"table{number}", "raw_table", None), f"Problem {number}.", since=1.0)
        alerts.write(instance, ["webhook"])
    state = alerts.dump()
    assert (len(state["open"]), len(state["outbox"])) == (alerts_module.MAX_OPEN, alerts_module.MAX_UNDELIVERED)
    assert Alerts(json.loads(json.dumps(state))).dump() == state


def test_late_assets_are_told_once_and_when_they_are_made_again(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = Operation({"adult": spec("adult", fresh_within="26h")})
    operation.run("adult", "validated_table")
    operation.tick()
    assert webhook.received == []
    clock = time.time
    monkeypatch.setattr(alerts_module.time, "time", lambda: clock() + 27 * 3600)
    operation.tick()
    operation.run("adult")  # a delivery that is refused, or not yet accepted, is not fresh
    operation.tick()
    [(text, problem)] = told(webhook)
    assert text.startswith("adult: validated_table, check freshness")
    assert "26 hours" in problem
    monkeypatch.setattr(alerts_module.time, "time", clock)
    operation.run("adult", "validated_table")
    operation.tick()
    assert [message["state"] for message in webhook.received] == ["failing", "over"]


def test_what_a_sensor_finds_wrong_is_told_once_it_is_certain(webhook: Webhook) -> None:
    source, other = (Place(table, "raw_table", None, "source") for table in ("adult", "bank"))
    gone: dict[Place, str | None] = {source: "The file adult.csv does not exist.", other: None}
    well: dict[Place, str | None] = {source: None, other: None}
    state = None
    with dg.DagsterInstance.ephemeral() as instance:
        for problems, told_so_far in ((gone, 0), (well, 0), (gone, 0), (gone, 1), (gone, 1), (well, 2), (well, 2)):
            state = json.loads(json.dumps(report(instance, state, problems)))
            assert len(webhook.received) == told_so_far
    assert [message["state"] for message in webhook.received] == ["failing", "over"]
    assert webhook.received[0]["problem"] == gone[source]


MESSAGE = {"text": "adult: raw_table fails", "lines": ["<@everyone> & more"], "link": "https://ui.example.org/runs/1"}


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
    assert send(targets()["webhook"], MESSAGE) == problem
    assert len(webhook.paths) == posts
    assert len(webhook.received) == (problem is None)


def test_slack_gets_its_format_and_mentions_nobody(webhook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("C2TC_WEBHOOK_FORMAT", "slack")
    assert send(targets()["webhook"], MESSAGE) is None
    [payload] = webhook.received
    assert set(payload) == {"text"}
    assert "<@" not in payload["text"]
    assert "<https://ui.example.org/runs/1|" in payload["text"]
    monkeypatch.setenv("C2TC_WEBHOOK_FORMAT", "teams")
    with pytest.raises(InputError, match="C2TC_WEBHOOK_FORMAT"):
        targets()


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
        ("smtp://u:{canary}@127.0.0.1:{closed}", "ConnectionRefusedError"),
        ("smtp://u:{canary}@127.0.0.1:{silent}", "could not be reached"),
        ("smtp://u:{canary}@127.0.0.1:x", "not a valid one"),
        ("smpt://u:{canary}@127.0.0.1:{closed}", "smtp://host:port"),
    ],
)
def test_a_dead_target_is_reported_without_its_address(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    ports: dict[str, int],
    address: str,
    problem: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(messages, "TIMEOUT_SECONDS", 0.05)
    is_mail = address.startswith("sm")
    monkeypatch.setenv("C2TC_SMTP_URL" if is_mail else "C2TC_WEBHOOK_URL", address.format(**ports, canary=CANARY))
    monkeypatch.setenv("C2TC_MAIL_TO", "ops@example.org")
    said = send(targets()["mail" if is_mail else "webhook"], MESSAGE) or ""
    assert problem in said
    assert CANARY not in said + caplog.text + "".join(capfd.readouterr())


@dataclass
class MailServer:
    """An SMTP server that keeps what it receives, answers DATA with these codes first, and offers no encryption."""

    url: str
    answers: list[str] = field(default_factory=list)
    received: list[bytes] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """Serve SMTP on the loopback."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.say("220 here")
            while line := self.rfile.readline().decode().strip():
                kept.commands.append(line)
                match line.split()[0].upper():
                    case "EHLO":
                        self.say("250-here\r\n250 AUTH PLAIN")
                    case "DATA":
                        self.say("354 go on")
                        content = b"".join(iter(self.rfile.readline, b".\r\n"))
                        answer = kept.answers.pop(0) if kept.answers else "250 kept"
                        if answer.startswith("250"):
                            kept.received.append(content)
                        self.say(answer)
                    case "QUIT":
                        self.say("221 bye")
                    case _:
                        self.say("250 well")

        def say(self, line: str) -> None:
            self.wfile.write(line.encode() + b"\r\n")

    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)) as port:
        kept = MailServer(f"smtp://127.0.0.1:{port}")
        yield kept


def test_mail_arrives_with_subject_recipients_and_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("C2TC_MAIL_TO", "ops@example.org, night@example.org")
    monkeypatch.setenv("C2TC_MAIL_FROM", "c2tc@example.org")
    with mail_server() as server:
        monkeypatch.setenv("C2TC_SMTP_URL", server.url)
        server.answers += ["451 try later"]
        assert send(targets()["mail"], MESSAGE) is None
        server.answers += ["554 no"]
        assert send(targets()["mail"], MESSAGE) == "it answered 554"
        # A password is not sent in the clear.
        monkeypatch.setenv("C2TC_SMTP_URL", server.url.replace("//", f"//ops:{CANARY}@"))
        assert "no encryption" in (send(targets()["mail"], MESSAGE) or "")
    assert not any("AUTH" in command for command in server.commands)
    [content] = server.received
    mail = message_from_bytes(content, policy=policy.default)
    assert (mail["subject"], mail["from"]) == (MESSAGE["text"], "c2tc@example.org")
    assert mail["to"] == "ops@example.org, night@example.org"
    assert mail.get_content().splitlines()[-1] == MESSAGE["link"]


def test_mail_without_recipients_is_a_mistake(monkeypatch: pytest.MonkeyPatch, operation: Operation) -> None:
    monkeypatch.setenv("C2TC_SMTP_URL", "smtp://127.0.0.1:1")
    operation.tick()
    assert "C2TC_MAIL_TO" in operation.said
