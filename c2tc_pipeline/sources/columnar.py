"""Parquet and Arrow files: one schema for all parts of a table, damage to text, and what pandas wrote."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.location import Location
from c2tc_pipeline.sources.source import FileSource, Part, TableHeader, refuse_duplicate_columns, sliced
from c2tc_pipeline.sources.values import pipeline_schema, with_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

# Rows times steps of a range index stay within 64 bits.
_MAX_RANGE_STEP = 1 << 31
# From this size in bytes on a Parquet file is read in pieces, since a group of its rows may be large.
_LARGE_FILE = 1 << 28


class ColumnFile(Protocol):
    """An open file of typed columns."""

    schema: pa.Schema
    rows: int | None

    def batches(self, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Yield some columns of all rows."""


class ColumnarSource(FileSource):
    """Base of sources that are files of typed columns.

    A stored pandas index with a name is a column, before the others.
    """

    @abstractmethod
    def open_file(self, stream: BinaryIO, *, is_remote: bool) -> AbstractContextManager[ColumnFile]:
        """Open a file, given its bytes."""

    @contextmanager
    def opened(self, location: Location) -> Iterator[ColumnFile]:
        """Open a file; InputError where it is damaged."""
        import pyarrow as pa

        with location.open() as stream:
            try:
                with self.open_file(stream, is_remote=location.scheme != "file") as file:
                    yield file
            except InputError:
                raise
            except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
                if (isinstance(error, OSError) and error.errno is not None) or isinstance(error, ConnectionError):
                    raise
                raise InputError(
                    f"The file {location} is not a whole {self.format} file (truncated, damaged or of another kind); "
                    "write it anew."
                ) from None

    def described(self, parts: Sequence[Part]) -> TableHeader:
        schema, rows = self._joined(parts)
        return TableHeader(tuple(schema.names), rows)

    def read(self, parts: Sequence[Part], columns: list[str], rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        import pyarrow as pa

        whole, _ = self._joined(parts)
        schema = pa.schema([whole.field(name) for name in columns], metadata=whole.metadata)
        for number, part in enumerate(parts):
            for batch in with_schema(self._batches(part.location, columns, rows), schema):
                yield number, batch

    def _joined(self, parts: Sequence[Part]) -> tuple[pa.Schema, int | None]:
        """Return the schema that all parts share, and the rows of all of them if the files state them."""
        import pyarrow as pa

        whole: pa.Schema | None = None
        rows: int | None = 0
        for part in parts:
            with self.opened(part.location) as file:
                schema = _schema(file.schema, str(part.location), is_part=len(parts) > 1)
                rows = None if rows is None or file.rows is None else rows + file.rows
            if whole is None:
                whole = schema
                continue
            if difference := _difference(whole, schema):
                raise InputError(
                    f"The part {part.name} of {self.shown} differs from those before it: {difference}; write it like "
                    "the others."
                )
            # A part without any value in a column may have another type for it.
            whole = pa.unify_schemas([whole, pa.schema([schema.field(name) for name in whole.names])])
        assert whole is not None
        return whole, rows

    def _batches(self, location: Location, wanted: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file. Arrow takes the bytes of text as they are."""
        import pyarrow as pa

        with self.opened(location) as file:
            stored = [name for name in wanted if name in file.schema.names]
            ranges = [(name, first, step) for name, first, step in _ranges(file.schema) if name in wanted]
            start = 0
            for batch in file.batches(stored, rows):
                _refuse_wrong_cells(batch, str(location))
                for name, first, step in ranges:
                    numbers = range(first + start * step, first + (start + batch.num_rows) * step, step)
                    batch = batch.append_column(name, pa.array(numbers, pa.int64()))
                start += batch.num_rows
                yield batch


def _difference(whole: pa.Schema, part: pa.Schema) -> str | None:
    import pyarrow.types as types

    for name in sorted({*whole.names} ^ {*part.names}):
        return f"it has no column {name!r}" if name in whole.names else f"only it has a column {name!r}"
    for name in part.names:
        ours, theirs = part.field(name).type, whole.field(name).type
        if ours != theirs and not types.is_null(ours) and not types.is_null(theirs):
            return f"its column {name!r} is of type {ours}, theirs of type {theirs}"
    return None


def _schema(stored: pa.Schema, shown: str, *, is_part: bool) -> pa.Schema:
    """Return the columns of a file, the pandas index first where it has a name."""
    import pyarrow as pa
    import pyarrow.types as types

    refuse_duplicate_columns(stored.names, shown)
    described = _pandas_metadata(stored)
    named = [name for name in described["index_columns"] if isinstance(name, str) and name in stored.names]
    fields = [pa.field(name, pa.int64()) for name, *_ in _ranges(stored)]
    fields += [stored.field(name) for name in (*named, *(name for name in stored.names if name not in named))]
    fields = [field for field in fields if not field.name.startswith("__index_level_")]
    refuse_duplicate_columns([field.name for field in fields], shown)
    if is_part:
        # Parts may number their categories differently.
        fields = [
            pa.field(field.name, field.type.value_type) if types.is_dictionary(field.type) else field
            for field in fields
        ]
    plain = pipeline_schema(pa.schema([field.with_nullable(True).remove_metadata() for field in fields]))
    described_schema = plain.with_metadata({b"pandas": json.dumps({**described, "index_columns": []}).encode()})
    return described_schema if _is_plausible(described_schema) else plain


def _is_plausible(schema: pa.Schema) -> bool:
    """Return whether pandas can apply the types that a file's metadata claim; the values are complete without them."""
    try:
        return [str(name) for name in schema.empty_table().to_pandas().columns] == schema.names
    except Exception:
        return False


def _pandas_metadata(schema: pa.Schema) -> dict[str, Any]:
    """Return the metadata that pandas wrote into a file; it may hold anything, so it is only a hint."""
    found = None
    with suppress(ValueError):
        found = schema.pandas_metadata
    if isinstance(found, dict) and isinstance(found.get("index_columns"), list):
        return found
    return {"index_columns": []}


def _ranges(schema: pa.Schema) -> list[tuple[str, int, int]]:
    """Name, start and step of pandas range indexes, whose values are not stored."""
    found = []
    for index in _pandas_metadata(schema)["index_columns"]:
        if not isinstance(index, dict) or not isinstance(index.get("name"), str):
            continue
        first, step = index.get("start"), index.get("step")
        if type(first) is int and type(step) is int and step and max(abs(first), abs(step)) < _MAX_RANGE_STEP:
            found.append((index["name"], first, step))
    return found


def _refuse_wrong_cells(batch: pa.RecordBatch, shown: str) -> None:
    import pyarrow as pa
    import pyarrow.types as types

    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if types.is_primitive(column.type) or types.is_boolean(column.type):
            continue
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raise InputError(
                f"Column {name!r} of {shown} holds text that is not UTF-8, or is damaged; write the file anew."
            ) from None


class ArrowSource(ColumnarSource):
    """A file or stream of Arrow batches, or a folder of such files."""

    format = "Arrow"
    endings = (".feather", ".arrow", ".arrows", ".ipc")
    signature = rb"ARROW1"

    @contextmanager
    def open_file(self, stream: BinaryIO, *, is_remote: bool) -> Iterator[ColumnFile]:
        import pyarrow as pa

        is_file = stream.read(6) == self.signature
        stream.seek(0)
        with pa.ipc.open_file(stream) if is_file else pa.ipc.open_stream(stream) as reader:
            yield _ArrowFile(reader)


class _ArrowFile:
    # The number of rows is known only after reading all batches.
    rows: int | None = None

    def __init__(self, reader: pa.RecordBatchFileReader | pa.RecordBatchStreamReader) -> None:
        self._reader, self.schema = reader, reader.schema

    def batches(self, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the file's batches, cut to size."""
        count = getattr(self._reader, "num_record_batches", None)
        stored = self._reader if count is None else map(self._reader.get_batch, range(count))
        yield from sliced((batch.select(columns) for batch in stored), rows)


class ParquetSource(ColumnarSource):
    """A Parquet file, or a folder of Parquet files."""

    format = "Parquet"
    endings = (".parquet", ".pq")
    signature = rb"PAR1"

    @contextmanager
    def open_file(self, stream: BinaryIO, *, is_remote: bool) -> Iterator[ColumnFile]:
        import pyarrow.parquet as pq

        # Over a network a group is fetched in few large pieces; from a disk it is read as it is needed. Arrow trusts
        # the size that a page claims when it reads piece by piece, and not when it has all of a column's bytes: small
        # files are read so, since a few bytes could claim gigabytes.
        size = 1 << 20 if not is_remote and stream.seek(0, os.SEEK_END) > _LARGE_FILE else 0
        stream.seek(0)
        yield _ParquetFile(
            pq.ParquetFile(stream, page_checksum_verification=True, pre_buffer=is_remote, buffer_size=size)
        )


class _ParquetFile:
    def __init__(self, file: ParquetFile) -> None:
        self._file = file
        self.schema = file.schema_arrow
        self.rows: int | None = int(file.metadata.num_rows)

    def batches(self, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows group by group: given all groups, Arrow fetches all of them before the first batch.

        Arrow ends without an error where a column is shorter than the file says.
        """
        for group in range(self._file.num_row_groups):
            missing = self._file.metadata.row_group(group).num_rows
            for batch in self._file.iter_batches(batch_size=rows, row_groups=[group], columns=columns):
                missing -= batch.num_rows
                yield batch
            if missing:
                raise ValueError("not as many rows as it says")
