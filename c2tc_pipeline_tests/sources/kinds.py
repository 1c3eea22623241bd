"""One table, written into every kind of source that this machine has."""

from __future__ import annotations

import bz2
import gzip
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pandas as pd
import pyarrow as pa

from c2tc_pipeline.sources.addresses import open_source
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


def to_hive(frame: pd.DataFrame, folder: Path, by: str, ending: str = ".parquet") -> str:
    """Write a table into folders named after the values of a column, and return the folder of all."""
    for value, part in frame.groupby(by, sort=True, dropna=False):
        inner = folder / f"{by}={'__HIVE_DEFAULT_PARTITION__' if pd.isna(value) else quote(str(value), safe='')}"
        inner.mkdir(parents=True)
        rest = part.drop(columns=by)
        rest.to_parquet(inner / "a.parquet", index=False) if ending == ".parquet" else rest.to_csv(
            inner / f"a{ending}", index=False
        )
    return str(folder)


def to_delta(frame: pd.DataFrame, folder: Path) -> str:
    """Write a table as a Delta Lake table in two versions, and return its folder."""
    import deltalake

    table = pa.Table.from_pandas(frame, preserve_index=False)
    for start, stop in ((0, len(frame) // 2), (len(frame) // 2, len(frame))):
        deltalake.write_deltalake(str(folder), table.slice(start, stop - start), mode="append")
    return str(folder)


def to_iceberg(frame: pd.DataFrame, folder: Path) -> str:
    """Write a table as an Iceberg table in a catalogue of its own, and return its folder."""
    from pyiceberg.catalog.sql import SqlCatalog

    folder.mkdir()
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    catalogue = SqlCatalog("made", uri=f"sqlite:///{folder}/catalogue.db", warehouse=f"file://{folder}")
    catalogue.create_namespace("made")
    catalogue.create_table("made.people", schema=table.schema).append(table)
    return str(folder / "made" / "people")


def to_packed(text: bytes, path: Path) -> str:
    """Write text into a file, compressed as its name says."""
    packing = path.suffix
    if packing == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("people.csv", text)
    elif packing == ".zst":
        path.write_bytes(pa.Codec("zstd").compress(text, asbytes=True))
    elif packing == ".gz":
        path.write_bytes(gzip.compress(text))
    else:
        path.write_bytes(bz2.compress(text) if packing == ".bz2" else text)
    return str(path)


def to_postgresql(frame: pd.DataFrame, server: PostgresServer, table: str) -> str:
    """Write a table into PostgreSQL and return its address."""
    with server.connected() as cursor:
        cursor.adbc_ingest(table, pa.Table.from_pandas(frame, preserve_index=False), mode="replace")
    return server.table(table)


def check_source(address: str, frame: pd.DataFrame) -> None:
    """Check header, version and batches of a source that holds a table."""
    source = open_source(address)
    header = source.header()
    assert sorted(header.columns) == sorted(frame.columns)
    assert header.rows in (None, len(frame))
    version = source.version()
    assert version == open_source(address).version()
    assert version.replace("-", "").isalnum()
    assert len(version) <= 63
    chosen = [str(name) for name in frame.columns[[3, 0]]]
    batches = list(source.batches(chosen, rows=20))
    assert {batch.schema for batch in batches} == {batches[0].schema}
    assert batches[0].schema.names == chosen
    assert max(batch.num_rows for batch in batches) <= 20
    assert sum(batch.num_rows for batch in batches) == len(frame)
