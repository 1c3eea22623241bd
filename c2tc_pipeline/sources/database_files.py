"""Database files: SQLite, read with Python's module, and DuckDB, streamed as Arrow batches; opened for reading only."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.databases import Selection, checked_fields, quoted
from c2tc_pipeline.sources.location import Location, carries_user, is_file_address, refuse_user, without_secrets
from c2tc_pipeline.sources.source import BATCH_ROWS, Source, TableHeader, refuse_duplicate_columns
from c2tc_pipeline.sources.values import CellType, pipeline_schema, typed_batches, with_schema
from c2tc_pipeline.storage.artefact import ScratchDirectory
from c2tc_pipeline.storage.manifest import hash_json

if TYPE_CHECKING:
    import pyarrow as pa

# Types that Arrow and the pipeline have too; enums, lists and the like are read as text.
_DUCKDB_UNCHANGED = (
    *("BOOLEAN", "VARCHAR", "DATE", "BLOB", "FLOAT", "DOUBLE", "TINYINT", "SMALLINT", "INTEGER", "BIGINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
)


class DatabaseFile(Source):
    """Base of tables or queries of a database file, which is copied first if it is remote.

    Without table and query the file's only table is read.
    """

    def __init__(self, location: Location, selection: Selection) -> None:
        self.location = location
        self._selection = selection

    @classmethod
    def from_address(cls, address: str) -> Source | None:
        (path, _, rest), prefix = address.partition("?"), f"{cls.kind}://"
        if path.startswith(prefix):
            refuse_user(address)
            location = Location("file", path.removeprefix(prefix).removeprefix("/"))
        elif is_file_address(path) and path.lower().endswith(cls.endings):
            location = Location.parse(path)
        else:
            return None
        settings = dict(parse_qsl(rest, keep_blank_values=True))
        if unknown := sorted(set(settings) - {"table", "query"}):
            raise InputError(
                f"The source {without_secrets(path)} has the setting {unknown[0]!r}; there are table and query only."
            )
        return cls(location, Selection(settings.get("table"), settings.get("query")))

    @classmethod
    def of_file(cls, location: Location) -> Source:
        return cls(location, Selection())

    @classmethod
    def address_of(cls, fields: Any) -> str:
        settings = checked_fields(cls.kind, fields, {"file", "table", "query"})
        return f"{cls.kind}:///{fields.get('file', '')}{settings}"

    @classmethod
    def resolve(cls, address: str, folder: Path) -> str | None:
        (path, question, rest), prefix = address.partition("?"), f"{cls.kind}://"
        if not path.startswith(prefix) or carries_user(address):
            return None
        return f"{prefix}/{folder / path.removeprefix(prefix).removeprefix('/')}{question}{rest}"

    @property
    def shown(self) -> str:
        return str(self.location) + (f"?{self._selection}" if self._selection != Selection() else "")

    @property
    def name(self) -> str:
        return self._selection.name if self._selection.table is not None else self.location.stem(self.endings)

    def version(self) -> str:
        states = [self.location.version()]
        if self.location.scheme == "file":
            # What is written but not yet part of the file is in a log beside it.
            logs = [Path(self.location.path + ending) for ending in ("-wal", ".wal")]
            states += [Location("file", str(log)).version() for log in logs if log.is_file() and log.stat().st_size]
        # Not the size in bytes at the beginning: other tables of the file add to it.
        return f"db-{hash_json(states)[:32]}"

    @contextmanager
    def local_file(self) -> Iterator[Path]:
        """Yield the path of the file, or of a temporary copy."""
        if self.location.scheme == "file":
            # Opened only so that a missing or unreadable file gets our message.
            with self.location.open():
                pass
            yield Path(self.location.path)
            return
        with ScratchDirectory() as folder:
            path = Path(folder) / (self.location.name or "file")
            with self.location.open() as remote, path.open("wb") as copy:
                shutil.copyfileobj(remote, copy, 1 << 22)
            yield path

    def checked_selection(self, tables: list[str]) -> Selection:
        """Return what to read, given the file's tables; refuse a choice among several."""
        if self._selection != Selection():
            return self._selection.checked(self.shown)
        if len(tables) != 1:
            listed = ", ".join(repr(name) for name in tables[:10]) or "none"
            raise InputError(f"The file {self.shown} holds several tables or none ({listed}); name one with ?table=.")
        return Selection(table=tables[0])


