"""The pipeline left to itself: with its sensors on, the real daemon makes what is to be made, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest

from c2tc_pipeline.pipeline.sensors import AUTOMATION_SENSOR as SENSOR_NAME
from c2tc_pipeline.pipeline.versioning import TableStep
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
        site.add(TABLE, mixed_table(400))
        site.run_all()
        with site.running("dagster-daemon", "run", C2TC_WEBHOOK_URL=webhook.url):
            site.call("dagster", "sensor", "start", "--start-all")
            site.wait_for_quiet(SENSORS)
            yield site


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
    site.deliver(TABLE, mixed_table(400).drop(columns="amount"))
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
