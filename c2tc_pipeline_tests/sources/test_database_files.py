"""SQLite and DuckDB files: types of whole columns, versions, mistakes, and rows that are kept on disk in between."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources import values as source_values
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.tables.blocks import read_table
from c2tc_pipeline.tables.catalogue import load_catalogue, validate_catalogue


def refusal(address: str | Path) -> str:
    with pytest.raises(InputError) as caught:
        read_table(address)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def sqlite(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return path


@pytest.mark.parametrize(
    ("declared", "cells", "dtype", "values"),
    [
        ("INTEGER", "(1), (NULL)", "Int64", [1, None]),
        ("INTEGER", "(1), (2.5)", "float64", [1.0, 2.5]),
        ("INTEGER", "(1), ('n/k')", "str", ["1", "n/k"]),
        ("BOOLEAN", "(1), (0)", "bool", [True, False]),
        ("BOOLEAN", "(1), (2)", "int64", [1, 2]),
        ("DATE", "('2020-08-09'), (NULL)", "datetime64[us]", [pd.Timestamp(2020, 8, 9), None]),
        ("DATE", "('2020-08-09'), ('soon')", "str", ["2020-08-09", "soon"]),
        ("TEXT", "('00501'), ('2020-08-09')", "str", ["00501", "2020-08-09"]),
        ("TEXT", "(NULL)", "str", [None]),
        ("BLOB", "(x'00ff')", "object", [b"\x00\xff"]),
    ],
)
@pytest.mark.parametrize("chunk", [1, 100])
def test_type_of_a_whole_column(
    tmp_path: Path, declared: str, cells: str, dtype: str, values: Sequence[object], chunk: int
) -> None:
    path = sqlite(tmp_path / "t.db", f"CREATE TABLE t (x {declared})", f"INSERT INTO t VALUES {cells}")
    batches = list(open_source(path).batches(rows=chunk))
    assert {batch.schema for batch in batches} == {batches[0].schema}
    column = read_table(path)["x"]
    assert str(column.dtype) == dtype
    assert [None if pd.isna(value) else value for value in column] == values


def test_many_rows_are_kept_on_disk_and_come_back_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5000) "
    path = sqlite(
        tmp_path / "t.db",
        f"CREATE TABLE t AS {numbers} SELECT n, 'word ' || n AS w, "
        "CASE WHEN n < 4000 THEN n ELSE n + 0.5 END AS x FROM c",
    )
    in_memory = read_table(path)
    monkeypatch.setattr(source_values, "KEPT_BYTES", 1000)
    pd.testing.assert_frame_equal(
        pd.concat(b.to_pandas() for b in open_source(path).batches(rows=300)).reset_index(drop=True), in_memory
    )
    assert in_memory["x"].tolist()[-1] == 5000.5


def test_mistakes_with_a_file_are_one_sentence(tmp_path: Path) -> None:
    path = sqlite(tmp_path / "two.db", "CREATE TABLE a (x)", "CREATE TABLE b (x)")
    assert "('a', 'b')" in refusal(path)
    assert "no such table: c" in refusal(f"{path}?table=c")
    with pytest.raises(InputError, match="'y'"):
        read_table(f"{path}?table=a", columns=["y"])
    assert "'sheet'" in refusal(f"{path}?sheet=a")
    for name in ("text.db", "text.duckdb"):
        (tmp_path / name).write_text("no database at all, only words" * 100)
        assert name in refusal(tmp_path / name)
    assert "none.db" in refusal(tmp_path / "none.db")
    mixed = sqlite(tmp_path / "mixed.db", "CREATE TABLE t (x)", "INSERT INTO t VALUES ('a'), (x'00')")
    bad = sqlite(tmp_path / "bad.db", "CREATE TABLE t (x)", "INSERT INTO t VALUES (CAST(x'ff' AS TEXT))")
    for wrong in (mixed, bad):
        assert "Column 'x'" in refusal(wrong)


def test_a_version_notices_what_still_lies_beside_the_file(tmp_path: Path) -> None:
    path = sqlite(tmp_path / "t.db", "PRAGMA journal_mode = wal", "CREATE TABLE t (x)", "INSERT INTO t VALUES (1)")
    source = open_source(path)
    with closing(sqlite3.connect(path)) as connection:
        before, digest = source.version(), source.digest()
        connection.execute("INSERT INTO t VALUES (2)")
        connection.commit()
        assert source.version() != before
        assert source.digest() != digest


def test_duckdb_types(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT 1.5::DECIMAL(9, 2) AS n, DATE '2020-08-09' AS day, INTERVAL 1 DAY AS span, "
            "'x'::ENUM ('x', 'y') AS kind, [1, 2] AS some, 7::UTINYINT AS small, 5::HUGEINT AS huge, TRUE AS ok"
        )
    frame = read_table(tmp_path / "t.duckdb")
    assert frame.dtypes.astype(str).tolist() == [
        *("float64", "datetime64[us]", "float64", "str", "str", "int64", "float64", "bool")
    ]
    assert frame.iloc[0].astype(str).tolist()[3:5] == ["x", "[1, 2]"]
    assert open_source(tmp_path / "t.duckdb").header().rows == 1
    address = f"{tmp_path / 't.duckdb'}?query=SELECT+n+*+2+AS+m+FROM+t"
    assert read_table(address)["m"].tolist() == [3.0]
    assert open_source(address).header().rows is None


def test_a_catalogue_may_describe_a_source_field_by_field(tmp_path: Path) -> None:
    sqlite(tmp_path / "shop.db", "CREATE TABLE a (x, y)", "CREATE TABLE b (x)", "INSERT INTO a VALUES (1, 'u')")
    path = tmp_path / "catalog.yaml"
    path.write_text(
        "tables:\n"
        "  a: {source: {sqlite: {file: shop.db, table: a}}, label: y}\n"
        "  c: {source: 'shop.db?query=SELECT x, y FROM a', label: y}\n"
    )
    catalogue = load_catalogue(path)
    assert [report.problem for report in validate_catalogue(catalogue)] == [None, None]
    assert read_table(catalogue.resolve_source(catalogue["a"]))["y"].tolist() == ["u"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{sqlite: {file: a.db, sheet: b}}", "file, query, table"),
        ("{oracle: {table: b}}", "sqlalchemy"),
        ("{postgresql: {table: b, password: hidden}}", "dsn_env"),
        ("{openml: [1]}", "number"),
    ],
)
def test_a_wrong_description_is_refused_without_showing_it(tmp_path: Path, source: str, reason: str) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text(f"tables: {{a: {{source: {source}, label: y}}}}")
    with pytest.raises(InputError, match=reason) as caught:
        load_catalogue(path)
    assert "hidden" not in str(caught.value)
