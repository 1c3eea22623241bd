"""A smoke run: tables through the whole pipeline on a running stack, launched by its daemon.

The outcome is read from PostgreSQL and from the object store, not from Dagster's own reports.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.tables.catalogue import Catalogue
from deploy import probes
from deploy.layout import Layout

_POLL_SECONDS = 1.0
_LAUNCH = """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) { __typename
    ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
    ... on RunConfigValidationInvalid { errors { message } } } }"""
_RUNS = """query($ids: [String]!) { runsOrError(filter: {runIds: $ids}) { ... on Runs { results { runId jobName status
    tags { key value } } } } }"""
_FINAL = ("SUCCESS", "FAILURE", "CANCELED")
_LOCATION = {"repositoryLocationName": "c2tc_pipeline", "repositoryName": "__repository__"}


@dataclass(frozen=True)
class Arrived:
    """Partitions by asset: materialised since the start by PostgreSQL, stored and verified by the object store."""

    events: dict[str, set[str]]
    artefacts: dict[str, set[str]]
    seconds: float


def smoke(layout: Layout, catalogue: Catalogue, patience: float, report: Callable[[str], object]) -> Arrived:
    """Make all of a catalogue on a running stack; raise RuntimeError if a run fails or an outcome is missing."""
    from c2tc_pipeline.pipeline.jobs import ASSETS
    from c2tc_pipeline.pipeline.versioning import partition_keys

    newest = _newest_event(layout)
    since = time.monotonic()
    for job, assets in ASSETS.items():
        began = time.monotonic()
        keys = partition_keys(assets[0], catalogue)
        _wait(layout, [_launch(layout, job, key) for key in keys], patience)
        report(f"{job:15} runs: {len(keys)}, in {time.monotonic() - began:.1f} s")
    seconds = time.monotonic() - since
    made = [asset for assets in ASSETS.values() for asset in assets]
    wanted = {asset: {key or "" for key in partition_keys(asset, catalogue)} for asset in made}
    arrived = Arrived(_events(layout, newest), verified_artefacts(layout, wanted), seconds)
    for name, found in (("PostgreSQL has no event", arrived.events), ("S3 has no artefact", arrived.artefacts)):
        missing = [f"{asset} {key}".strip() for asset, keys in wanted.items() for key in keys - found.get(asset, set())]
        if missing:
            raise RuntimeError(f"The runs succeeded, but {name} of: {', '.join(missing)}.")
    return arrived


def _launch(layout: Layout, job: str, partition: str | None) -> str:
    """Put a run into the queue, from which the daemon launches it."""
    tags = _partition_tags(partition) if partition else {}
    data = probes.ask(
        layout,
        _LAUNCH,
        seconds=60.0,
        params={
            "selector": {**_LOCATION, "jobName": job},
            "runConfigData": {},
            "executionMetadata": {"tags": [{"key": key, "value": value} for key, value in tags.items()]},
        },
    )
    if not data:
        raise InputError("The dashboard does not answer; is the stack up? python -m deploy check tells.")
    answer = data["launchRun"]
    if answer["__typename"] != "LaunchRunSuccess":
        raise RuntimeError(f"The launch of {job} for {partition} was refused: {answer}")
    return str(answer["run"]["runId"])


def _partition_tags(partition: str) -> dict[str, str]:
    """Return the partition tags of a run; a partition of the grid also has one for each dimension."""
    table, _, ratio = partition.partition("|")
    by_dimension = {"dagster/partition/dataset": table, "dagster/partition/ratio": ratio} if ratio else {}
    return {"dagster/partition": partition, **by_dimension}


def _wait(layout: Layout, runs: Sequence[str], patience: float) -> None:
    give_up = time.monotonic() + patience
    while True:
        data = probes.ask(layout, _RUNS, ids=runs)
        found = data["runsOrError"]["results"] if data else []
        failed = [run for run in found if run["status"] in _FINAL[1:]]
        if failed:
            name, identity = failed[0]["jobName"], failed[0]["runId"]
            raise RuntimeError(f"A run of {name} failed; see the dashboard's page /runs/{identity}.")
        if len(found) == len(runs) and all(run["status"] in _FINAL for run in found):
            return
        if time.monotonic() > give_up:
            raise RuntimeError(f"The runs did not end in {patience:g} s.")
        time.sleep(_POLL_SECONDS)


def _newest_event(layout: Layout) -> int:
    [[newest]] = _query(layout, "SELECT coalesce(max(id), 0) FROM event_logs", ())
    return int(newest)


def _events(layout: Layout, after: int) -> dict[str, set[str]]:
    """Return the partitions of each asset that were materialised, read from the database without Dagster's help."""
    rows = _query(
        layout,
        "SELECT asset_key, partition FROM event_logs WHERE dagster_event_type = 'ASSET_MATERIALIZATION' AND id > %s",
        (after,),
    )
    found: dict[str, set[str]] = {}
    for key, partition in rows:
        found.setdefault(str(key).strip('[]"'), set()).add(partition or "")
    return found


def _query(layout: Layout, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    connection = probes.admin(layout, layout.addresses["C2TC_POSTGRES_DATABASE"])
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows
    finally:
        connection.close()


def verified_artefacts(layout: Layout, wanted: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the partitions of each asset that the object store hands out whole; fetching one verifies it."""
    from c2tc_pipeline.pipeline.io_managers import artefact_key

    found: dict[str, set[str]] = {}
    with _environment(layout.environment("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", outer={})):
        store = ArtefactStore(layout.addresses["C2TC_STORAGE"])
        for asset, keys in wanted.items():
            for key in keys:
                name = artefact_key(asset, key or None)
                if store.latest(name) is not None:
                    with store.fetch(name):
                        found.setdefault(asset, set()).add(key)
    return found


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
