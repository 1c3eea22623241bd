"""Any other database with an SQLAlchemy driver: rows by a server-side cursor, types by their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.databases import ServerAddress, ServerSource, checked_fields
from c2tc_pipeline.sources.location import is_file_address
from c2tc_pipeline.sources.source import BATCH_ROWS, Source, TableHeader, refuse_duplicate_columns
from c2tc_pipeline.sources.values import typed_batches

if TYPE_CHECKING:
    import pyarrow as pa

# Rows that a driver holds at once; Python rows are larger than Arrow's.
_FETCHED_ROWS = 10_000


class SqlalchemySource(ServerSource):
    """A table or query of a database that SQLAlchemy can reach."""

    kind = "sqlalchemy"

    @classmethod
    def from_address(cls, address: str) -> Source | None:
        found = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", address)
        settings = {name for name, _ in parse_qsl(address.partition("?")[2], keep_blank_values=True)}
        if found is None or is_file_address(address) or not settings & {"table", "query"}:
            return None
        return cls(ServerAddress.parse(address))

    @classmethod
    def address_of(cls, fields: Any) -> str:
        return f"sqlalchemy://{checked_fields(cls.kind, fields, {'table', 'query', 'dsn_env'}) or '?'}"

    def header(self) -> TableHeader:
        def read() -> TableHeader:
            with self._result() as result:
                return TableHeader(self._names(result), rows=None)

        return self.retried(read)

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        with self._result() as result:
            names = self._names(result)
            wanted = self.chosen(columns, names)
            places = [names.index(name) for name in wanted]
            chunks = (
                [tuple(row[place] for place in places) for row in part]
                for part in result.partitions(min(rows, _FETCHED_ROWS))
            )
            yield from typed_batches(wanted, chunks, shown=self.shown)

    def _names(self, result: Any) -> tuple[str, ...]:
        names = tuple(str(name) for name in result.keys())  # noqa: SIM118  # a result is not a dict
        refuse_duplicate_columns(names, self.shown)
        return names

    def _statement(self, alchemy: Any) -> Any:
        selection = self._address.selection
        if selection.table is None:
            return alchemy.text(f"SELECT * FROM {selection.origin()}")
        *schema, name = selection.table.split(".")
        origin = alchemy.table(name, schema=".".join(schema) or None)
        return alchemy.select(alchemy.text("*")).select_from(origin)

    @contextmanager
    def _result(self) -> Iterator[Any]:
        alchemy = self.needed("sqlalchemy")
        problems = alchemy.exc
        try:
            # No pool, so that a broken connection is not used again.
            engine = alchemy.create_engine(self._address.url, poolclass=alchemy.pool.NullPool)
        except (problems.NoSuchModuleError, problems.ArgumentError):
            raise InputError(f"SQLAlchemy knows no database as in {self.shown}; check the address.") from None
        except ImportError as error:
            raise InputError(
                f"The source {self.shown} needs the driver {error.name or 'of its database'}; install it."
            ) from None
        try:
            with engine.connect() as connection:
                streaming = connection.execution_options(stream_results=True, yield_per=_FETCHED_ROWS)
                with streaming.execute(self._statement(alchemy)) as result:
                    yield result
        except problems.ProgrammingError:
            raise InputError(f"The database refused to read {self.shown}; check table or query.") from None
        except (problems.NoSuchTableError, problems.StatementError, problems.InvalidRequestError) as error:
            if getattr(error, "connection_invalidated", False) or isinstance(
                error, problems.OperationalError | problems.InterfaceError
            ):
                raise ConnectionError(
                    f"The database of {self.shown} did not answer, refused to, or went away while it was read."
                ) from None
            raise InputError(f"The database could not read {self.shown}; check table or query.") from None
