"""Parquet: one file, or a folder of parts that are one table; damage is detected where files carry checksums."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.columnar import ColumnarSource
from c2tc_pipeline.sources.location import Location

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

# From this size in bytes on a file is read in pieces, since a group of its rows may be large.
_LARGE_FILE = 1 << 28


class ParquetSource(ColumnarSource):
    """A Parquet file, or a folder of Parquet files."""

    format = "Parquet"
    endings = (".parquet", ".pq")
    signature = rb"PAR1"

    @contextmanager
    def opened(self, location: Location) -> Iterator[_Opened]:
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
                yield _Opened(
                    pq.ParquetFile(stream, page_checksum_verification=True, pre_buffer=is_remote, buffer_size=size)
                )
            except InputError:
                raise
            except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
                if (isinstance(error, OSError) and error.errno is not None) or isinstance(error, ConnectionError):
                    raise
                raise InputError(
                    f"The file {location} is not a whole Parquet file (truncated, damaged or of another kind); "
                    "write it anew."
                ) from None


class _Opened:
    def __init__(self, file: ParquetFile) -> None:
        self._file = file
        self.schema, self.rows = file.schema_arrow, int(file.metadata.num_rows)

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
