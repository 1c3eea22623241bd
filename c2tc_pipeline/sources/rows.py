"""From rows of Python values to Arrow batches, for databases that speak no Arrow.

What a database calls a column's type is a promise that drivers keep in their own ways, so types are decided by the
values of the whole column. Rows are kept in between, on disk where they are many: a query is asked once.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import reduce
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.csv_types import CellType, ColumnGuess, cast_column
from c2tc_pipeline.storage.artefact import ScratchDirectory

if TYPE_CHECKING:
    import pyarrow as pa

KEPT_BYTES = 1 << 26


class Cells(StrEnum):
    """What the cells of a column have in common.

    Examples
    --------
    >>> Cells("whole") is Cells.WHOLE
    True
    """

    EMPTY = "empty"
    BOOLEAN = "boolean"
    WHOLE = "whole"
    NUMBER = "number"
    MOMENT = "moment"
    INSTANT = "instant"
    TEXT = "text"
    BYTES = "bytes"


# Later ones hold the values of earlier ones without loss that would matter.
_WIDENING = ((Cells.BOOLEAN, Cells.WHOLE, Cells.NUMBER), (Cells.MOMENT, Cells.INSTANT))


def joined(first: Cells, second: Cells) -> Cells:
    """Return what cells of two kinds have in common.

    Examples
    --------
    >>> joined(Cells.WHOLE, Cells.NUMBER).value, joined(Cells.WHOLE, Cells.MOMENT).value
    ('number', 'text')
    """
    if first is second or second is Cells.EMPTY:
        return first
    if first is Cells.EMPTY:
        return second
    for order in _WIDENING:
        if first in order and second in order:
            return order[max(order.index(first), order.index(second))]
    return Cells.TEXT


def typed_batches(
    names: Sequence[str],
    chunks: Iterable[Sequence[Sequence[Any]]],
    *,
    shown: str,
    declared: Mapping[str, CellType] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield rows as batches of one schema; at least one batch.

    Parameters
    ----------
    names : sequence of str
        The columns.
    chunks : iterable of sequences of rows
        A row is a sequence of Python values, one a column.
    shown : str
        The source, for messages.
    declared : mapping of str to CellType, optional
        Columns that the database calls true/false or moments but delivers as whole numbers or text.

    Examples
    --------
    >>> chunks = [[(1, "x"), (None, "y")], [(2.5, None)]]
    >>> [batch.to_pylist() for batch in typed_batches(["a", "b"], chunks, shown="db")]
    [[{'a': 1.0, 'b': 'x'}, {'a': None, 'b': 'y'}], [{'a': 2.5, 'b': None}]]
    """
    import pyarrow as pa

    looks = [_Look((declared or {}).get(name)) for name in names]
    with _Kept() as kept:
        for chunk in chunks:
            if chunk:
                columns = [look.array(cells) for look, cells in zip(looks, zip(*chunk, strict=True), strict=True)]
                kept.add(pa.RecordBatch.from_arrays(columns, names=list(names)))
        for name, look in zip(names, looks, strict=True):
            if look.has_mixed_bytes:
                raise InputError(f"Column {name!r} of {shown} holds bytes beside other values; read it by a query.")
        schema = pa.schema([(name, look.type) for name, look in zip(names, looks, strict=True)])
        is_empty = True
        for batch in kept.all():
            is_empty = False
            cells = [look.final(column) for look, column in zip(looks, batch.columns, strict=True)]
            yield pa.RecordBatch.from_arrays(cells, schema=schema)
        if is_empty:
            yield pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


class _Look:
    """What is known of one column."""

    def __init__(self, declared: CellType | None) -> None:
        self.declared = declared
        self.cells = Cells.EMPTY
        self.has_mixed_bytes = False
        self._guess = ColumnGuess()
        self._is_flag = True

    def array(self, cells: Sequence[Any]) -> pa.Array:
        """Take cells into account, and return them in the narrowest type that holds these."""
        import pyarrow as pa

        kinds = {_kind(python) for python in {type(cell) for cell in cells} - {type(None)}}
        with_bytes = Cells.BYTES in kinds or self.cells is Cells.BYTES
        values, kind = _array(cells, reduce(joined, sorted(kinds), Cells.EMPTY))
        self.cells = joined(self.cells, kind)
        self.has_mixed_bytes = self.has_mixed_bytes or (with_bytes and self.cells is not Cells.BYTES)
        if self.declared is CellType.BOOLEAN and kind is Cells.WHOLE:
            self._is_flag = self._is_flag and set(cells) <= {0, 1, None}
        if self.declared is CellType.MOMENT and kind is Cells.TEXT:
            self._guess.look_at(values)
        return values if kind is not Cells.EMPTY else pa.nulls(len(cells))

    @property
    def _converts(self) -> bool:
        if self.declared is CellType.BOOLEAN:
            return self.cells is Cells.WHOLE and self._is_flag
        return self.declared is CellType.MOMENT and self.cells is Cells.TEXT and self._guess.decided is CellType.MOMENT

    @property
    def type(self) -> pa.DataType:
        import pyarrow as pa

        if self._converts:
            return pa.bool_() if self.declared is CellType.BOOLEAN else pa.timestamp("us")
        return _type(self.cells)

    def final(self, values: pa.Array) -> pa.Array:
        """Return cells in the type of the whole column."""
        import pyarrow as pa

        if self._converts and self.declared is CellType.MOMENT and pa.types.is_string(values.type):
            return cast_column(values, CellType.MOMENT)
        return values if values.type == self.type else values.cast(self.type)


