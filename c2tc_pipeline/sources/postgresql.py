"""PostgreSQL, streamed by ADBC: the server sends binary rows, the driver hands out Arrow batches.

Host, user and password come from the address or from libpq's own places: ``PGHOST``, ``PGPASSWORD``, ``~/.pgpass`` and
so on. What the driver says is not shown, since it may repeat parts of an address.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.retries import with_retries
from c2tc_pipeline.sources.packages import needed
from c2tc_pipeline.sources.selection import quoted
from c2tc_pipeline.sources.server_source import ServerSource
from c2tc_pipeline.sources.source import BATCH_ROWS, TableHeader, refuse_twins, sliced
from c2tc_pipeline.sources.values import fitted, taken_schema
from c2tc_pipeline.storage.hashing import hash_json

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMES = ("postgresql", "postgres")

# Seconds: nobody waits for ever for a server that does not answer, or that is gone without a word.
_PATIENCE = {"connect_timeout": "10", "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3"}
# Rows in the order in which they lie there: by default a large scan may begin in the middle, where another one is.
_SESSION = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",
)
_AS_THEY_ARE = (
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
    """A table, view or query of a PostgreSQL database.

    Parameters
    ----------
    address : ServerAddress
        Where, and what to read.

    Notes
    -----
    A table has no order of its own. Its rows come in the order in which they lie in it, which is that of insertion
    until rows are changed; a query with ORDER BY says it better.

    Examples
    --------
    >>> from c2tc_pipeline.sources.server_address import ServerAddress
    >>> PostgresSource(ServerAddress.parse("postgresql://ann@db.example/sales?table=public.people")).name
    'people'
    """

    def header(self) -> TableHeader:
        def ask() -> TableHeader:
            with self._cursor() as cursor:
                return TableHeader(tuple(self._types(cursor)), rows=None)

        return with_retries(ask, self.tries)

    def version(self) -> str:
        """Return a mark of the table's counters; of a query or a view that of its content, since nothing is cheaper."""
        table = self._address.selection.table
        if table is not None:
            state = with_retries(lambda: self._state(table), self.tries)
            if state is not None:
                return f"db-{hash_json(state)[:32]}"
        return super().version()

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        with self._cursor() as cursor:
            types = self._types(cursor)
            wanted = self.chosen(columns, list(types))
            chosen = ", ".join(f"{_read_as(name, types[name])} AS {quoted(name)}" for name in wanted)
            cursor.execute(f"SELECT {chosen} FROM {self._address.selection.origin()}")
            reader = cursor.fetch_record_batch()
            schema = taken_schema(reader.schema.remove_metadata(), widened=True)
            is_empty = True
            for batch in sliced(reader, rows):
                is_empty = False
                yield fitted(batch, schema)
            if is_empty:
                yield pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)

    def _state(self, table: str) -> list[str] | None:
        name = ".".join(quoted(part) for part in table.split("."))
        with self._cursor() as cursor:
            cursor.execute(_STATE.replace("%s", "'" + name.replace("'", "''") + "'"))
            is_counted, state = cursor.fetchone() or (False, None)
        return [name, str(state)] if is_counted and state is not None else None

    def _types(self, cursor: Any) -> dict[str, str]:
        cursor.execute(f"SELECT * FROM {self._address.selection.origin()} LIMIT 0")
        schema = cursor.fetch_record_batch().schema
        refuse_twins(schema.names, self.shown)
        return {field.name: (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode() for field in schema}

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        import pyarrow as pa

        dbapi = needed("adbc_driver_postgresql.dbapi", self.shown)
        manager = needed("adbc_driver_manager", self.shown)
        try:
            with dbapi.connect(_with_patience(self._address.url)) as connection, connection.cursor() as cursor:
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
            return InputError(f"The user of {self.shown} may not read it; grant the right to, or take another user.")
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


def _with_patience(url: str) -> str:
    """Add limits of time to an address, where neither it nor the environment sets them."""
    if "://" not in url:
        # libpq's other form, host=... user=...; the last of two settings counts there, and ours come first.
        return " ".join([*(f"{name}={value}" for name, value in _PATIENCE.items()), url])
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    if "PGCONNECT_TIMEOUT" in os.environ:
        given.setdefault("connect_timeout", os.environ["PGCONNECT_TIMEOUT"])
    settings = urlencode({**_PATIENCE, **given}, quote_via=quote)
    # Not urlunsplit: it leaves out the slashes of an address without a host.
    return f"{url.partition('?')[0]}?{settings}"


def _read_as(name: str, kind: str) -> str:
    """Return the expression that reads a column in a type that the pipeline takes."""
    if kind in _AS_THEY_ARE:
        return quoted(name)
    if kind == "numeric":
        return f"{quoted(name)}::float8"
    if kind == "money":
        return f"{quoted(name)}::numeric::float8"
    if kind == "interval":
        return f"extract(epoch FROM {quoted(name)})::float8"
    return f"{quoted(name)}::text"
