"""DuckDB files, streamed as Arrow batches; opened for reading only, and no extension is installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.databases import DatabaseFile, Selection, quoted
from c2tc_pipeline.sources.source import BATCH_ROWS, TableHeader, refuse_duplicate_columns
from c2tc_pipeline.sources.values import pipeline_schema, with_schema

if TYPE_CHECKING:
    import pyarrow as pa

# Types that Arrow and the pipeline have too; enums, lists and the like are read as text.
_UNCHANGED = (
    *("BOOLEAN", "VARCHAR", "DATE", "BLOB", "FLOAT", "DOUBLE", "TINYINT", "SMALLINT", "INTEGER", "BIGINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
)


class DuckdbSource(DatabaseFile):
    """One table of a DuckDB file, or a query's result."""

    kind = "duckdb"
    endings = (".duckdb", ".ddb")

    def header(self) -> TableHeader:
        with self._connected() as (connection, selection):
            names = tuple(self._types(connection, selection))
            # A table knows its rows; a query would have to be answered.
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
    return quoted(name) if kind.startswith("TIMESTAMP") or kind in _UNCHANGED else f"CAST({quoted(name)} AS VARCHAR)"
