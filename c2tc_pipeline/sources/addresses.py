"""From an address to its source: the one place that knows which kinds there are.

| address | kind |
|---|---|
| ``people.csv``, ``people.csv.gz``, ``people.parquet``, a folder of Parquet files; the same on ``s3://`` | files |
| ``people.sqlite?table=people``, ``sqlite:///people.db?table=people``, ``people.duckdb?query=...`` | database files |
| ``postgresql://user@host/db?table=people`` | PostgreSQL |
| ``mysql+pymysql://user@host/db?table=people``, ``sqlalchemy://?dsn_env=NAME&table=people`` | what SQLAlchemy reaches |
| ``openml:1590``, ``openml:adult`` | OpenML |
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources import csv_files, duckdb_files, openml, parquet_files, postgresql, sqlite_files
from c2tc_pipeline.sources.location import REMOTE_SCHEMES, Location, carries_user, refuse_user, without_secrets
from c2tc_pipeline.sources.selection import Selection
from c2tc_pipeline.sources.server_address import ServerAddress
from c2tc_pipeline.sources.source import Source
from c2tc_pipeline.sources.sqlalchemy_databases import SqlalchemySource

_DATABASE_FILES: dict[str, type[sqlite_files.SqliteSource] | type[duckdb_files.DuckdbSource]] = {
    "sqlite": sqlite_files.SqliteSource,
    "duckdb": duckdb_files.DuckdbSource,
}
_DATABASE_ENDINGS = sqlite_files.ENDINGS + duckdb_files.ENDINGS
_ENDINGS = csv_files.ENDINGS + parquet_files.ENDINGS + _DATABASE_ENDINGS
_SCHEME = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]*://")


def open_source(address: str | Path, storage_options: Mapping[str, Any] | None = None) -> Source:
    """Return the source that an address names; nothing is read yet.

    Parameters
    ----------
    address : str or Path
        Any of the forms above; endpoints and credentials come from the environment.
    storage_options : mapping, optional
        Handed to the file system of a remote file.

    Raises
    ------
    InputError
        When no kind of source fits the address, or it carries a password.

    Examples
    --------
    >>> open_source("postgresql://ann@db.example/sales?table=people").shown
    'postgresql://db.example/sales?table=people'
    >>> type(open_source("people.csv.gz")).__name__
    'CsvSource'
    """
    text = os.fspath(address)
    if text.startswith(openml.PREFIX):
        return openml.OpenmlSource(text.removeprefix(openml.PREFIX))
    found = _SCHEME.match(text)
    scheme = found[0].removesuffix("://") if found else "file"
    if scheme in postgresql.SCHEMES:
        return postgresql.PostgresSource(ServerAddress.parse(text))
    if scheme in _DATABASE_FILES:
        refuse_user(text)
        path, selection = _divided(text)
        return _DATABASE_FILES[scheme](Location("file", path.partition("://")[2].removeprefix("/")), selection)
    if scheme not in ("file", *REMOTE_SCHEMES) and _asks_a_database(text):
        return SqlalchemySource(ServerAddress.parse(text))
    return _file(text, storage_options)


def resolve_address(address: str, folder: Path) -> str:
    """Return an address that can be opened from here, given that relative paths start in a folder.

    Examples
    --------
    >>> resolve_address("adult.csv", Path("data")), resolve_address("sqlite:///a.db?table=t", Path("data"))
    ('data/adult.csv', 'sqlite:///data/a.db?table=t')
    >>> resolve_address("openml:1590", Path("data"))
    'openml:1590'
    """
    if address.startswith(openml.PREFIX):
        return address
    found = _SCHEME.match(address)
    if found is None:
        path, question, rest = _cut(address)
        # What looks like an address and is none is no path either: it may hold a password.
        return address if "://" in path else str(folder / path) + question + rest
    if found[0].removesuffix("://") in _DATABASE_FILES and not carries_user(address):
        path, question, rest = address.partition("?")
        return f"{found[0]}/{folder / path.removeprefix(found[0]).removeprefix('/')}{question}{rest}"
    return address


def address_of(described: Mapping[str, Any]) -> str:
    """Return the address of a source that a catalogue describes field by field.

    Examples
    --------
    >>> address_of({"postgresql": {"table": "public.people", "dsn_env": "WAREHOUSE"}})
    'postgresql://?table=public.people&dsn_env=WAREHOUSE'
    >>> address_of({"sqlite": {"file": "people.db", "table": "people"}}), address_of({"openml": 1590})
    ('sqlite:///people.db?table=people', 'openml:1590')
    """
    kinds = ("postgresql", "sqlalchemy", *_DATABASE_FILES, "openml")
    if len(described) != 1 or next(iter(described)) not in kinds:
        raise ValueError(f"a source is an address, or one of {', '.join(kinds)} with its fields below")
    ((kind, fields),) = described.items()
    if kind == "openml" and isinstance(fields, int | str):
        return f"{openml.PREFIX}{fields}"
    known = {"table", "query", *(("file",) if kind in _DATABASE_FILES else ("dsn_env",))}
    if kind == "postgresql":
        known |= {"host", "port", "user", "database"}
    if not isinstance(fields, Mapping) or not set(fields) <= known:
        raise ValueError(f"a source of {kind} may have the fields {', '.join(sorted(known))}")
    settings = urlencode({n: str(fields[n]) for n in ("table", "query", "dsn_env") if n in fields}, quote_via=quote)
    if kind in _DATABASE_FILES:
        return f"{kind}:///{fields.get('file', '')}" + (f"?{settings}" if settings else "")
    place = str(fields.get("host", "")) + (f":{fields['port']}" if "port" in fields else "")
    user = f"{quote(str(fields['user']), safe='')}@" if "user" in fields else ""
    database = f"/{quote(str(fields['database']), safe='')}" if "database" in fields else ""
    return f"{kind}://{user}{place}{database}?{settings}"


def _file(text: str, storage_options: Mapping[str, Any] | None) -> Source:
    path, selection = _divided(text)
    location = Location.parse(path, storage_options)
    name = location.name.lower()
    if name.endswith(sqlite_files.ENDINGS):
        return sqlite_files.SqliteSource(location, selection)
    if name.endswith(duckdb_files.ENDINGS):
        return duckdb_files.DuckdbSource(location, selection)
    if name.endswith(csv_files.ENDINGS):
        return csv_files.CsvSource(location)
    if name.endswith(parquet_files.ENDINGS) or location.is_folder():
        return parquet_files.ParquetSource(location)
    kinds = ", ".join(_ENDINGS)
    raise InputError(f"The kind of file {location} is not known; give one whose name ends in one of: {kinds}.")


def _cut(text: str) -> tuple[str, str, str]:
    """Divide what names a file from what names a table in it."""
    path, question, rest = text.partition("?")
    is_database = path.lower().endswith(_DATABASE_ENDINGS) or path.startswith(("sqlite://", "duckdb://"))
    return (path, question, rest) if is_database else (text, "", "")


def _divided(text: str) -> tuple[str, Selection]:
    path, _, rest = _cut(text)
    settings = dict(parse_qsl(rest, keep_blank_values=True))
    if unknown := sorted(set(settings) - {"table", "query"}):
        raise InputError(
            f"The source {without_secrets(path)} has the setting {unknown[0]!r}; there are table and query only."
        )
    return path, Selection(settings.get("table"), settings.get("query"))


def _asks_a_database(text: str) -> bool:
    return any(name in ("table", "query") for name, _ in parse_qsl(text.partition("?")[2], keep_blank_values=True))
