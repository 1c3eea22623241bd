"""Rows of a table as pandas blocks that can be read several times, each time in the same order and division.

A table of moderate size is one DataFrame in memory. A large Parquet file on this machine is read again for each pass;
any other large source is copied once to an anonymous temporary Arrow file, so that a query runs once and a CSV file is
parsed once.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError, Notice, with_retries
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.sources.columnar import ParquetSource
from c2tc_pipeline.sources.source import FileSource, Source, version_size
from c2tc_pipeline.sources.values import ValuesHash
from c2tc_pipeline.storage.parquet import read_parquet, write_parquet
from c2tc_pipeline.tables.readings import Readings

if TYPE_CHECKING:
    import pyarrow as pa

# Some 10 MB at twenty columns. Results do not depend on it, except for the last bits of what an autoencoder computes.
BLOCK_ROWS = 65_536
# Rows of a block of a DataFrame in memory, whose blocks are views: fewer and larger ones cost less.
FRAME_BLOCK_ROWS = 4 * BLOCK_ROWS
# A table of this many cells is large: 5 million rows of 20 columns, some 2 GB in memory while it is condensed.
LARGE_CELLS = 100_000_000
# The same for CSV and other files whose number of rows is not known before they are read.
LARGE_CSV_BYTES = 1_000_000_000
LIMIT_VARIABLE = "C2TC_MOST_TABLE_MB"

OpenBatches = Callable[[Sequence[str] | None], "Iterator[pa.RecordBatch]"]


class Blocks:
    """A re-iterable sequence of blocks of rows; several passes may be made at the same time.

    ``shown`` is the source without secrets, ``version`` its state when it was read and ``digest`` the hash of its
    content, both empty for a DataFrame; ``notices`` are about changed column names.

    Examples
    --------
    >>> blocks = Blocks.of_frame(pd.DataFrame({"a": [1, 2, 3]}))
    >>> [block["a"].tolist() for block in blocks.frames()], [len(block) for block in blocks.frames(["a"])]
    ([[1, 2, 3]], [3])
    """

    def __init__(
        self,
        columns: Sequence[str],
        *,
        frame: pd.DataFrame | None = None,
        batches: OpenBatches | None = None,
        shown: str = "the table",
        version: str = "",
        digest: str = "",
        notices: Sequence[Notice] = (),
    ) -> None:
        self.columns = list(columns)
        self.shown, self.version, self.digest = shown, version, digest
        self.notices = list(notices)
        self._frame, self._open = frame, batches

    @classmethod
    def of_frame(cls, frame: pd.DataFrame) -> Blocks:
        """Return the blocks of a DataFrame; column names become text, and two of the same name are refused.

        Sparse columns become dense; a MultiIndex of columns and intervals are refused.
        """
        frame = _without_odd_columns(frame)
        names = [str(name) for name in frame.columns]
        if len(set(names)) < len(names):
            listed = ", ".join(repr(name) for name in sorted({name for name in names if names.count(name) > 1})[:5])
            raise InputError(f"Several columns share a name ({listed}); rename them so that each is unique.")
        renamed = [str(name) for name in frame.columns if not isinstance(name, str)]
        notices = []
        if renamed:
            listed = ", ".join(repr(name) for name in renamed[:5]) + (", ..." if len(renamed) > 5 else "")
            text = f"{len(renamed)} column names that were not text now are: {listed}; rename those of other rows alike"
            notices = [Notice("renamed_columns", text)]
            frame = frame.set_axis(names, axis="columns")
        return cls(names, frame=in_one_piece(frame.set_axis(pd.RangeIndex(len(frame)))), notices=notices)

    @classmethod
    def of_source(cls, address: str | Path) -> Blocks:
        """Read a source: into memory if it is of moderate size, else in passes over a file."""
        source = open_source(address)
        if is_large(source) and isinstance(source, ParquetSource) and source.location.scheme == "file":
            version = source.version()
            batches = partial(_unchanged_batches, source, version)
            columns = source.header().columns
            digest, notices = source.digest(), source.notices
            return cls(columns, batches=batches, shown=source.shown, version=version, digest=digest, notices=notices)
        return with_retries(lambda: _read_once(source), source.tries)

    @classmethod
    def of_parquet(cls, path: Path) -> Blocks:
        """Return the blocks of a Parquet file that :meth:`write` wrote; it may be deleted afterwards."""
        import pyarrow.parquet as pq

        with contextlib.ExitStack() as stack:
            opened = stack.enter_context(path.open("rb"))
            file = pq.ParquetFile(opened, page_checksum_verification=True)
            columns, rows = file.schema_arrow.names, file.metadata.num_rows
            if rows * len(columns) < LARGE_CELLS:
                return cls(columns, frame=in_one_piece(read_parquet(path)))
            # The open file outlives its name, so that the rows stay readable when a temporary copy is removed.
            stack.pop_all()

            def batches(wanted: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
                again = pq.ParquetFile(_from_the_start(opened), page_checksum_verification=True)
                yield from again.iter_batches(BLOCK_ROWS, columns=None if wanted is None else list(wanted))

            return cls(columns, batches=batches)

    @property
    def in_memory(self) -> bool:
        return self._frame is not None

    def frames(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """Yield the rows in order, in blocks; an empty table is one empty block."""
        if self._frame is not None:
            frame = self._frame if columns is None else self._frame[list(columns)]
            for start in range(0, max(len(frame), 1), FRAME_BLOCK_ROWS):
                yield frame.iloc[start : start + FRAME_BLOCK_ROWS]
            return
        for batches in regrouped(self._opened(columns), BLOCK_ROWS):
            yield frame_of(batches, self.shown)

    def read_as(self, readings: Readings, only: Collection[str]) -> Blocks:
        """Return these blocks with some columns read as numbers, dates and missing values."""
        if not only:
            return self
        read = _Read(self, readings, only)
        if self._frame is not None:
            read._frame = readings.read(self._frame, only)
        return read

    def followed_by(self, other: Blocks) -> Blocks:
        """Return these blocks and then those of another table with the same columns."""
        return _Chained(self, other)

    def write(self, path: Path) -> None:
        """Write all rows to one Parquet file with page checksums."""
        if self._frame is not None:
            write_parquet(self._frame, path)
            return
        import pyarrow.parquet as pq

        writer = None
        for batch in self._opened(None):
            writer = writer or pq.ParquetWriter(path, batch.schema, compression="zstd", write_page_checksum=True)
            writer.write_batch(batch)
        if writer is not None:
            writer.close()

    def values_digest(self) -> str:
        """Return the hash of names, types and values, whatever file they were read from; reads all rows."""
        values = ValuesHash()
        for batch in self._opened(None):
            values.update(batch)
        return values.hexdigest()

    def _opened(self, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        if self._open is not None:
            return self._open(columns)
        return (arrow_batch(frame) for frame in self.frames(columns))


def _without_odd_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with dense columns; refuse names of several levels and columns of intervals."""
    if isinstance(frame.columns, pd.MultiIndex):
        raise InputError(
            "The columns have names of several levels (a MultiIndex); join the levels of each into one name first."
        )
    for position, dtype in enumerate(frame.dtypes):
        if isinstance(dtype, pd.IntervalDtype):
            raise InputError(
                f"Column {str(frame.columns[position])!r} holds intervals; convert it to a category or to text first."
            )
        if isinstance(dtype, pd.SparseDtype):
            frame = frame.copy(deep=False)
            frame.isetitem(position, frame.iloc[:, position].astype(dtype.subtype).array)
    return frame


