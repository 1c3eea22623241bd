"""Any other database that SQLAlchemy has a driver for: rows by a server-side cursor, types by their values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.retries import with_retries
from c2tc_pipeline.sources.packages import needed
from c2tc_pipeline.sources.rows import typed_batches
from c2tc_pipeline.sources.server_source import ServerSource
from c2tc_pipeline.sources.source import BATCH_ROWS, TableHeader, refuse_twins

if TYPE_CHECKING:
    import pyarrow as pa

# What a driver has in its hands at once; Python rows are larger than Arrow's.
_FETCHED_ROWS = 10_000


class SqlalchemySource(ServerSource):
    """A table or query of a database that SQLAlchemy can reach.

    Parameters
    ----------
    address : ServerAddress
        Where, and what to read.

    Examples
    --------
    >>> from c2tc_pipeline.sources.server_address import ServerAddress
    >>> SqlalchemySource(ServerAddress.parse("mysql+pymysql://ann@db.example/sales?table=people")).shown
    'mysql+pymysql://db.example/sales?table=people'
    """

    def header(self) -> TableHeader:
        def ask() -> TableHeader:
            with self._result() as result:
                return TableHeader(self._names(result), rows=None)

        return with_retries(ask, self.tries)

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
        names = tuple(str(name) for name in result.keys())  # noqa: SIM118  # a result is no dict
        refuse_twins(names, self.shown)
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
        alchemy = needed("sqlalchemy", self.shown)
        problems = needed("sqlalchemy.exc", self.shown)
        try:
            # No pool: a connection that was cut off must not come back from it.
            engine = alchemy.create_engine(self._address.url, poolclass=needed("sqlalchemy.pool", self.shown).NullPool)
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
