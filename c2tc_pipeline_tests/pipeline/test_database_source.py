"""A table in PostgreSQL, from the catalogue through ingest and the sensor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from c2tc_pipeline.pipeline.jobs import all_jobs
from c2tc_pipeline.pipeline.sensors import source_sensor
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, succeeded
from c2tc_pipeline_tests.sources.kinds import to_postgresql
from c2tc_pipeline_tests.sources.postgresql_server import PostgresServer
from c2tc_pipeline_tests.tools.made_tables import mixed_table

TABLE = "delivered"


@pytest.fixture
def rig(postgresql: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    """A catalogue that names a table by the variable that holds the whole address."""
    monkeypatch.setenv("WAREHOUSE", postgresql.dsn)
    to_postgresql(mixed_table(), postgresql, TABLE)
    with Rig(tmp_path) as rig:
        rig.add("people", source={"postgresql": {"table": TABLE, "dsn_env": "WAREHOUSE"}})
        yield rig


def launched(rig: Rig, cursor: str | None) -> tuple[list[str], str | None]:
    context = dg.build_sensor_context(rig.instance, cursor=cursor, repository_def=rig.definitions.get_repository_def())
    data = source_sensor(rig.catalogue, all_jobs(rig.catalogue)).evaluate_tick(context)
    return [request.tags["c2tc/tables"] for request in data.run_requests or []], data.cursor


def test_ingest_tells_where_a_table_came_from_and_the_sensor_when_it_changed(
    rig: Rig, postgresql: PostgresServer
) -> None:
    succeeded(rig.run("ingest", "people"))
    told = rig.told("raw_table", "people")
    assert told["source"] == f"postgresql://?table={TABLE}&dsn_env=WAREHOUSE"
    assert told["source_version"].startswith("db-")
    assert "source_bytes" not in told
    assert told["dagster/row_count"] == 300
    digest = rig.versions("raw_table")
    cursor = None
    for _ in range(2):
        requests, cursor = launched(rig, cursor)
        assert requests == []
    # Rows that are written over with the same values are another state of the same content.
    postgresql.execute(f"UPDATE {TABLE} SET age = age WHERE age < 0", "SELECT pg_stat_force_next_flush()")
    postgresql.execute(f"INSERT INTO {TABLE} SELECT * FROM {TABLE} LIMIT 1", "SELECT pg_stat_force_next_flush()")
    ticks = []
    for _ in range(3):
        requests, cursor = launched(rig, cursor)
        ticks.append(requests)
    assert ticks == [[], ["people"], []]
    succeeded(rig.run("ingest", "people"))
    assert rig.versions("raw_table") != digest
