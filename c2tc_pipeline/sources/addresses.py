"""Registry of the kinds of sources, and what an address of each looks like.

| address | kind |
|---|---|
| ``people.csv``, ``people.jsonl``, ``people.parquet``, ``people.feather``; compressed; a folder of them | files |
| ``people.xlsx?table=Sheet1``; a folder of a Delta Lake or Iceberg table | workbooks, lakehouse tables |
| the same on ``s3://`` and ``https://``; ``-`` | remote files, standard input |
| ``people.sqlite?table=people``, ``sqlite:///people.db?table=people``, ``people.duckdb?query=...`` | database files |
| ``postgresql://user@host/db?table=people`` | PostgreSQL |
| ``mysql+pymysql://user@host/db?table=people``, ``sqlalchemy://?dsn_env=NAME&table=people`` | SQLAlchemy |
| ``openml:1590``, ``openml:adult`` | OpenML |
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from c2tc_pipeline.common.errors import InputError, Notice
from c2tc_pipeline.sources import packed
from c2tc_pipeline.sources.columnar import ArrowSource, ParquetSource
from c2tc_pipeline.sources.csv_files import CsvSource, find_dialect
from c2tc_pipeline.sources.database_files import DatabaseFile, DuckdbSource, SqliteSource
from c2tc_pipeline.sources.excel import ExcelSource
from c2tc_pipeline.sources.json_lines import JsonLinesSource
from c2tc_pipeline.sources.lakehouse import DeltaSource, IcebergSource
from c2tc_pipeline.sources.location import START_BYTES, WEB_SCHEMES, Location, is_file_address
from c2tc_pipeline.sources.openml import OpenmlSource
from c2tc_pipeline.sources.postgresql import PostgresSource
from c2tc_pipeline.sources.source import FileSource, Source
from c2tc_pipeline.sources.sqlalchemy_databases import SqlalchemySource
from c2tc_pipeline.storage.artefact import ScratchDirectory

SOURCES: list[type[Source]] = [
    OpenmlSource,
    PostgresSource,
    SqliteSource,
    DuckdbSource,
    ExcelSource,
    DeltaSource,
    IcebergSource,
    ParquetSource,
    ArrowSource,
    JsonLinesSource,
    CsvSource,
    # Last, because it accepts any scheme.
    SqlalchemySource,
]
"""Kinds of sources; the first one that accepts an address opens it."""

# Text that is no table, and what to do about it.
_NO_TABLES = {
    rb"(?i)(\xef\xbb\xbf)?\s*<(!doctype html|html)": "an HTML page; give the address of the file itself",
    rb"(\xef\xbb\xbf)?\s*\[\s*(\{|\Z)": "a JSON array; write one object a line, as JSON lines",
}

STANDARD_INPUT = "-"
SHOWN_STANDARD_INPUT = "standard input"


def open_source(address: str | Path) -> Source:
    """Return the source at an address; its rows are not read yet.

    Endpoints and credentials come from the environment. A file, local or on the web, whose content is of another kind
    than its name says is read by its content. An address of no known kind, or with a password, is an InputError.

    Examples
    --------
    >>> open_source("postgresql://ann@db.example/sales?table=people").shown
    'postgresql://db.example/sales?table=people'
    >>> type(open_source("people.csv.gz")).__name__
    'CsvSource'
    """
    text = os.fspath(address)
    if text == STANDARD_INPUT:
        _, location = _received(sys.stdin.buffer)
        return _by_content(location) or CsvSource(location)
    named = next((source for kind in SOURCES if (source := kind.from_address(text))), None)
    if named is not None and (not is_file_address(text) or (isinstance(named, DatabaseFile) and "?" in text)):
        return named
    location = Location.parse(text)
    # Folders of a name with an ending are common where Spark wrote them.
    if (named is None or location.scheme == "file" or text.endswith("/")) and location.is_folder():
        return _of_folder(location)
    if named is None:
        found = _by_content(location)
        if found is not None or location.scheme in WEB_SCHEMES or _is_delimited(location, location.start()):
            return found or CsvSource(location)
        endings = ", ".join(ending for kind in SOURCES for ending in kind.endings)
        raise InputError(f"The kind of file {location} is not known; give one whose name ends in one of: {endings}.")
    if location.scheme not in ("file", *WEB_SCHEMES):
        return named
    found = _by_content(location, expected=type(named))
    if found is None:
        return named
    found.notices = [
        Notice(
            "wrong_ending", f"The file {location} is of the kind {found.format} by its content, and was read as such"
        )
    ]
    return found


def _by_content(location: Location, expected: type[Source] | None = None) -> Source | None:
    """Return the source of a file whose content is recognised, if it is of another kind than expected."""
    try:
        start = location.start()
        fitting = [kind for kind in SOURCES if kind.signature and re.match(kind.signature, start)]
        if not fitting and re.match(packed.SIGNATURE, start):
            with packed.opened(location) as content:
                inner = content.read(START_BYTES)
            kinds = [kind for kind in SOURCES if kind.may_be_packed]
            fitting = [kind for kind in kinds if kind.signature and re.match(kind.signature, inner)]
            if not fitting and expected not in kinds:
                fitting = [CsvSource]
        is_binary = expected is not None and expected.signature != b"" and not expected.may_be_packed
        if not fitting and is_binary and _is_delimited(location, start):
            fitting = [CsvSource]
    except (InputError, ConnectionError):
        # The error is reported when the file is read.
        return None
    if not fitting and (expected is None or expected.may_be_packed):
        for signature, problem in _NO_TABLES.items():
            if re.match(signature, start):
                raise InputError(f"The source {location} is {problem}.")
    return None if not fitting or expected in fitting else fitting[0].of_file(location)


def _is_delimited(location: Location, start: bytes) -> bool:
    """Return whether a file is text in several columns."""
    if b"\0" in start or re.match(rb"\s*[{<]", start):
        return False
    try:
        return len(find_dialect(location).names) > 1
    except InputError:
        return False


def _of_folder(location: Location) -> Source:
    """Return the source of a folder."""
    files = list(_names(location))
    found = [source for kind in SOURCES if (source := kind.of_folder(location, files))]
    if not found:
        endings = ", ".join(ending for kind in SOURCES for ending in kind.endings if issubclass(kind, FileSource))
        raise InputError(
            f"The source {location} is a folder without parts of a table; give the path of one file, or of a folder of "
            f"files that end in one of: {endings}."
        )
    # The log of a lakehouse table lists its current files.
    if len(found) > 1 and isinstance(found[0], FileSource):
        raise InputError(
            f"The folder {location} holds files of several kinds, {found[0].format} and {found[1].format}; leave one."
        )
    return found[0]


def _names(folder: Location, prefix: str = "") -> Iterator[str]:
    """Yield the names of files and folders in a folder, and in the first of those that are named after a value."""
    looked_into = False
    for entry, inner in folder.entries():
        if inner:
            yield f"{prefix}{entry.name}/"
            if "=" in entry.name and not looked_into:
                looked_into = True
                yield from _names(entry, f"{prefix}{entry.name}/")
        elif not entry.name.startswith(("_", ".")):
            yield prefix + entry.name


@lru_cache(maxsize=1)
def _received(stream: BinaryIO) -> tuple[ScratchDirectory, Location]:
    """Return standard input as a file in a temporary folder, since most kinds of files are read more than once."""
    if stream.isatty():
        raise InputError("Nothing is piped into standard input; give a path, or pipe a file.")
    folder = ScratchDirectory()
    path = Path(folder.name) / "standard_input"
    with path.open("wb") as copy:
        shutil.copyfileobj(stream, copy, 1 << 20)
    return folder, Location("file", str(path), shown=SHOWN_STANDARD_INPUT)


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
