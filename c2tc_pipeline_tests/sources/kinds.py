"""One table, written into every kind of source that this machine has."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pyarrow as pa

from c2tc_pipeline_tests.sources.postgresql_server import PostgresServer


def to_sqlite(frame: pd.DataFrame, path: Path, table: str = "people") -> str:
    """Write a table into an SQLite file, with types as people declare them, and return its address."""
    declared = {"f": "REAL", "i": "INTEGER", "b": "BOOLEAN", "M": "TIMESTAMP"}
    columns = ", ".join(f'"{name}" {declared.get(kind.kind, "TEXT")}' for name, kind in frame.dtypes.items())
    cells = frame.astype(object).where(frame.notna(), None)
    for name, kind in frame.dtypes.items():
        if kind.kind == "M":
            cells[name] = frame[name].dt.strftime("%Y-%m-%d %H:%M:%S").where(frame[name].notna(), None)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f'CREATE TABLE "{table}" ({columns})')
        marks = ", ".join("?" * frame.shape[1])
        connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', cells.itertuples(index=False, name=None))
    return f"{path}?table={table}"


def to_duckdb(frame: pd.DataFrame, path: Path, table: str = "people") -> str:
    """Write a table into a DuckDB file and return its address."""
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.register("given", pa.Table.from_pandas(frame, preserve_index=False))
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM given")
    return f"duckdb:///{path}?table={table}"


def to_parts(frame: pd.DataFrame, folder: Path, parts: int = 3) -> str:
    """Write a table as several Parquet files and return their folder."""
    folder.mkdir()
    size = -(-len(frame) // parts)
    for number in range(parts):
        part = frame.iloc[number * size : (number + 1) * size]
        part.to_parquet(folder / f"part-{number}.parquet", index=False)
    return str(folder)


def to_postgresql(frame: pd.DataFrame, server: PostgresServer, table: str) -> str:
    """Write a table into PostgreSQL and return its address."""
    with server.connected() as cursor:
        cursor.adbc_ingest(table, pa.Table.from_pandas(frame, preserve_index=False), mode="replace")
    return server.table(table)
