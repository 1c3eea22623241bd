"""How long the dashboard takes to answer what its main pages ask."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from c2tc_pipeline_tests.pipeline.live import Dashboard

_KEY = "assetKey { path }"
# The questions behind the pages, in the words of the dashboard's own program, shortened to what costs time.
QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "asset graph": (
        f"""{{ assetNodes {{ id {_KEY} groupName kinds isPartitioned jobNames dependencyKeys {{ path }}
            dependedByKeys {{ path }} hasAssetChecks partitionDefinition {{ description }} }} }}""",
        {},
    ),
    "asset graph, states": (
        f"""{{ assetNodes {{ id {_KEY} partitionStats {{ numMaterialized numMaterializing numPartitions numFailed }}
            assetMaterializations(limit: 1) {{ timestamp runId }} staleStatus }} }}""",
        {},
    ),
    "an asset's partitions": (
        """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
            partitionKeysByDimension { name partitionKeys }
            assetPartitionStatuses { ... on MultiPartitionStatuses { primaryDimensionName ranges {
            primaryDimStartKey primaryDimEndKey } } } } } }""",
        {"key": {"path": ["condensed_table"]}},
    ),
    "an asset's events": (
        """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
            assetMaterializations(limit: 50) { timestamp runId partition tags { key value }
            metadataEntries { label } } } } }""",
        {"key": {"path": ["raw_table"]}},
    ),
    "runs": (
        """{ runsOrError(limit: 25) { ... on Runs { count results { id status jobName startTime endTime
            tags { key value } } } } }""",
        {},
    ),
    "automation": (
        """{ repositoriesOrError { ... on RepositoryConnection { nodes { sensors { name sensorState { status } }
            schedules { name cronSchedule scheduleState { status } } } } } }""",
        {},
    ),
}


@dataclass(frozen=True)
class Page:
    """One page.

    Parameters
    ----------
    name : str
        What it shows.
    seconds : float
        The median of some answers.
    size : int
        Bytes of one answer.
    """

    name: str
    seconds: float
    size: int


_LAUNCH = """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) { __typename } }"""


def launch(dashboard: Dashboard, table: str, repeats: int = 5) -> Page:
    """Put runs of one table into the queue, where nobody launches them while there is no daemon."""
    selector = {"repositoryLocationName": "c2tc_pipeline.definitions", "repositoryName": "__repository__"}
    params = {
        "selector": {**selector, "jobName": "ingest_job"},
        "runConfigData": {},
        "executionMetadata": {"tags": [{"key": "dagster/partition", "value": table}]},
    }
    seconds, answer = [], {}
    for _ in range(repeats + 1):
        began = time.perf_counter()
        answer = dashboard.ask(_LAUNCH, params=params)
        seconds.append(time.perf_counter() - began)
        assert answer["launchRun"]["__typename"] == "LaunchRunSuccess", answer
    return Page("launch of a run into the queue", statistics.median(seconds[1:]), len(json.dumps(answer)))


def pages(dashboard: Dashboard, repeats: int = 5) -> Iterator[Page]:
    """Ask a running dashboard for each of its main pages."""
    for name, (query, variables) in QUESTIONS.items():
        dashboard.ask(query, **variables)  # the first answer also fills caches
        seconds, size = [], 0
        for _ in range(repeats):
            began = time.perf_counter()
            size = len(json.dumps(dashboard.ask(query, **variables)))
            seconds.append(time.perf_counter() - began)
        yield Page(name, statistics.median(seconds), size)
