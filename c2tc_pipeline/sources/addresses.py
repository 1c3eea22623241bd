"""Registry of the kinds of sources, and what an address of each looks like.

| address | kind |
|---|---|
| ``people.csv``, ``people.csv.gz``, ``people.parquet``, a folder of Parquet files; the same on ``s3://`` | files |
| ``people.sqlite?table=people``, ``sqlite:///people.db?table=people``, ``people.duckdb?query=...`` | database files |
| ``postgresql://user@host/db?table=people`` | PostgreSQL |
| ``mysql+pymysql://user@host/db?table=people``, ``sqlalchemy://?dsn_env=NAME&table=people`` | SQLAlchemy |
| ``openml:1590``, ``openml:adult`` | OpenML |
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.csv_files import CsvSource
from c2tc_pipeline.sources.database_files import DuckdbSource, SqliteSource
from c2tc_pipeline.sources.location import Location
from c2tc_pipeline.sources.openml import OpenmlSource
from c2tc_pipeline.sources.parquet_files import ParquetSource
from c2tc_pipeline.sources.postgresql import PostgresSource
from c2tc_pipeline.sources.source import Source
from c2tc_pipeline.sources.sqlalchemy_databases import SqlalchemySource

SOURCES: list[type[Source]] = [
    OpenmlSource,
    PostgresSource,
    SqliteSource,
    DuckdbSource,
    CsvSource,
    # Last, because these two accept any scheme and any folder, for which a server may be queried.
    SqlalchemySource,
    ParquetSource,
]
"""Kinds of sources; the first one that accepts an address opens it."""


def open_source(address: str | Path, storage_options: Mapping[str, Any] | None = None) -> Source:
    """Return the source at an address; its rows are not read yet.

    Endpoints and credentials come from the environment, or for a remote file from ``storage_options`` of its file
    system. An address of no known kind, or with a password, is an InputError.

    Examples
    --------
    >>> open_source("postgresql://ann@db.example/sales?table=people").shown
    'postgresql://db.example/sales?table=people'
    >>> type(open_source("people.csv.gz")).__name__
    'CsvSource'
    """
    text = os.fspath(address)
    for kind in SOURCES:
        source = kind.from_address(text, storage_options)
        if source is not None:
            return source
    location = Location.parse(text)
    endings = ", ".join(ending for kind in SOURCES for ending in kind.endings)
    raise InputError(f"The kind of file {location} is not known; give one whose name ends in one of: {endings}.")


def resolve_address(address: str, folder: Path) -> str:
    """Return an address whose relative path, if it has one, starts in a folder."""
    for kind in SOURCES:
        resolved = kind.resolve(address, folder)
        if resolved is not None:
            return resolved
    path, question, _ = address.partition("?")
    # An unknown scheme: not a path, and it may hold a password.
    if "://" in path:
        return address
    return os.path.join("" if folder == Path() else folder, address) if question else str(folder / address)


def address_of(described: Mapping[str, Any]) -> str:
    """Return the address of a source that a catalogue describes field by field.

    >>> address_of({"sqlite": {"file": "people.db", "table": "people"}}), address_of({"openml": 1590})
    ('sqlite:///people.db?table=people', 'openml:1590')
    """
    kinds = {kind.kind: kind for kind in SOURCES if kind.kind}
    if len(described) != 1 or next(iter(described)) not in kinds:
        raise ValueError(f"a source is an address, or one of {', '.join(kinds)} with its fields below")
    ((name, fields),) = described.items()
    return kinds[name].address_of(fields)