class SqliteSource(DatabaseFile):
    """One table of an SQLite file, or a query's result; the type of a column is decided by all its cells."""

    kind = "sqlite"
    format = "SQLite"
    endings = (".sqlite", ".sqlite3", ".db", ".db3")
    signature = rb"SQLite format 3\x00"

    def header(self) -> TableHeader:
        with self._connected() as (connection, selection):
            return TableHeader(self._names(connection, selection), rows=None)

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        with self._connected() as (connection, selection):
            wanted = self.chosen(columns, self._names(connection, selection))
            cursor = connection.execute(selection.sql(wanted))
            chunks = iter(lambda: cursor.fetchmany(rows), [])
            declared = _declared_types(connection, selection)
            yield from typed_batches(wanted, chunks, shown=self.shown, declared=declared)

    def _names(self, connection: sqlite3.Connection, selection: Selection) -> tuple[str, ...]:
        described = connection.execute(f"{selection.sql()} LIMIT 0").description
        names = tuple(str(column[0]) for column in described)
        refuse_duplicate_columns(names, self.shown)
        return names

    @contextmanager
    def _connected(self) -> Iterator[tuple[sqlite3.Connection, Selection]]:
        with self.local_file() as path:
            address = f"file:{quote(str(path))}?mode=ro"
            try:
                # Another thread may read further batches.
                with closing(sqlite3.connect(address, uri=True, timeout=10, check_same_thread=False)) as connection:
                    found = connection.execute(
                        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY 1"
                    )
                    names = [name for (name,) in found if not name.startswith("sqlite_")]
                    yield connection, self.checked_selection(names)
            except sqlite3.Error as error:
                raise self._translated(error) from None

    def _translated(self, error: sqlite3.Error) -> Exception:
        said = str(error)
        if "locked" in said or "busy" in said:
            return ConnectionError(f"The file {self.shown} is being written by another program.")
        if found := re.match(r"Could not decode to UTF-8 column '(.*)' with text", said, re.DOTALL):
            return InputError(f"Column {found[1]!r} of {self.shown} holds bytes that are not UTF-8; correct it.")
        if "not a database" in said or "malformed" in said:
            return InputError(f"The file {self.shown} is not a whole SQLite file; write it anew.")
        return InputError(f"The source {self.shown} can't be read: {said.splitlines()[0]}; check table and query.")


def _declared_types(connection: sqlite3.Connection, selection: Selection) -> dict[str, CellType]:
    """Return the columns of a table that are declared boolean or datetime, types that SQLite does not have."""
    if selection.table is None:
        return {}
    *schema, table = selection.table.split(".")
    origin = f"{quoted(schema[0])}." if schema else ""
    found = connection.execute(f"PRAGMA {origin}table_info({quoted(table)})").fetchall()
    declared = {name: re.match("(BOOL)|DATE|TIMESTAMP", str(kind).upper()) for _, name, kind, *_ in found}
    return {name: CellType.BOOLEAN if kind[1] else CellType.DATETIME for name, kind in declared.items() if kind}


class DuckdbSource(DatabaseFile):
    """One table of a DuckDB file, or a query's result."""

    kind = "duckdb"
    format = "DuckDB"
    endings = (".duckdb", ".ddb")
    signature = rb"(?s:.{8})DUCK"

    def header(self) -> TableHeader:
        with self._connected() as (connection, selection):
            names = tuple(self._types(connection, selection))
            # Counting the rows of a table is cheap; a query would have to run.
            counted = selection.table is not None
            rows = connection.execute(f"SELECT count(*) FROM {selection.origin()}").fetchone()[0] if counted else None
            return TableHeader(names, rows)

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        with self._connected() as (connection, selection):
            types = self._types(connection, selection)
            wanted = self.chosen(columns, list(types))
            chosen = ", ".join(f"{_expression(name, types[name])} AS {quoted(name)}" for name in wanted)
            reader = connection.sql(f"SELECT {chosen} FROM {selection.origin()}").to_arrow_reader(rows)
            yield from with_schema(reader, pipeline_schema(reader.schema, widened=True))

    def _types(self, connection: Any, selection: Selection) -> dict[str, str]:
        described = connection.execute(f"DESCRIBE {selection.sql()}").fetchall()
        refuse_duplicate_columns([name for name, *_ in described], self.shown)
        return {name: str(kind) for name, kind, *_ in described}

    @contextmanager
    def _connected(self) -> Iterator[tuple[Any, Selection]]:
        duckdb = self.needed("duckdb")
        settings = {"autoinstall_known_extensions": "false"}
        with self.local_file() as path:
            try:
                with duckdb.connect(str(path), read_only=True, config=settings) as connection:
                    found = connection.execute(
                        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY 1"
                    )
                    yield connection, self.checked_selection([name for (name,) in found.fetchall()])
            except duckdb.IOException as error:
                if "lock" in str(error):
                    raise ConnectionError(f"The file {self.shown} is being written by another program.") from None
                raise InputError(f"The file {self.shown} is not a whole DuckDB file; write it anew.") from None
            except duckdb.Error as error:
                said = str(error).splitlines()[0]
                raise InputError(f"The source {self.shown} can't be read: {said}; check table and query.") from None


def _expression(name: str, kind: str) -> str:
    """Return the expression that reads a column in a type of the pipeline."""
    if kind.startswith(("DECIMAL", "HUGEINT", "UHUGEINT")):
        return f"CAST({quoted(name)} AS DOUBLE)"
    if kind == "INTERVAL":
        return f"epoch({quoted(name)})"
    return (
        quoted(name)
        if kind.startswith("TIMESTAMP") or kind in _DUCKDB_UNCHANGED
        else f"CAST({quoted(name)} AS VARCHAR)"
    )