def _kind(python: type) -> Cells:
    if issubclass(python, bool):
        return Cells.BOOLEAN
    if issubclass(python, int):
        return Cells.WHOLE
    if issubclass(python, float | decimal.Decimal | datetime.timedelta):
        return Cells.NUMBER
    if issubclass(python, datetime.date):
        return Cells.MOMENT
    return Cells.BYTES if issubclass(python, bytes | bytearray | memoryview) else Cells.TEXT


def _array(cells: Sequence[Any], kind: Cells) -> tuple[pa.Array, Cells]:
    import pyarrow as pa

    match kind:
        case Cells.EMPTY:
            return pa.nulls(len(cells)), kind
        case Cells.WHOLE:
            try:
                return pa.array(cells, pa.int64()), kind
            except (OverflowError, pa.ArrowInvalid):
                # As in CSV: a float would be another number.
                return _array(cells, Cells.TEXT)
        case Cells.NUMBER:
            return pa.array([None if cell is None else _number(cell) for cell in cells], pa.float64()), kind
        case Cells.MOMENT:
            moments = [None if cell is None else _moment(cell) for cell in cells]
            if any(moment is not None and moment.tzinfo is not None for moment in moments):
                moments = [moment if moment is None or moment.tzinfo else _in_utc(moment) for moment in moments]
                return pa.array(moments, pa.timestamp("us", "UTC")), Cells.INSTANT
            return pa.array(moments, pa.timestamp("us")), kind
        case Cells.TEXT:
            return pa.array([None if cell is None else str(cell) for cell in cells], pa.string()), kind
        case Cells.BYTES:
            return pa.array([None if cell is None else bytes(cell) for cell in cells], pa.binary()), kind
        case _:
            return pa.array(cells, _type(kind)), kind


def _number(cell: Any) -> float:
    return cell.total_seconds() if isinstance(cell, datetime.timedelta) else float(cell)


def _moment(cell: datetime.date) -> datetime.datetime:
    return cell if isinstance(cell, datetime.datetime) else datetime.datetime(cell.year, cell.month, cell.day)


def _in_utc(moment: datetime.datetime) -> datetime.datetime:
    return moment.replace(tzinfo=datetime.UTC)


def _type(kind: Cells) -> pa.DataType:
    import pyarrow as pa

    return {
        Cells.BOOLEAN: pa.bool_(),
        Cells.WHOLE: pa.int64(),
        Cells.NUMBER: pa.float64(),
        Cells.MOMENT: pa.timestamp("us"),
        Cells.INSTANT: pa.timestamp("us", "UTC"),
        Cells.BYTES: pa.binary(),
    }.get(kind, pa.string())


class _Kept:
    """Batches of changing schemas, kept in memory while they are few, then on disk."""

    def __init__(self) -> None:
        self._few: list[pa.RecordBatch] = []
        self._bytes = 0
        self._folder: ScratchDirectory | None = None
        self._files: list[Path] = []
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, batch: pa.RecordBatch) -> None:
        if self._folder is None:
            self._few.append(batch)
            self._bytes += batch.nbytes
            if self._bytes > KEPT_BYTES:
                self._folder = ScratchDirectory()
                few, self._few = self._few, []
                for early in few:
                    self._write(early)
            return
        self._write(batch)

    def all(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        self._close()
        yield from self._few
        for path in self._files:
            with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
                yield from reader

    def _write(self, batch: pa.RecordBatch) -> None:
        import pyarrow as pa

        assert self._folder is not None
        if self._writer is None or self._writer[1] != batch.schema:
            self._close()
            path = Path(self._folder.name) / str(len(self._files))
            self._files.append(path)
            self._writer = pa.ipc.new_stream(str(path), batch.schema), batch.schema
        self._writer[0].write_batch(batch)

    def _close(self) -> None:
        if self._writer is not None:
            self._writer[0].close()
            self._writer = None
