"""A day in the life of the pipeline: the real daemon makes what is to be made, and nothing else, whatever happens.

The tests are the events of one day, in their order. Between them no run is left.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.pipeline.jobs import UNFINISHED
from c2tc_pipeline.pipeline.sensors import AUTOMATION_SENSOR as SENSOR_NAME
from c2tc_pipeline.pipeline.versioning import TableStep
from c2tc_pipeline.storage.maintenance import verify_store
from c2tc_pipeline_tests.pipeline.live import TABLE, Site, Webhook, running_webhook
from c2tc_pipeline_tests.tools.made_tables import mixed_table

pytestmark = [pytest.mark.slow, pytest.mark.faults]

SENSORS = ("source_sensor", SENSOR_NAME)
TOKEN = "canary-token-3c8a"


@pytest.fixture(scope="module")
def webhook() -> Iterator[Webhook]:
    with running_webhook(TOKEN) as webhook:
        yield webhook


@pytest.fixture(scope="module")
def site(webhook: Webhook, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site where everything was made before its daemon started."""
    with Site(tmp_path_factory.mktemp("site")) as site:
        site.add(TABLE, people(900))
        site.run_all()
        with site.running("dagster-daemon", "run", C2TC_WEBHOOK_URL=webhook.url):
            site.call("dagster", "sensor", "start", "--start-all")
            site.wait_for_quiet(SENSORS)
            yield site


def people(rows: int, seed: int = 0) -> pd.DataFrame:
    """Return a table from which models learn, so that no check of quality warns."""
    table = mixed_table(rows, seed=seed)
    return table.assign(outcome=np.where(table["age"] > table["age"].median(), "class a", "class b"))


def failed(site: Site) -> list[str]:
    return [run.run_id for run in site.runs(dg.DagsterRunStatus.FAILURE)]


