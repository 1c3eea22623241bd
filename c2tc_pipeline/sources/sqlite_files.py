"""SQLite files, read with Python's own module; one statement sees one state of the file."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.databases import DatabaseFile, Selection, quoted
from c2tc_pipeline.sources.source import BATCH_ROWS, TableHeader, refuse_duplicate_columns
from c2tc_pipeline.sources.values import CellType, typed_batches

if TYPE_CHECKING:
    import pyarrow as pa

# Seconds to wait for a writer.
_TIMEOUT = 10.0


class SqliteSource(DatabaseFile):
    """One table of an SQLite file, or a query's result.

    Any cell of an SQLite table may hold any type, so the type of a column is decided by all of them.
    """

    kind = "sqlite"
    endings = (".sqlite", ".sqlite3", ".db", ".db3")

    def header(self) -> TableHeader:
        with self._connected() as (connection, selection):
            return TableHeader(self._names(connection, selection), rows=None)

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        with self._connected() as (connection, selection):
            wanted = self.chosen(columns, self._names(connection, selection))
            cursor = connection.execute(selection.sql(wanted))
            chunks = iter(lambda: cursor.fetchmany(rows), [])
            declared = _declared(connection, selection)
            yield from typed_batches(wanted, chunks, shown=self.shown, declared=declared)

    def _names(self, connection: sqlite3.Connection, selection: Selection) -> tuple[str, ...]:
        described = connection.execute(f"{selection.sql()} LIMIT 0").description
        names = tuple(str(column[0]) for column in described)
        refuse_duplicate_columns(names, self.shown)
        return names

    @contextmanager
    def _connected(self) -> Iterator[tuple[sqlite3.Connection, Selection]]:
        with self.local_file() as path:
            # Another thread than the first may read further batches.
            address = f"file:{quote(str(path))}?mode=ro"
            try:
                with closing(
                    sqlite3.connect(address, uri=True, timeout=_TIMEOUT, check_same_thread=False)
                ) as connection:
                    found = connection.execute(
                        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
                        r"AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name"
                    )
                    yield connection, self.checked_selection([name for (name,) in found])
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


def _declared(connection: sqlite3.Connection, selection: Selection) -> dict[str, CellType]:
    """Return the columns of a table that are declared boolean or datetime, types that SQLite does not have."""
    if selection.table is None:
        return {}
    *schema, table = selection.table.split(".")
    origin = f"{quoted(schema[0])}." if schema else ""
    declared = {}
    for _, name, kind, *_ in connection.execute(f"PRAGMA {origin}table_info({quoted(table)})"):
        if str(kind).upper().startswith("BOOL"):
            declared[name] = CellType.BOOLEAN
        elif str(kind).upper().startswith(("DATE", "TIMESTAMP")):
            declared[name] = CellType.DATETIME
    return declared
