"""Parquet and ``.npz`` files: one set of options for writing and reading."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

# Rows of a row group, pyarrow's default.
_GROUP_ROWS = 2**20


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    """Write a table with page checksums; the same table gives the same bytes."""
    frame.to_parquet(path, engine="pyarrow", compression="zstd", index=False, write_page_checksum=True)


def write_parquet_parts(frames: Iterable[pd.DataFrame], path: Path) -> None:
    """Write a table given in one or more parts of one schema; the bytes are those of the table in one piece."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pending: list[pa.Table] = []
    rows, writer = 0, None
    try:
        for frame in frames:
            part = pa.Table.from_pandas(frame, preserve_index=False)
            if writer is None:
                writer = pq.ParquetWriter(path, part.schema, compression="zstd", write_page_checksum=True)
            pending.append(part)
            rows += part.num_rows
            while rows >= _GROUP_ROWS:
                whole = pa.concat_tables(pending)
                writer.write_table(whole.slice(0, _GROUP_ROWS).combine_chunks(), row_group_size=_GROUP_ROWS)
                rows -= _GROUP_ROWS
                pending = [whole.slice(_GROUP_ROWS)] if rows else []
        if rows and writer is not None:
            writer.write_table(pa.concat_tables(pending).combine_chunks(), row_group_size=_GROUP_ROWS)
    finally:
        if writer is not None:
            writer.close()


def read_parquet(path: Path) -> pd.DataFrame:
    """Read a table that :func:`write_parquet` wrote and verify its page checksums."""
    return pd.read_parquet(path, engine="pyarrow", page_checksum_verification=True)


@contextmanager
def open_arrays(path: Path) -> Iterator[np.lib.npyio.NpzFile]:
    """Open a file that ``numpy.savez`` wrote; compressed files are refused, as they may expand a thousandfold."""
    with zipfile.ZipFile(path) as archive:
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
            raise ValueError(f"{path.name} holds compressed arrays, which c2tc never writes.")
    with np.load(path, allow_pickle=False) as arrays:
        yield arrays
