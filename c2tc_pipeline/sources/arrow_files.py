"""Arrow IPC files, also called Feather, and IPC streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.columnar import ColumnarSource
from c2tc_pipeline.sources.location import Location
from c2tc_pipeline.sources.source import sliced

if TYPE_CHECKING:
    import pyarrow as pa


class ArrowSource(ColumnarSource):
    """A file or stream of Arrow batches, or a folder of such files."""

    format = "Arrow"
    endings = (".feather", ".arrow", ".arrows", ".ipc")
    signature = rb"ARROW1"

    @contextmanager
    def opened(self, location: Location) -> Iterator[_Opened]:
        import pyarrow as pa

        with location.open() as stream:
            try:
                is_file = stream.read(6) == self.signature
                stream.seek(0)
                with pa.ipc.open_file(stream) if is_file else pa.ipc.open_stream(stream) as reader:
                    yield _Opened(reader)
            except InputError:
                raise
            except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
                if (isinstance(error, OSError) and error.errno is not None) or isinstance(error, ConnectionError):
                    raise
                raise InputError(
                    f"The file {location} is not a whole Arrow or Feather file (truncated, damaged or of another "
                    "kind); write it anew."
                ) from None


class _Opened:
    # The number of rows is known only after reading all batches.
    rows = None

    def __init__(self, reader: pa.RecordBatchFileReader | pa.RecordBatchStreamReader) -> None:
        self._reader, self.schema = reader, reader.schema

    def batches(self, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the file's batches, cut to size."""
        count = getattr(self._reader, "num_record_batches", None)
        stored = self._reader if count is None else map(self._reader.get_batch, range(count))
        yield from sliced((batch.select(columns) for batch in stored), rows)
