"""PostgreSQL, streamed by ADBC: the server sends binary rows, the driver yields Arrow batches.

Host, user and password come from the address or from where libpq looks for them: ``PGHOST``, ``PGPASSWORD``,
``~/.pgpass`` and so on. The driver's messages are not shown, since they may repeat parts of an address.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.databases import ServerAddress, ServerSource, checked_fields, quoted
from c2tc_pipeline.sources.source import BATCH_ROWS, Source, TableHeader, refuse_duplicate_columns, sliced
from c2tc_pipeline.sources.values import pipeline_schema, with_schema
from c2tc_pipeline.storage.manifest import hash_json

if TYPE_CHECKING:
    import pyarrow as pa

# Seconds, for servers that don't answer or disappear without closing the connection.
_TIMEOUTS = {"connect_timeout": "10", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
# Rows in the order in which they are stored: by default a large scan may join another one in the middle.
_SESSION = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",
)
_UNCHANGED = (
    *("bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar", "bpchar", "name"),
    *("date", "timestamp", "timestamptz", "bytea"),
)
# Counters of rows written, which grow with every change of a table, and what changes when it is written anew.
_STATE = """
WITH RECURSIVE parts(id) AS (
    SELECT to_regclass(%s)::oid UNION ALL SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = id
)
SELECT current_setting('track_counts') = 'on' AND bool_and(relkind IN ('r', 'm', 'p')) AS is_counted,
    string_agg(concat_ws(' ', c.oid, relfilenode, pg_relation_size(c.oid), n_tup_ins, n_tup_upd, n_tup_del), ','
        ORDER BY c.oid) AS state
FROM parts JOIN pg_class AS c ON c.oid = id LEFT JOIN pg_stat_all_tables AS s ON s.relid = c.oid
"""


class PostgresSource(ServerSource):
    """A table, view or query of a PostgreSQL database; rows of a table come in the order in which they are stored."""

    kind = "postgresql"

    @classmethod
    def from_address(cls, address: str) -> Source | None:
        is_ours = address.startswith(("postgresql://", "postgres://"))
        return cls(ServerAddress.parse(address)) if is_ours else None

    @classmethod
    def address_of(cls, fields: Any) -> str:
        known = {"table", "query", "dsn_env", "host", "port", "user", "database"}
        settings = checked_fields(cls.kind, fields, known)
        place = str(fields.get("host", "")) + (f":{fields['port']}" if "port" in fields else "")
        user = f"{quote(str(fields['user']), safe='')}@" if "user" in fields else ""
        database = f"/{quote(str(fields['database']), safe='')}" if "database" in fields else ""
        return f"postgresql://{user}{place}{database}{settings or '?'}"

    def header(self) -> TableHeader:
        def read() -> TableHeader:
            with self._cursor() as cursor:
                return TableHeader(tuple(self._types(cursor)), rows=None)

        return self.retried(read)

    def version(self) -> str:
        """Return a hash of the table's counters; of the content for a query or a view."""
        table = self._address.selection.table
        state = self.retried(lambda: self._state(table)) if table is not None else None
        return f"db-{hash_json(state)[:32]}" if state is not None else super().version()

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        with self._cursor() as cursor:
            types = self._types(cursor)
            wanted = self.chosen(columns, list(types))
            chosen = ", ".join(f"{_expression(name, types[name])} AS {quoted(name)}" for name in wanted)
            cursor.execute(f"SELECT {chosen} FROM {self._address.selection.origin()}")
            reader = cursor.fetch_record_batch()
            yield from with_schema(sliced(reader, rows), pipeline_schema(reader.schema.remove_metadata(), widened=True))

    def _state(self, table: str) -> list[str] | None:
        name = ".".join(quoted(part) for part in table.split("."))
        with self._cursor() as cursor:
            cursor.execute(_STATE.replace("%s", "'" + name.replace("'", "''") + "'"))
            is_counted, state = cursor.fetchone() or (False, None)
        return [name, str(state)] if is_counted and state is not None else None

    def _types(self, cursor: Any) -> dict[str, str]:
        cursor.execute(f"SELECT * FROM {self._address.selection.origin()} LIMIT 0")
        schema = cursor.fetch_record_batch().schema
        refuse_duplicate_columns(schema.names, self.shown)
        return {field.name: (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode() for field in schema}

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        import pyarrow as pa

        dbapi = self.needed("adbc_driver_postgresql.dbapi")
        manager = self.needed("adbc_driver_manager")
        try:
            with dbapi.connect(_with_timeouts(self._address.url)) as connection, connection.cursor() as cursor:
                for statement in _SESSION:
                    cursor.execute(statement)
                yield cursor
        except (manager.Error, pa.ArrowException, OSError) as error:
            raise self._translated(error) from None

    def _translated(self, error: Exception) -> Exception:
        if isinstance(error, InputError | ConnectionError):
            return error
        said, state = str(error), getattr(error, "sqlstate", None) or ""
        if state == "42P01" or state.startswith("3F"):
            return InputError(f"There is no table as in {self.shown}; check its name, and the schema before it.")
        if state == "42501":
            return InputError(f"The user of {self.shown} may not read it; grant the right, or use another user.")
        if state.startswith(("42", "22", "0A", "25")):
            first = said.partition("ERROR:")[2].strip().splitlines()
            return InputError(
                f"The source {self.shown} can't be read: {first[0] if first else state}; check the query."
            )
        if "invalid connection option" in said or "invalid integer value" in said or "invalid URI" in said:
            return InputError(f"The address of {self.shown} has a setting that PostgreSQL does not know; check it.")
        busy = "the database system is" in said or "too many" in said or state.startswith(("57", "53"))
        if ("FATAL:" in said and not busy) or "no password supplied" in said:
            return InputError(
                f"PostgreSQL refused the connection for {self.shown}; check user, database and password (PGPASSWORD)."
            )
        return ConnectionError(f"The PostgreSQL server of {self.shown} did not answer, or went away while it was read.")


def _with_timeouts(url: str) -> str:
    """Add timeouts to an address, where neither it nor the environment sets them."""
    if "://" not in url:
        # libpq's other form, host=... user=...; the last of two settings counts there, and ours come first.
        return " ".join([*(f"{name}={value}" for name, value in _TIMEOUTS.items()), url])
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if "PGCONNECT_TIMEOUT" in os.environ:
        given.setdefault("connect_timeout", os.environ["PGCONNECT_TIMEOUT"])
    settings = urlencode({**_TIMEOUTS, **given}, quote_via=quote)
    # Not urlunsplit: it leaves out the slashes of an address without a host.
    return f"{url.partition('?')[0]}?{settings}"


def _expression(name: str, kind: str) -> str:
    """Return the expression that reads a column in a type of the pipeline."""
    if kind in _UNCHANGED:
        return quoted(name)
    if kind == "numeric":
        return f"{quoted(name)}::float8"
    if kind == "money":
        return f"{quoted(name)}::numeric::float8"
    if kind == "interval":
        return f"extract(epoch FROM {quoted(name)})::float8"
    return f"{quoted(name)}::text"