class _Read(Blocks):
    def __init__(self, raw: Blocks, readings: Readings, only: Collection[str]) -> None:
        super().__init__(raw.columns, shown=raw.shown, version=raw.version, digest=raw.digest, notices=raw.notices)
        self._raw, self._readings, self._only = raw, readings, only

    def frames(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        if self._frame is not None:
            yield from super().frames(columns)
            return
        for frame in self._raw.frames(columns):
            yield self._readings.read(frame, self._only)


class _Chained(Blocks):
    def __init__(self, first: Blocks, second: Blocks) -> None:
        super().__init__(first.columns, shown=first.shown, notices=first.notices)
        self._parts = first, second

    @property
    def in_memory(self) -> bool:
        return all(part.in_memory for part in self._parts)

    def frames(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        for part in self._parts:
            yield from part.frames(columns)


def arrow_batch(frame: pd.DataFrame) -> pa.RecordBatch:
    """Convert a frame to one Arrow batch; columns of mixed types become text."""
    import pyarrow as pa

    try:
        return pa.RecordBatch.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        texts = {str(name): column.map(repr) for name, column in frame.items() if column.dtype == object}
        return pa.RecordBatch.from_pandas(frame.assign(**texts), preserve_index=False)


def is_large(source: Source) -> bool:
    """Return whether a table is too large to be read into memory, if its source states its size."""
    if isinstance(source, FileSource) and not isinstance(source, ParquetSource):
        return (version_size(source.version()) or 0) >= LARGE_CSV_BYTES
    header = source.header()
    return header.rows is not None and header.rows * len(header.columns) >= LARGE_CELLS


def _unchanged_batches(source: Source, version: str, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file, and refuse one that changed since it was opened or while it is read."""

    def refuse_change() -> None:
        if source.version() != version:
            raise InputError(f"The source {source.shown} was changed while it was read; try again when it is finished.")

    refuse_change()
    yield from source.batches(columns)
    refuse_change()


def _read_once(source: Source) -> Blocks:
    """Read a source that may change or go away: into memory, or into a temporary file when it is large."""
    before, values = source.version(), ValuesHash()
    batches = values.watching(source.batches()) if source.hashes_values else source.batches()
    if is_large(source):
        columns, opened = _copied_to_file(batches)
        frame = None
    else:
        frame, opened = frame_of(batches, source.shown), None
        columns = [str(name) for name in frame.columns]
    # A statement reads one state of a database; a file may have been replaced during the reading.
    digest = values.hexdigest() if source.hashes_values else source.digest()
    if not source.hashes_values and source.version() != before:
        raise ConnectionError(f"The source {source.shown} changed while it was being read.")
    shown, notices = source.shown, source.notices
    return Blocks(columns, frame=frame, batches=opened, shown=shown, version=before, digest=digest, notices=notices)


def _copied_to_file(batches: Iterator[pa.RecordBatch]) -> tuple[list[str], OpenBatches]:
    """Copy batches to an anonymous temporary file and return the column names and a function that reads it."""
    import pyarrow as pa

    file = tempfile.TemporaryFile(prefix="c2tc-")  # noqa: SIM115
    first = next(batches)
    with pa.ipc.new_stream(file, first.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)
    names = list(first.schema.names)

    # Passes read the file itself, so nothing may be left in Python's buffer.
    file.flush()

    def read(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        wanted = names if columns is None else list(columns)
        options = pa.ipc.IpcReadOptions(included_fields=[names.index(name) for name in wanted])
        with pa.ipc.open_stream(_from_the_start(file), options=options) as reader:
            for batch in reader:
                yield batch.select(wanted)

    return names, read


class _OwnPosition(io.RawIOBase):
    """Read an open file from a position of its own."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._position = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        starts = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: os.fstat(self._file.fileno()).st_size}
        self._position = starts[whence] + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        count = os.preadv(self._file.fileno(), [buffer], self._position)
        self._position += count
        return count


def _from_the_start(file: IO[bytes]) -> io.BufferedReader:
    """Return a reader of an open file, so that passes at the same time do not move each other's position."""
    return io.BufferedReader(_OwnPosition(file), buffer_size=1 << 20)


def regrouped(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[list[pa.RecordBatch]]:
    """Yield batches in groups of this many rows, the last group of the rest; nothing is copied."""
    group: list[pa.RecordBatch] = []
    room, started = rows, False
    for batch in batches:
        while batch.num_rows >= room:
            group.append(batch.slice(0, room))
            yield group
            batch, group, room, started = batch.slice(room), [], rows, True
        if batch.num_rows or not (group or started):
            group.append(batch)
            room -= batch.num_rows
    if group:
        yield group


def read_table(
    source: str | Path,
    *,
    columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Read a table of any kind of source into memory."""
    opened = open_source(source)
    # Nothing is returned before all of it was read, so that a second try is safe.
    return with_retries(lambda: frame_of(opened.batches(columns), opened.shown), opened.tries)


def frame_of(batches: Iterable[pa.RecordBatch], shown: str) -> pd.DataFrame:
    """Convert Arrow batches to one DataFrame; integers and booleans keep their types where cells are missing."""
    import pyarrow as pa

    # In a list, so that the conversion holds the only reference.
    held = [pa.Table.from_batches(within_memory(batches, shown))]
    try:
        return in_one_piece(_converted(held))
    except (ValueError, ArithmeticError, TypeError):
        raise InputError(
            f"The table {shown} holds values that their own types do not allow, such as the 25th hour of a day; write "
            "it anew."
        ) from None


def within_memory(batches: Iterable[pa.RecordBatch], shown: str) -> Iterator[pa.RecordBatch]:
    """Pass batches on while all of them together fit into memory: a small file can unpack to a terabyte."""
    limit = max_table_bytes()
    size = rows = 0
    for batch in batches:
        # A cell counts even where Arrow stores nothing for it.
        size += max(batch.nbytes, batch.num_rows * max(batch.num_columns, 1))
        rows += batch.num_rows
        if size > limit:
            raise InputError(
                f"The table {shown} needs more than {limit / 1e6:,.0f} MB of memory, after {rows:,} rows; read fewer "
                f"columns or rows, or raise {LIMIT_VARIABLE} (megabytes) if the machine has more."
            )
        yield batch


def max_table_bytes() -> int:
    """Return the maximum size of a table in memory: ``$C2TC_MOST_TABLE_MB``, or half of this machine's memory."""
    chosen = os.environ.get(LIMIT_VARIABLE, "").strip()
    if chosen:
        if not chosen.isascii() or not chosen.isdigit() or int(chosen) < 1:
            raise InputError(f"The variable {LIMIT_VARIABLE} is {chosen!r}; give a number of megabytes.")
        return int(chosen) * 10**6
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    # The limit of a container, if this is one.
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            limits.append(int(Path(path).read_text()))
    return min(limits) // 2


def in_one_piece(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose Arrow strings are one chunk each: Arrow joins all chunks whenever rows are picked."""
    joined = frame
    for position, (_, column) in enumerate(frame.items()):
        array = column.array
        if isinstance(array, pd.arrays.ArrowExtensionArray) and array.__arrow_array__().num_chunks > 1:
            joined = frame.copy(deep=False) if joined is frame else joined
            joined.isetitem(position, array.take(np.arange(len(array))))
    return joined


def _converted(held: list[pa.Table]) -> pd.DataFrame:
    import pyarrow.types as types

    table = held.pop()
    names = table.column_names
    with_gaps = {
        name: _with_gaps(table.column(name))
        for name in names
        if table.column(name).null_count
        and (types.is_integer(table.schema.field(name).type) or types.is_boolean(table.schema.field(name).type))
    }
    table = table.drop_columns(list(with_gaps))
    rows = table.num_rows
    # Each column's Arrow memory is freed as soon as it is converted.
    frame = table.to_pandas(self_destruct=True)
    del table
    if not with_gaps:
        return frame.reset_index(drop=True)
    columns = {name: with_gaps[name] if name in with_gaps else frame[name] for name in names}
    return pd.DataFrame(columns, index=pd.RangeIndex(rows), copy=False)


def _with_gaps(values: pa.ChunkedArray) -> pd.Series[Any]:
    """Convert to pandas' masked types: floats would round large integers."""
    import pyarrow.types as types

    missing = np.asarray(values.is_null().to_numpy(), dtype=bool)
    if types.is_boolean(values.type):
        return pd.Series(pd.arrays.BooleanArray(np.asarray(values.fill_null(False).to_numpy(), dtype=bool), missing))
    return pd.Series(pd.arrays.IntegerArray(np.array(values.fill_null(0).to_numpy()), missing))