def checked(site: Site, run: dg.DagsterRun) -> set[str]:
    """Return the names of the checks that a run evaluated."""
    return {
        entry.dagster_event.asset_check_evaluation_data.check_name
        for entry in site.instance.all_logs(run.run_id, dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        if entry.dagster_event is not None
    }


def test_what_is_up_to_date_is_left_alone(site: Site, webhook: Webhook) -> None:
    assert set(site.made().values()) == {1}, site.said
    assert webhook.received == []


def test_a_setting_remakes_what_reads_it_while_a_bad_delivery_is_told_and_stops(site: Site, webhook: Webhook) -> None:
    """Both at once; the code location is the daemon's own, which is loaded anew once a minute."""
    made, versions, by_hand = site.made(), site.versions("validated_table", "condensed_table"), len(site.runs())
    site.change(TABLE, evaluation={"seeds": 2, "models": ["boosting"]})
    site.deliver(TABLE, people(900).drop(columns="amount"))
    scores = TableStep(TABLE, "evaluation_scores", 0.1).name
    affected = {f"{TABLE}/raw_table", f"{TABLE}/{scores}", f"{TABLE}/report", "leaderboard", "ops_overview"}
    site.wait_until(lambda: affected <= (site.made() - made).keys() and bool(webhook.received))
    site.wait_for_quiet(SENSORS)
    newly = site.made() - made
    assert newly.pop("ops_overview") <= 2, "with the leaderboard, and once more if the failure came later"
    assert newly == dict.fromkeys(affected - {"ops_overview"}, 1), site.said
    assert site.versions("validated_table", "condensed_table") == versions
    [message] = webhook.received
    assert (message["tables"], message["step"], message["check"]) == ([TABLE], "raw_table", "fits_schema")
    assert "column 'amount' is absent" in message["problem"]
    assert failed(site) == [message["run_id"]]
    assert TOKEN not in site.said
    launched = site.runs()[:-by_hand]
    scored = {"accurate_enough", "steady_quality"}
    assert set().union(*(checked(site, run) for run in launched)) == {"fits_schema", "label_drift", *scored}
    jobs = [run.job_name for run in launched if run.asset_selection != {TableStep("", "ops_overview").key}]
    assert sorted(jobs) == ["condense_job", "leaderboard_job", "report_job"]


def states(webhook: Webhook, *, after: int = 0) -> list[tuple[str | None, str]]:
    """Return the step or cause and the state of each message, the oldest first."""
    return [(message["step"], message["state"]) for message in webhook.received[after:]]


def wait_for_messages(site: Site, webhook: Webhook, count: int) -> None:
    site.wait_until(lambda: len(webhook.received) >= count)


def test_a_repaired_delivery_is_made_and_its_alert_closed(site: Site, webhook: Webhook) -> None:
    made, told = site.made(), len(webhook.received)
    site.deliver(TABLE, people(1_000))
    everything = {key for key in made if key.startswith(f"{TABLE}/")}
    site.wait_until(lambda: everything <= (site.made() - made).keys())
    site.wait_for_quiet(SENSORS)
    wait_for_messages(site, webhook, told + 1)
    assert states(webhook, after=told) == [("raw_table", "over")]
    assert all((site.made() - made)[key] == 1 for key in everything), site.made() - made


def test_a_deleted_source_is_reported_and_what_was_made_stays(site: Site, webhook: Webhook) -> None:
    made, told, source = site.made(), len(webhook.received), site.folder / f"{TABLE}.parquet"
    source.rename(site.folder / "away.parquet")
    wait_for_messages(site, webhook, told + 1)
    (site.folder / "away.parquet").rename(source)
    wait_for_messages(site, webhook, told + 2)
    site.wait_for_quiet(SENSORS)
    first, second = webhook.received[told:]
    assert (first["state"], second["state"]) == ("failing", "over")
    assert first["tables"] == second["tables"] == [TABLE]
    # The leaderboard of the event before may have been made meanwhile.
    assert {*(site.made() - made)} <= {"leaderboard", "ops_overview"}, "the same bytes are no delivery"


def test_a_broken_catalogue_stops_no_delivery(site: Site, webhook: Webhook) -> None:
    made, told = site.made(), len(webhook.received)
    catalogue = site.folder / "catalog.yaml"
    whole = catalogue.read_text()
    catalogue.write_text(whole.replace("label:", "labl:"))
    wait_for_messages(site, webhook, told + 1)
    site.deliver(TABLE, people(950))
    site.wait_until(lambda: f"{TABLE}/report" in site.made() - made)
    catalogue.write_text(whole)
    wait_for_messages(site, webhook, told + 2)
    site.wait_for_quiet(SENSORS)
    first, second = webhook.received[told:]
    assert (first["state"], second["state"]) == ("failing", "over")
    assert "labl" in first["problem"]


def test_a_new_table_is_made(site: Site, webhook: Webhook) -> None:
    made, told, runs = site.made(), len(webhook.received), len(site.runs())
    site.add("newcomers", people(800, seed=1))
    site.wait_until(lambda: "newcomers/report" in site.made())
    site.wait_for_quiet(SENSORS)
    changed = site.made() - made
    assert {key for key in changed if not key.startswith("newcomers/")} <= {"leaderboard", "ops_overview"}
    assert {count for key, count in changed.items() if key.startswith("newcomers/")} == {1}
    assert len(site.runs()) - runs <= 4, "condense, report, leaderboard, and the overview of an event before"
    assert states(webhook, after=told) == []


def test_a_killed_run_is_made_again(site: Site, webhook: Webhook) -> None:
    made, told = site.made(), len(webhook.received)
    site.deliver(TABLE, people(920))

    def processes() -> list[int]:
        """Return the process ids that the runs under way reported, each run's own before those of its steps."""
        found = []
        for run in site.runs(dg.DagsterRunStatus.STARTED):
            for entry in site.instance.all_logs(run.run_id, dg.DagsterEventType.ENGINE_EVENT):
                event = entry.dagster_event
                if event is not None and event.event_specific_data is not None:
                    metadata = event.engine_event_data.metadata
                    found += [int(str(metadata["pid"].value))] if "pid" in metadata else []
        return found

    site.wait_until(lambda: bool(processes()))
    os.kill(processes()[0], signal.SIGKILL)
    site.wait_until(lambda: f"{TABLE}/report" in site.made() - made)
    site.wait_for_quiet(SENSORS)
    assert len(states(webhook, after=told)) in (0, 2), "no message, or one and that it is over"


def test_nothing_is_left_over_at_the_end_of_the_day(site: Site, webhook: Webhook) -> None:
    # The leaderboard is made when all else has ended.
    site.wait_until(lambda: not site.runs(*UNFINISHED))
    opened: dict[tuple[str, ...], int] = {}
    for message in webhook.received:
        cause = (*message["tables"], str(message["step"]), str(message["check"]))
        opened[cause] = opened.get(cause, 0) + (1 if message["state"] == "failing" else -1)
        assert opened[cause] in (0, 1), f"twice the same alert: {message}"
    assert not any(opened.values()), "an alert is still open"
    assert [found for found in verify_store(site.store) if found.damage] == []
    assert TOKEN not in site.said
