"""Values as the pipeline takes them, whatever a source calls their type, and the hash of a table's values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from c2tc_pipeline.storage.hashing import hash_json

if TYPE_CHECKING:
    import pyarrow as pa


def taken_type(kind: pa.DataType, *, widened: bool = False) -> pa.DataType:
    """Return the type in which values of a type go through the pipeline.

    Decimals become floats and dates become moments, as they do when they are read from CSV.

    Parameters
    ----------
    kind : pyarrow.DataType
        What the source delivers.
    widened : bool
        Whether numbers have 64 bits too: how narrow a database stores them says nothing about the values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> taken_type(pa.date32()), taken_type(pa.decimal128(9, 2)), taken_type(pa.int16(), widened=True)
    (TimestampType(timestamp[us]), DataType(double), DataType(int64))
    """
    import pyarrow as pa
    import pyarrow.types as types

    if types.is_decimal(kind):
        return pa.float64()
    if types.is_date(kind):
        return pa.timestamp("us")
    if widened:
        if types.is_integer(kind) and kind != pa.uint64():
            return pa.int64()
        if types.is_floating(kind):
            return pa.float64()
        if types.is_dictionary(kind):
            return taken_type(kind.value_type, widened=True)
        if types.is_large_string(kind) or types.is_string_view(kind):
            return pa.string()
        if types.is_timestamp(kind):
            return pa.timestamp("us", kind.tz)
    return kind


def taken_schema(schema: pa.Schema, *, widened: bool = False) -> pa.Schema:
    """Return a schema with the types in which the pipeline takes its values; metadata stay.

    Examples
    --------
    >>> import pyarrow as pa
    >>> taken_schema(pa.schema({"a": pa.decimal128(9, 2)})).types
    [DataType(double)]
    """
    import pyarrow as pa

    fields = [pa.field(field.name, taken_type(field.type, widened=widened)) for field in schema]
    return pa.schema(fields, metadata=schema.metadata)


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch under a schema of the same names; what has the right type already is not copied.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"b": pa.array([1], pa.int8()), "a": ["x"]})
    >>> fitted(batch, pa.schema({"a": pa.string(), "b": pa.int64()})).to_pydict()
    {'a': ['x'], 'b': [1]}
    """
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([_as(batch.column(field.name), field.type) for field in schema], schema=schema)


def _as(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values if values.type == kind else values.cast(kind, safe=False)


class ValuesHash:
    """The hash of a table's values: of names, types and cells in order, however they were divided into batches.

    Examples
    --------
    >>> import pyarrow as pa
    >>> def hashed(*lists):
    ...     values = ValuesHash()
    ...     for batch in values.watching(pa.record_batch({"a": cells}) for cells in lists):
    ...         pass
    ...     return values.hexdigest()
    >>> hashed(["x", None], ["y"]) == hashed(["x"], [None, "y"]), hashed(["xy", None]) == hashed(["x", "y"])
    (True, False)
    """

    def __init__(self) -> None:
        self._schema: list[list[str]] = []
        # Of each column: which cells are missing or how long they are, and their bytes one after the other.
        self._columns: list[tuple[hashlib._Hash, hashlib._Hash]] = []
        self._rows = 0

    def watching(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches and take each into the hash."""
        for batch in batches:
            self.update(batch)
            yield batch

    def update(self, batch: pa.RecordBatch) -> None:
        """Take a batch into the hash."""
        if not self._columns:
            self._schema = [[field.name, str(field.type)] for field in batch.schema]
            self._columns = [(hashlib.sha256(), hashlib.sha256()) for _ in batch.schema]
        self._rows += batch.num_rows
        for (marks, cells), values in zip(self._columns, batch.columns, strict=True):
            for digest, content in zip((marks, cells), _plain_bytes(values), strict=True):
                digest.update(content)

    def hexdigest(self) -> str:
        """Return the hash of what was taken in."""
        return hash_json([self._rows, self._schema, [[m.hexdigest(), c.hexdigest()] for m, c in self._columns]])


def _plain_bytes(values: pa.Array) -> tuple[bytes, bytes]:
    """Return which cells are missing or how long they are, and the bytes of the others; equal for equal values."""
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
        return _plain_bytes(values.dictionary_decode())
    if not types.is_large_binary(values.type):
        # What is neither number nor text, a list for example, is hashed as it is written.
        text = values if types.is_string(values.type) or types.is_binary(values.type) else values.cast(pa.string())
        values = text.cast(pa.large_binary())
    lengths = pc.binary_length(values).fill_null(-1).to_numpy(zero_copy_only=False).astype("<i8")
    cells = values.drop_null()
    if len(cells) == 0:
        return lengths.tobytes(), b""
    _, offsets, content = cells.buffers()
    ends = np.frombuffer(offsets, dtype="<i8")[cells.offset : cells.offset + len(cells) + 1]
    return lengths.tobytes(), b"" if content is None else content.slice(ends[0], ends[-1] - ends[0]).to_pybytes()
