"""Column types, conversion and hashing of values, the same for every source.

Types are decided over all cells of a column: :class:`TextColumn` for text such as CSV, :func:`typed_batches` for rows
of Python values from databases that don't deliver Arrow.
"""

from __future__ import annotations

import datetime
import decimal
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.manifest import hash_json

if TYPE_CHECKING:
    import pyarrow as pa

# "None" and "?" are left out on purpose: in real tables they are answers as often as missing values.
MISSING_SPELLINGS = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL")
# Rows of Python values are kept in memory up to this size, beyond it in an anonymous file.
KEPT_BYTES = 1 << 24


class CellType(StrEnum):
    """Types of cells."""

    EMPTY = "empty"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    DATETIME = "datetime"
    ZONED_DATETIME = "zoned datetime"
    BYTES = "bytes"
    TEXT = "text"

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of a column with such cells."""
        import pyarrow as pa

        return {
            CellType.BOOLEAN: pa.bool_(),
            CellType.INTEGER: pa.int64(),
            CellType.NUMBER: pa.float64(),
            CellType.DATETIME: pa.timestamp("us"),
            CellType.ZONED_DATETIME: pa.timestamp("us", "UTC"),
            CellType.BYTES: pa.binary(),
        }.get(self, pa.string())


# From the narrowest type to the widest.
_PATTERNS = {
    CellType.BOOLEAN: r"^(?i:true|false)$",
    # No leading zeros: 00501 is a postcode and would become 501.
    CellType.INTEGER: r"^[+-]?(0|[1-9][0-9]*)$",
    CellType.NUMBER: r"^[+-]?((((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)|(?i:inf|infinity))$",
    CellType.DATETIME: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?$",
    CellType.ZONED_DATETIME: (
        r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
    ),
}

# In this order, since a bool is an int.
_PYTHON_TYPES: tuple[tuple[tuple[type, ...], CellType], ...] = (
    ((bool,), CellType.BOOLEAN),
    ((int,), CellType.INTEGER),
    ((float, decimal.Decimal, datetime.timedelta), CellType.NUMBER),
    ((datetime.date,), CellType.DATETIME),
    ((bytes, bytearray, memoryview), CellType.BYTES),
)


class TextColumn:
    """Decides the type of a column of text, batch by batch, and converts its cells.

    In this order: true/false, 64-bit integers, numbers, ISO dates and times without a zone or all with one, text.
    Larger integers stay text, since a float would change them. Numbers with separators stay text here;
    :mod:`c2tc_pipeline.tables.readings` decides them.
    """

    def __init__(self) -> None:
        self._possible = list(_PATTERNS)
        # Cells may match a pattern and still be no value: too large for 64 bits, or the 31st of June.
        self._convertible = {CellType.INTEGER: True, CellType.DATETIME: True, CellType.ZONED_DATETIME: True}
        self._is_empty = True

    def add(self, text: pa.Array) -> None:
        """Narrow the possible types by more cells; missing cells are null."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self._possible or text.null_count == len(text):
            return
        distinct = pc.unique(_trimmed(text)).drop_null()
        if not len(distinct):
            return
        self._is_empty = False
        self._possible = [
            kind for kind in self._possible if pc.all(pc.match_substring_regex(distinct, _PATTERNS[kind])).as_py()
        ]
        for kind in self._possible:
            if self._convertible.get(kind, False):
                try:
                    _converted(distinct, kind)
                except pa.ArrowInvalid:
                    self._convertible[kind] = False

    @property
    def type(self) -> CellType:
        """The narrowest type that holds every cell."""
        if self._is_empty or not self._possible or not self._convertible.get(self._possible[0], True):
            return CellType.TEXT
        return self._possible[0]

    def convert(self, text: pa.Array) -> pa.Array:
        """Convert cells to the type of the column; text is kept as it is written."""
        return text if self.type is CellType.TEXT else _converted(_trimmed(text), self.type)


