"""PostgreSQL through SQLAlchemy, which stands for any database with a driver: rows come by a cursor of the server."""

from __future__ import annotations

import tracemalloc

import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.tables.blocks import Blocks, read_table
from c2tc_pipeline_tests.sources.postgresql_server import PASSWORD, PostgresServer

pytest.importorskip("psycopg2")


def through_sqlalchemy(address: str) -> str:
    return address.replace("postgresql://", "postgresql+psycopg2://", 1)


def test_the_values_are_those_of_the_streaming_driver(server: PostgresServer) -> None:
    server.execute(
        "DROP TABLE IF EXISTS alike",
        "CREATE TABLE alike AS SELECT n AS a, n / 4.0::float8 AS b, md5(n::text) AS c, n % 3 = 0 AS d,"
        " CASE WHEN n % 5 > 0 THEN n END AS e, date '2020-01-01' + n AS f FROM generate_series(1, 25000) AS n",
    )
    direct, other = Blocks.of_source(server.table("alike")), Blocks.of_source(through_sqlalchemy(server.table("alike")))
    assert (
        next(other.frames())
        .sort_values("a", ignore_index=True)
        .equals(next(direct.frames()).sort_values("a", ignore_index=True))
    )
    assert PASSWORD not in repr(other.shown)


def test_memory_holds_a_part_of_the_rows(server: PostgresServer) -> None:
    query = "SELECT n AS a, repeat(md5(n::text), 8) AS b FROM generate_series(1, 300000) AS n"
    tracemalloc.start()
    try:
        rows = sum(batch.num_rows for batch in open_source(through_sqlalchemy(server.query(query))).batches())
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows == 300_000
    # The texts alone have 77 MB, and as Python's strings 92.
    assert held < 40_000_000


def test_mistakes_are_one_sentence(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for address in (server.table("nope"), server.query("SELECT nope FROM pg_class")):
        with pytest.raises(InputError):
            read_table(through_sqlalchemy(address))
    monkeypatch.setenv("PGPASSWORD", f"{PASSWORD}-wrong")
    with pytest.raises(ConnectionError) as refused:
        read_table(through_sqlalchemy(server.table("nope")))
    assert PASSWORD not in str(refused.value)
