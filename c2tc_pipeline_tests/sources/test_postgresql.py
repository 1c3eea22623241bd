"""PostgreSQL, directly and through SQLAlchemy: types, versions, mistakes, and that no password is ever shown."""

from __future__ import annotations

import datetime
import tracemalloc

import pandas as pd
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.tables.blocks import Blocks, read_table
from c2tc_pipeline_tests.sources.postgresql_server import DATABASE, PASSWORD, USER, PostgresServer


def refusal(address: str) -> str:
    with pytest.raises(InputError) as caught:
        read_table(address)
    message = str(caught.value)
    assert "\n" not in message
    assert PASSWORD not in message
    # What the driver said would be shown below it.
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return message


def test_types_become_those_that_csv_has(server: PostgresServer) -> None:
    server.execute(
        "DROP TABLE IF EXISTS kinds",
        "CREATE TABLE kinds (small int2, n numeric(9,2), day date, at timestamp, there timestamptz, span interval,"
        " word varchar(9), ok bool, clock time, list int[], id uuid, doc jsonb, narrow float4, paid money, empty text)",
        "INSERT INTO kinds VALUES (1, 1.10, '2020-01-02', '2020-01-02 10:00', '2020-01-02 10:00+02', '1 day 1 hour',"
        " 'x', true, '10:00', '{1,2}', '00000000-0000-0000-0000-000000000001', '{\"a\": 1}', 0.5, 5.5, NULL),"
        " (NULL, 'NaN', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    frame = read_table(server.table("kinds"))
    assert frame.dtypes.astype(str).to_dict() == {
        "small": "Int64",
        "n": "float64",
        "day": "datetime64[us]",
        "at": "datetime64[us]",
        "there": "datetime64[us, UTC]",
        "span": "float64",
        "word": "str",
        "ok": "boolean",
        **dict.fromkeys(["clock", "list", "id", "doc"], "str"),
        "narrow": "float64",
        "paid": "float64",
        "empty": "str",
    }
    first = frame.iloc[0].to_dict()
    assert first["n"] == 1.1
    assert first["span"] == 90_000.0
    assert first["there"] == pd.Timestamp(2020, 1, 2, 8, tz="UTC")
    assert (first["clock"], first["list"], first["doc"]) == ("10:00:00", "{1,2}", '{"a": 1}')
    assert first["day"] == pd.Timestamp(datetime.date(2020, 1, 2))
    assert frame.iloc[1].isna().all()


def test_a_query_keeps_its_order_and_an_empty_result_its_columns(server: PostgresServer) -> None:
    rows = "SELECT n AS a, n::text AS b FROM generate_series(1, 5000) AS n ORDER BY n % 7, n"
    assert read_table(server.query(rows))["a"].tolist() == sorted(range(1, 5001), key=lambda n: (n % 7, n))
    empty = read_table(server.query(f"SELECT * FROM ({rows}) AS q WHERE a < 0;"))
    assert empty.columns.tolist() == ["a", "b"]
    assert len(empty) == 0


def test_the_version_of_a_table_follows_its_changes_and_its_digest_its_values(server: PostgresServer) -> None:
    server.execute("DROP TABLE IF EXISTS v", "CREATE TABLE v AS SELECT n FROM generate_series(1, 9) AS n")
    source = open_source(server.table("v"))
    first, digest = source.version(), source.digest()
    assert source.version() == first
    server.execute("UPDATE v SET n = n WHERE n = 9", "SELECT pg_stat_force_next_flush()")
    second = source.version()
    assert second != first
    assert source.digest() == digest
    server.execute("DELETE FROM v WHERE n = 9", "SELECT pg_stat_force_next_flush()")
    assert source.version() not in (first, second)
    assert source.digest() != digest


def test_a_partitioned_table_and_a_view_have_versions_too(server: PostgresServer) -> None:
    server.execute(
        "DROP TABLE IF EXISTS whole CASCADE",
        "CREATE TABLE whole (n int) PARTITION BY RANGE (n)",
        "CREATE TABLE low PARTITION OF whole FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE high PARTITION OF whole FOR VALUES FROM (10) TO (20)",
        "CREATE VIEW seen AS SELECT * FROM whole ORDER BY n",
    )
    sources = [open_source(server.table(name)) for name in ("whole", "seen")]
    before = [source.version() for source in sources]
    server.execute("INSERT INTO whole VALUES (15)", "SELECT pg_stat_force_next_flush()")
    after = [source.version() for source in sources]
    assert all(new != old for new, old in zip(after, before, strict=True))


def test_a_query_may_not_write(server: PostgresServer) -> None:
    server.execute("DROP TABLE IF EXISTS safe", "CREATE TABLE safe AS SELECT 1 AS n")
    for query in ("DELETE FROM safe RETURNING n", "SELECT setval('s', 1)) AS x; DELETE FROM safe; SELECT (1"):
        refusal(server.query(query))
    assert read_table(server.table("safe"))["n"].tolist() == [1]


def test_mistakes_are_one_sentence(server: PostgresServer) -> None:
    assert f"127.0.0.1:{server.port}/{DATABASE}?table=public.nope" in refusal(server.table("public.nope"))
    assert 'column "nope" does not exist' in refusal(server.query("SELECT nope FROM pg_class"))
    assert "?table=" in refusal(server.address)
    assert "'a'" in refusal(server.query("SELECT 1 AS a, 2 AS a"))
    assert "PGPASSWORD" in refusal(server.table("t").replace(f"/{DATABASE}?", "/nothing?"))


def test_a_password_is_taken_from_the_environment_and_never_shown(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.execute("DROP TABLE IF EXISTS secret", "CREATE TABLE secret AS SELECT 1 AS n")
    monkeypatch.delenv("PGPASSWORD")
    for address in (
        f"{server.dsn}?table=secret",
        f"{server.address}?table=secret&password={PASSWORD}",
        f"postgresql://{USER}:{PASSWORD}@[bad/x?table=secret",
    ):
        assert "?table=secret" not in refusal(address)
    assert "PGPASSWORD" in refusal(server.table("secret"))
    address = "postgresql://?table=secret&dsn_env=WAREHOUSE"
    assert "WAREHOUSE" in refusal(address)
    monkeypatch.setenv("WAREHOUSE", server.dsn)
    delivery = Blocks.of_source(address)
    assert next(delivery.frames())["n"].tolist() == [1]
    assert delivery.shown == "postgresql://?table=secret&dsn_env=WAREHOUSE"
    assert PASSWORD not in repr(vars(open_source(address))["_address"])
    monkeypatch.setenv("WAREHOUSE", server.dsn.replace(PASSWORD, f"{PASSWORD}-wrong"))
    assert "password" in refusal(address)
    # An address that libpq can't parse is repeated in part by its own message.
    monkeypatch.setenv("WAREHOUSE", f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{PASSWORD}/x")
    with pytest.raises((InputError, ConnectionError)) as caught:
        read_table(address)
    assert PASSWORD not in str(caught.value)


def through_sqlalchemy(address: str) -> str:
    pytest.importorskip("psycopg2")
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


def test_mistakes_through_sqlalchemy_are_one_sentence(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for address in (server.table("nope"), server.query("SELECT nope FROM pg_class")):
        with pytest.raises(InputError):
            read_table(through_sqlalchemy(address))
    monkeypatch.setenv("PGPASSWORD", f"{PASSWORD}-wrong")
    with pytest.raises(ConnectionError) as refused:
        read_table(through_sqlalchemy(server.table("nope")))
    assert PASSWORD not in str(refused.value)