def _trimmed(text: pa.Array) -> pa.Array:
    """Return cells without blanks around them; a cell that spells a missing value is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(text)
    is_missing = pc.is_in(trimmed, value_set=pa.array(MISSING_SPELLINGS))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), trimmed)


def _converted(trimmed: pa.Array, kind: CellType) -> pa.Array:
    import pyarrow.compute as pc

    if kind is CellType.BOOLEAN:
        return pc.equal(pc.ascii_lower(trimmed), "true")
    if kind in (CellType.DATETIME, CellType.ZONED_DATETIME):
        return pc.cast(trimmed, kind.arrow)
    unsigned = pc.ascii_ltrim(trimmed, characters="+")
    return pc.cast(unsigned, kind.arrow)


def typed_batches(
    names: Sequence[str],
    chunks: Iterable[Sequence[Sequence[Any]]],
    *,
    shown: str,
    declared: Mapping[str, CellType] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield rows of Python values as batches of one schema; at least one batch.

    Rows are kept until all of them have decided the types. ``declared`` names columns that a database calls boolean or
    datetime but delivers as integers or text.
    """
    import pyarrow as pa

    columns = [_PythonColumn((declared or {}).get(name)) for name in names]
    with tempfile.SpooledTemporaryFile(max_size=KEPT_BYTES) as kept:
        count = 0
        for chunk in chunks:
            if chunk:
                arrays = [column.array(cells) for column, cells in zip(columns, zip(*chunk, strict=True), strict=True)]
                batch = pa.RecordBatch.from_arrays(arrays, names=list(names))
                # The schema may change from batch to batch, so each is a stream of its own.
                with pa.ipc.new_stream(kept, batch.schema) as writer:
                    writer.write_batch(batch)
                count += 1
        for name, column in zip(names, columns, strict=True):
            if column.mixes_bytes:
                raise InputError(f"Column {name!r} of {shown} holds bytes beside other values; read it by a query.")
        schema = pa.schema([(name, column.type.arrow) for name, column in zip(names, columns, strict=True)])
        kept.seek(0)
        final = (
            pa.RecordBatch.from_arrays(
                [column.final(cells) for column, cells in zip(columns, batch.columns, strict=True)], schema=schema
            )
            for _ in range(count)
            for batch in pa.ipc.open_stream(kept)
        )
        yield from with_schema(final, schema)


class _PythonColumn:
    """The type of a column of Python values, decided chunk by chunk."""

    def __init__(self, declared: CellType | None) -> None:
        self.mixes_bytes = False
        self._declared = declared
        self._cells = CellType.EMPTY
        self._text = TextColumn()
        self._is_flag = True

    def array(self, cells: Sequence[Any]) -> pa.Array:
        """Widen the type for these cells, and return them in the narrowest type that holds them."""
        kinds = {_cell_type(python) for python in {type(cell) for cell in cells} - {type(None)}}
        with_bytes = CellType.BYTES in kinds or self._cells is CellType.BYTES
        values, kind = _python_array(cells, reduce(_joined, sorted(kinds), CellType.EMPTY))
        self._cells = _joined(self._cells, kind)
        self.mixes_bytes = self.mixes_bytes or (with_bytes and self._cells is not CellType.BYTES)
        if self._declared is CellType.BOOLEAN and kind is CellType.INTEGER:
            self._is_flag = self._is_flag and set(cells) <= {0, 1, None}
        if self._declared is CellType.DATETIME and kind is CellType.TEXT:
            self._text.add(values)
        return values

    @property
    def type(self) -> CellType:
        """The type of all cells so far; the declared one where they fit it."""
        if self._declared is CellType.BOOLEAN and self._cells is CellType.INTEGER and self._is_flag:
            return CellType.BOOLEAN
        is_datetime = self._cells is CellType.TEXT and self._text.type is CellType.DATETIME
        return CellType.DATETIME if self._declared is CellType.DATETIME and is_datetime else self._cells

    def final(self, values: pa.Array) -> pa.Array:
        """Return cells in the type of the column."""
        if values.type == self.type.arrow:
            return values
        # Arrow's own cast refuses blanks and spellings of missing values.
        is_text = self.type is CellType.DATETIME and values.type == CellType.TEXT.arrow
        return self._text.convert(values) if is_text else values.cast(self.type.arrow)


def _joined(first: CellType, second: CellType) -> CellType:
    """Return the type that holds cells of two types."""
    if first is second or second is CellType.EMPTY:
        return first
    if first is CellType.EMPTY:
        return second
    numbers = (CellType.BOOLEAN, CellType.INTEGER, CellType.NUMBER)
    for widening in (numbers, (CellType.DATETIME, CellType.ZONED_DATETIME)):
        if first in widening and second in widening:
            return max(first, second, key=widening.index)
    return CellType.TEXT


def _cell_type(python: type) -> CellType:
    return next((kind for types, kind in _PYTHON_TYPES if issubclass(python, types)), CellType.TEXT)


