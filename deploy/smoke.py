"""A smoke run: all tables through the whole pipeline on a running stack, launched by its daemon.

The outcome is read from PostgreSQL and from the object store, not from Dagster's own reports.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.maintenance import verify_store
from c2tc_pipeline.storage.store import ArtefactStore
from deploy import probes
from deploy.layout import Layout

_POLL_SECONDS = 1.0
_ASSETS = "{ assetNodes { assetKey { path } partitionKeys isMaterializable } }"
_LAUNCH = """mutation($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) { __typename
    ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
_STATE = """query($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill { status
    error { message } } } }"""
_FAILED_RUNS = """query($id: String!) { runsOrError(filter: {tags: [{key: "dagster/backfill", value: $id}],
    statuses: [FAILURE, CANCELED]}) { ... on Runs { results { runId jobName } } } }"""
_FAILED = ("FAILED", "COMPLETED_FAILED", "CANCELED")

Partitions = dict[str, set[str]]
"""Partition keys by asset, whose path is joined by slashes; the empty key stands for an asset without partitions."""


@dataclass(frozen=True)
class Arrived:
    """Partitions by asset that were materialised since the start, the files verified in the store, and seconds."""

    events: Partitions
    files: int
    seconds: float


def smoke(layout: Layout, patience: float, report: Callable[[str], object]) -> Arrived:
    """Make all assets of a running stack; raise RuntimeError if a run fails or an outcome is missing."""
    newest, since = _newest_event(layout), time.monotonic()
    wanted = partitions_to_make(layout)
    backfill = _launch(layout, wanted)
    report(f"Backfill {backfill} makes {sum(map(len, wanted.values()))} partitions of {len(wanted)} assets.")
    _wait(layout, backfill, patience)
    seconds = time.monotonic() - since
    events = _events(layout, newest)
    missing = [f"{asset} {key}".strip() for asset, keys in wanted.items() for key in keys - events.get(asset, set())]
    if missing:
        raise RuntimeError(f"The backfill succeeded, but PostgreSQL has no event of: {', '.join(missing)}.")
    return Arrived(events, verified_files(layout, sum(map(len, wanted.values()))), seconds)


def partitions_to_make(layout: Layout) -> Partitions:
    """Return the partitions of all assets that the dashboard lists."""
    data = probes.ask(layout, _ASSETS, seconds=60.0)
    if not data:
        raise InputError("The dashboard does not answer; check the stack with: python -m deploy check.")
    return {
        "/".join(node["assetKey"]["path"]): set(node["partitionKeys"]) or {""}
        for node in data["assetNodes"]
        if node["isMaterializable"]
    }


def _launch(layout: Layout, wanted: Partitions) -> str:
    """Ask for a backfill of everything, which the daemon executes in the order of the assets."""
    keys = [{"path": asset.split("/")} for asset in wanted]
    data = probes.ask(layout, _LAUNCH, seconds=60.0, params={"assetSelection": keys, "allPartitions": True})
    answer = data["launchPartitionBackfill"] if data else {"__typename": "no answer"}
    if answer["__typename"] != "LaunchBackfillSuccess":
        raise RuntimeError(f"The backfill was refused: {answer}")
    return str(answer["backfillId"])


def _wait(layout: Layout, backfill: str, patience: float) -> None:
    give_up = time.monotonic() + patience
    while True:
        data = probes.ask(layout, _FAILED_RUNS, id=backfill)
        failed = data["runsOrError"]["results"] if data else []
        if failed:
            raise RuntimeError(f"A run failed; see the dashboard's page /runs/{failed[0]['runId']}.")
        data = probes.ask(layout, _STATE, id=backfill)
        state = data["partitionBackfillOrError"] if data else {}
        if state.get("status") == "COMPLETED_SUCCESS":
            return
        if state.get("status") in _FAILED:
            error = (state.get("error") or {"message": state["status"]})["message"].strip().splitlines()[-1]
            raise RuntimeError(f"The backfill failed: {error}")
        if time.monotonic() > give_up:
            raise RuntimeError(f"The backfill did not end in {patience:g} s.")
        time.sleep(_POLL_SECONDS)


def _newest_event(layout: Layout) -> int:
    [[newest]] = query(layout, "SELECT coalesce(max(id), 0) FROM event_logs", ())
    return int(newest)


def _events(layout: Layout, after: int) -> Partitions:
    """Return the partitions of each asset that were materialised, read from the database without Dagster's help."""
    rows = query(
        layout,
        "SELECT asset_key, partition FROM event_logs WHERE dagster_event_type = 'ASSET_MATERIALIZATION' AND id > %s",
        (after,),
    )
    found: Partitions = {}
    for key, partition in rows:
        found.setdefault("/".join(json.loads(key)), set()).add(partition or "")
    return found


def query(layout: Layout, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return the rows of a query of the stack's database."""
    connection = probes.admin(layout, layout.addresses["C2TC_POSTGRES_DATABASE"])
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows
    finally:
        connection.close()


def verified_files(layout: Layout, artefacts: int) -> int:
    """Read everything in the object store, and return the number of files; raise RuntimeError if one is damaged.

    ``artefacts`` is how many there are at least.
    """
    with _environment(layout.environment("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", outer={})):
        checked = list(verify_store(ArtefactStore(layout.addresses["C2TC_STORAGE"])))
    damaged = [f"{each.address} {each.damage}" for each in checked if each.damage]
    if damaged:
        raise RuntimeError(f"The object store has damaged files: {', '.join(damaged[:5])}.")
    stored = sum(each.is_manifest for each in checked)
    if stored < artefacts:
        raise RuntimeError(f"The object store has {stored} artefacts, {artefacts} were made.")
    return len(checked)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
