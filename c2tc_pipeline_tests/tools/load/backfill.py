"""A backfill of many partitions through the real queue: how fast, and never more runs at once than allowed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import dagster as dg

from c2tc_pipeline.pipeline.jobs import UNFINISHED
from c2tc_pipeline_tests.pipeline.live import Dashboard, Site

_LAUNCH = """mutation($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) { __typename
    ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
_AT_WORK = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]


@dataclass
class Progress:
    """What became of a backfill.

    Parameters
    ----------
    wanted : int
        Partitions of it.
    queued_after : float or None
        Seconds until each had its run in the queue.
    most_at_once : int
        Runs at work at the same time, at most.
    ended : Counter
        Runs by their last state.
    seconds : float
        How long it was watched.
    """

    wanted: int
    queued_after: float | None = None
    most_at_once: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def per_minute(self) -> float:
        """Runs that succeeded in a minute."""
        return 60.0 * self.ended["SUCCESS"] / self.seconds


def backfill(site: Site, dashboard: Dashboard, assets: Sequence[str], keys: Sequence[str], longest: float) -> Progress:
    """Launch partitions of some assets, and watch until all have ended or the time is up; what is left is cancelled.

    The site's daemon must be running.

    Parameters
    ----------
    site, dashboard : Site, Dashboard
        Where.
    assets, keys : sequence of str
        What.
    longest : float
        Seconds.
    """
    answer = dashboard.ask(
        _LAUNCH,
        params={"assetSelection": [{"path": [asset]} for asset in assets], "partitionNames": list(keys)},
    )["launchPartitionBackfill"]
    assert answer["__typename"] == "LaunchBackfillSuccess", answer
    identity = answer["backfillId"]
    chosen = {"dagster/backfill": identity}
    told = Progress(len(keys))
    began = time.monotonic()
    while True:
        told.seconds = time.monotonic() - began
        states = Counter(run.status for run in site.instance.get_runs(dg.RunsFilter(tags=chosen)))
        if states.total() == len(keys) and told.queued_after is None:
            told.queued_after = told.seconds
        told.most_at_once = max(told.most_at_once, sum(states[state] for state in _AT_WORK))
        done = states.total() == len(keys) and not any(states[state] for state in UNFINISHED)
        if done or told.seconds > longest:
            break
        # All runs are read each time, on the machine that has them to make.
        time.sleep(2)
    if not done:
        _cancel(site, dashboard, identity)
    told.ended = Counter(run.status.value for run in site.instance.get_runs(dg.RunsFilter(tags=chosen)))
    return told


def _cancel(site: Site, dashboard: Dashboard, identity: str) -> None:
    """Cancel a backfill with its queued runs, and wait for those that are at work."""
    dashboard.ask(
        "mutation($id: String!) { cancelPartitionBackfill(backfillId: $id) { __typename } }",
        id=identity,
    )
    site.wait_until(lambda: not site.runs(*UNFINISHED))