def _python_array(cells: Sequence[Any], kind: CellType) -> tuple[pa.Array, CellType]:
    import pyarrow as pa

    if kind is CellType.EMPTY:
        return pa.nulls(len(cells)), kind
    if kind is CellType.DATETIME and any(getattr(cell, "tzinfo", None) is not None for cell in cells):
        kind = CellType.ZONED_DATETIME
    convert: Any = {
        CellType.BOOLEAN: bool,
        CellType.INTEGER: int,
        CellType.NUMBER: lambda cell: cell.total_seconds() if hasattr(cell, "total_seconds") else float(cell),
        CellType.DATETIME: _datetime,
        CellType.ZONED_DATETIME: lambda cell: _datetime(cell, getattr(cell, "tzinfo", None) or datetime.UTC),
        CellType.BYTES: bytes,
        CellType.TEXT: str,
    }[kind]
    try:
        return pa.array([None if cell is None else convert(cell) for cell in cells], kind.arrow), kind
    except (OverflowError, pa.ArrowInvalid):
        # As in CSV: a float would change an integer too large for 64 bits.
        return _python_array(cells, CellType.TEXT)


def _datetime(cell: datetime.date, zone: datetime.tzinfo | None = None) -> datetime.datetime:
    if isinstance(cell, datetime.datetime):
        return cell.replace(tzinfo=zone)
    return datetime.datetime(cell.year, cell.month, cell.day, tzinfo=zone)


def pipeline_type(kind: pa.DataType, *, widened: bool = False) -> pa.DataType:
    """Return the type in which values of an Arrow type go through the pipeline.

    Decimals become floats and dates become datetimes, as when they are read from CSV. ``widened`` gives numbers 64
    bits: how narrow a database stores them says nothing about the values.
    """
    import pyarrow as pa
    import pyarrow.types as types

    if types.is_decimal(kind) or (widened and types.is_floating(kind)):
        return pa.float64()
    if types.is_date(kind):
        return pa.timestamp("us")
    if not widened:
        return kind
    if types.is_dictionary(kind):
        return pipeline_type(kind.value_type, widened=True)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.int64() if types.is_integer(kind) and kind != pa.uint64() else kind


def pipeline_schema(schema: pa.Schema, *, widened: bool = False) -> pa.Schema:
    """Return a schema with the types of :func:`pipeline_type`; metadata stay."""
    import pyarrow as pa

    fields = [pa.field(field.name, pipeline_type(field.type, widened=widened)) for field in schema]
    return pa.schema(fields, metadata=schema.metadata)


def with_schema(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield batches under a schema of the same names; one empty batch where there is none."""
    import pyarrow as pa

    is_empty = True
    for batch in batches:
        is_empty = False
        columns = [batch.column(field.name) for field in schema]
        yield pa.RecordBatch.from_arrays(
            [
                column if column.type == field.type else column.cast(field.type, safe=False)
                for column, field in zip(columns, schema, strict=True)
            ],
            schema=schema,
        )
    if is_empty:
        yield pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


class ValuesHash:
    """Hash of a table's names, types and cells in order; the division into batches does not matter."""

    def __init__(self) -> None:
        self._schema: list[list[str]] = []
        # Two hashes for each column: of the presence or length of its cells, and of their bytes.
        self._columns: list[tuple[Any, Any]] = []
        self._rows = 0

    def watching(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches and add each to the hash."""
        for batch in batches:
            self.update(batch)
            yield batch

    def update(self, batch: pa.RecordBatch) -> None:
        """Add a batch to the hash."""
        if not self._columns:
            self._schema = [[field.name, str(field.type)] for field in batch.schema]
            self._columns = [(hashlib.sha256(), hashlib.sha256()) for _ in batch.schema]
        self._rows += batch.num_rows
        for digests, values in zip(self._columns, batch.columns, strict=True):
            for digest, content in zip(digests, _canonical_bytes(values), strict=True):
                digest.update(content)

    def hexdigest(self) -> str:
        """Return the hash of the batches so far."""
        return hash_json([self._rows, self._schema, [[m.hexdigest(), c.hexdigest()] for m, c in self._columns]])


def _canonical_bytes(values: pa.Array) -> tuple[bytes, bytes]:
    """Return the presence or length of each cell, and the bytes of those present; the same for equal values."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    if types.is_null(values.type):
        return bytes(len(values)), b""
    if types.is_boolean(values.type) or types.is_primitive(values.type):
        present = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=np.uint8)
        cells = values.drop_null()
        plain = cells.cast(pa.uint8()) if types.is_boolean(values.type) else cells.view(f"uint{values.type.bit_width}")
        return present.tobytes(), np.asarray(plain.to_numpy(zero_copy_only=False)).tobytes()
    if types.is_dictionary(values.type):
        return _canonical_bytes(values.dictionary_decode())
    if not types.is_large_binary(values.type):
        # Values that are neither numbers nor text, such as lists, are hashed as text.
        text = values if types.is_string(values.type) or types.is_binary(values.type) else values.cast(pa.string())
        values = text.cast(pa.large_binary())
    lengths = pc.binary_length(values).fill_null(-1).to_numpy(zero_copy_only=False).astype("<i8")
    return lengths.tobytes(), b"".join(values.drop_null().to_pylist())
