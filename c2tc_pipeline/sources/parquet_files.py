"""Parquet: one file, or a folder of parts that are one table; damage is detected where files carry checksums."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.location import Location, is_file_address
from c2tc_pipeline.sources.source import BATCH_ROWS, FileSource, Source, TableHeader, refuse_duplicate_columns
from c2tc_pipeline.sources.values import pipeline_schema, with_schema
from c2tc_pipeline.storage.hashing import hash_json

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

# From this size in bytes on a file is read in pieces, since a group of its rows may be large.
_LARGE_FILE = 1 << 28
# Rows times steps of a range index stay within 64 bits.
_MAX_RANGE_STEP = 1 << 31


class ParquetSource(FileSource):
    """A Parquet file, or a folder whose Parquet files are the parts of one table, in the order of their names.

    A stored pandas index with a name is a column, before the others.
    """

    endings = (".parquet", ".pq")

    @classmethod
    def from_address(cls, address: str, storage_options: Mapping[str, Any] | None = None) -> Source | None:
        found = super().from_address(address, storage_options)
        if found is not None or not is_file_address(address):
            return found
        location = Location.parse(address, storage_options)
        return cls(location) if location.is_folder() else None

    def header(self) -> TableHeader:
        schema, rows = self._described(self._parts())
        return TableHeader(tuple(schema.names), rows)

    def version(self) -> str:
        if not self.location.is_folder():
            return super().version()
        states = [(part.name, part.version()) for part in self._parts()]
        size = sum(int(state.partition("-")[0]) for _, state in states)
        return f"{size}-{hash_json(states)[:32]}"

    def digest(self) -> str:
        if not self.location.is_folder():
            return super().digest()
        return hash_json([(part.name, part.digest()) for part in self._parts()])

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        parts = self._parts()
        whole, _ = self._described(parts)
        wanted = self.chosen(columns, whole.names)
        schema = pa.schema([whole.field(name) for name in wanted], metadata=whole.metadata)
        yield from with_schema((batch for part in parts for batch in _part_batches(part, wanted, rows)), schema)

    def _parts(self) -> list[Location]:
        if not self.location.is_folder():
            return [self.location]
        shown = [(entry, inner) for entry, inner in self.location.entries() if not entry.name.startswith(("_", "."))]
        parts = [entry for entry, inner in shown if not inner and entry.name.lower().endswith(self.endings)]
        inner_folders = [entry.name for entry, inner in shown if inner]
        if not parts:
            raise InputError(
                f"The source {self.shown} is a folder; give the path of one file or of a folder of Parquet files."
            )
        if inner_folders:
            raise InputError(
                f"The folder {self.shown} holds the folder {inner_folders[0]!r}; put all parts of the table into one."
            )
        return parts

    def _described(self, parts: list[Location]) -> tuple[pa.Schema, int]:
        """Return the schema that all parts share, and the rows of all of them, from their footers."""
        import pyarrow as pa

        whole, rows = None, 0
        for part in parts:
            with _opened(part) as file:
                schema = _schema(file, str(part), is_part=len(parts) > 1)
                rows += int(file.metadata.num_rows)
            if whole is None:
                whole = schema
                continue
            if difference := _difference(whole, schema):
                raise InputError(
                    f"The part {part.name} of {self.shown} differs from those before it: {difference}; write it like "
                    "the others."
                )
            # A part without any value in a column does not know the column's type.
            whole = pa.unify_schemas([whole, pa.schema([schema.field(name) for name in whole.names])])
        assert whole is not None
        return whole, rows


def _difference(whole: pa.Schema, part: pa.Schema) -> str | None:
    import pyarrow.types as types

    for name in sorted({*whole.names} ^ {*part.names}):
        return f"it has no column {name!r}" if name in whole.names else f"only it has a column {name!r}"
    for name in part.names:
        ours, theirs = part.field(name).type, whole.field(name).type
        if ours != theirs and not types.is_null(ours) and not types.is_null(theirs):
            return f"its column {name!r} is of type {ours}, theirs of type {theirs}"
    return None


def _schema(file: ParquetFile, shown: str, *, is_part: bool) -> pa.Schema:
    """Return the columns of a file, the pandas index first where it has a name."""
    import pyarrow as pa
    import pyarrow.types as types

    stored = file.schema_arrow
    refuse_duplicate_columns(stored.names, shown)
    described = _pandas_metadata(file)
    named = [name for name in described["index_columns"] if isinstance(name, str) and name in stored.names]
    fields = [pa.field(name, pa.int64()) for name, *_ in _ranges(file)]
    fields += [stored.field(name) for name in (*named, *(name for name in stored.names if name not in named))]
    fields = [field for field in fields if not field.name.startswith("__index_level_")]
    refuse_duplicate_columns([field.name for field in fields], shown)
    if is_part:
        # Which numbers stand for which categories is a matter of each part alone.
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


def _pandas_metadata(file: ParquetFile) -> dict[str, Any]:
    """Return the metadata that pandas wrote into a file; it may hold anything, so it is only a hint."""
    found = None
    with suppress(ValueError):
        found = file.schema_arrow.pandas_metadata
    if isinstance(found, dict) and isinstance(found.get("index_columns"), list):
        return found
    return {"index_columns": []}


def _ranges(file: ParquetFile) -> list[tuple[str, int, int]]:
    """Name, start and step of pandas range indexes, whose values are not stored."""
    found = []
    for index in _pandas_metadata(file)["index_columns"]:
        if not isinstance(index, dict) or not isinstance(index.get("name"), str):
            continue
        first, step = index.get("start"), index.get("step")
        if type(first) is int and type(step) is int and step and max(abs(first), abs(step)) < _MAX_RANGE_STEP:
            found.append((index["name"], first, step))
    return found


def _part_batches(part: Location, wanted: list[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file group by group: given all groups, Arrow fetches all of them before the first batch.

    Arrow takes the bytes of text as they are, and ends without an error where a column is shorter than the file says.
    """
    import pyarrow as pa

    with _opened(part) as file:
        stored = [name for name in wanted if name in file.schema_arrow.names]
        ranges = [(name, first, step) for name, first, step in _ranges(file) if name in wanted]
        start = 0
        for group in range(file.num_row_groups):
            missing = file.metadata.row_group(group).num_rows
            for batch in file.iter_batches(batch_size=rows, row_groups=[group], columns=stored):
                _refuse_wrong_cells(batch, str(part))
                for name, first, step in ranges:
                    numbers = range(first + start * step, first + (start + batch.num_rows) * step, step)
                    batch = batch.append_column(name, pa.array(numbers, pa.int64()))
                missing -= batch.num_rows
                start += batch.num_rows
                yield batch
            if missing:
                raise ValueError("not as many rows as it says")


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


@contextmanager
def _opened(location: Location) -> Iterator[ParquetFile]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with location.open() as stream:
        try:
            # Over a network a group is fetched in few large pieces; from a disk it is read as it is needed. Arrow
            # trusts the size that a page claims when it reads piece by piece, and not when it has all of a column's
            # bytes: small files are read so, since a few bytes could claim gigabytes.
            is_remote = location.scheme != "file"
            in_pieces = not is_remote and stream.seek(0, os.SEEK_END) > _LARGE_FILE
            stream.seek(0)
            size = 1 << 20 if in_pieces else 0
            yield pq.ParquetFile(stream, page_checksum_verification=True, pre_buffer=is_remote, buffer_size=size)
        except InputError:
            raise
        except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
            if (isinstance(error, OSError) and error.errno is not None) or isinstance(error, ConnectionError):
                raise
            raise InputError(
                f"The file {location} is not a whole Parquet file (truncated, damaged or of another kind); "
                "write it anew."
            ) from None
