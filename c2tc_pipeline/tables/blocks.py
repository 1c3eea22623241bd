"""A source's rows as blocks that can be gone through several times, each time in the same order and division.

Parquet files on this machine are read again each time. Anything else is read once, into files of a working folder: a
query is asked once, a CSV file is parsed once, and a server is not needed any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.retries import with_retries
from c2tc_pipeline.sources.csv_files import CsvSource
from c2tc_pipeline.sources.parquet_files import ParquetSource
from c2tc_pipeline.sources.source import Source
from c2tc_pipeline.sources.values import ValuesHash
from c2tc_pipeline.tables.frames import frame_of

if TYPE_CHECKING:
    import pyarrow as pa

# Some 10 MB at twenty columns. Results do not depend on it, but for the last bits of what an autoencoder makes.
BLOCK_ROWS = 65_536
# From so many cells on a table is large: 5 million rows of 20 columns, some 2 GB in memory while it is condensed.
LARGE_CELLS = 100_000_000
# The same for a CSV file, whose rows are not known before it is read.
LARGE_CSV_BYTES = 1_000_000_000


def is_large(source: Source) -> bool:
    """Return whether a table should not be taken into memory, as far as its source says how large it is.

    Examples
    --------
    >>> import tempfile
    >>> from c2tc_pipeline.sources.addresses import open_source
    >>> path = Path(tempfile.mkdtemp()) / "t.csv"
    >>> _ = path.write_text("a\\n1\\n")
    >>> is_large(open_source(path))
    False
    """
    if isinstance(source, CsvSource):
        return int(source.version().partition("-")[0]) >= LARGE_CSV_BYTES
    header = source.header()
    return header.rows is not None and header.rows * len(header.columns) >= LARGE_CELLS


class SourceBlocks:
    """The blocks of a source.

    Parameters
    ----------
    source : Source
        Where the rows come from.
    folder : path
        Where rows are kept that would be costly, or impossible, to read again.
    rows : int
        Rows of a block; the last one may have fewer.

    Attributes
    ----------
    digest : str
        The hash of the source's content.

    Examples
    --------
    >>> import tempfile
    >>> from c2tc_pipeline.sources.addresses import open_source
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "t.csv").write_text("a\\n1\\n2\\n3\\n")
    >>> blocks = SourceBlocks(open_source(folder / "t.csv"), folder, rows=2)
    >>> [block["a"].tolist() for block in blocks.frames()], [block["a"].tolist() for block in blocks.frames()]
    ([[1, 2], [3]], [[1, 2], [3]])
    """

    def __init__(self, source: Source, folder: Path, rows: int = BLOCK_ROWS) -> None:
        self.shown = source.shown
        self.digest = ""
        self._rows = rows
        self._kept: Path | None = None
        self._source = source
        self._version: str | None = None
        if isinstance(source, ParquetSource) and source.location.scheme == "file":
            self._version = source.version()
            self.digest = source.digest()
        else:
            self._kept = folder / "rows.arrow"
            with_retries(self._keep, source.tries)

    def frames(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """Yield the rows from the first to the last; an empty table is one empty block."""
        # Before as well, because what a pass before has learnt may not fit other rows: a class that it never saw.
        self._refuse_change()
        for batches in regrouped(self._batches(columns), self._rows):
            yield frame_of(batches, self.shown)
        self._refuse_change()

    def _refuse_change(self) -> None:
        if self._version is not None and self._source.version() != self._version:
            raise InputError(f"The source {self.shown} was changed while it was read; try again when it is finished.")

    def _batches(self, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        if self._kept is None:
            yield from self._source.batches(columns)
            return
        import pyarrow as pa

        with pa.OSFile(str(self._kept)) as file, pa.ipc.open_stream(file) as reader:
            for batch in reader:
                yield batch if columns is None else batch.select(list(columns))

    def _keep(self) -> None:
        import pyarrow as pa

        before = self._source.version()
        values = ValuesHash()
        batches = self._source.batches()
        if self._source.hashes_values:
            batches = values.watching(batches)
        first = next(batches)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with (
            pa.OSFile(str(self._kept), "wb") as file,
            pa.ipc.new_stream(file, first.schema, options=options) as writer,
        ):
            writer.write_batch(first)
            for batch in batches:
                writer.write_batch(batch)
        # One statement sees one state of a database; a file may have become another one.
        self.digest = values.hexdigest() if self._source.hashes_values else self._source.digest()
        if not self._source.hashes_values and self._source.version() != before:
            raise ConnectionError(f"The source {self.shown} changed while it was being read.")


def regrouped(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[list[pa.RecordBatch]]:
    """Yield batches in groups of so many rows in all, the last group of what is left; nothing is copied.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batches = [pa.record_batch({"a": range(size)}) for size in (1, 5, 2)]
    >>> [[batch.num_rows for batch in group] for group in regrouped(batches, 3)]
    [[1, 2], [3], [2]]
    """
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
