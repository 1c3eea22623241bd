"""Tables as Parquet files, written and read in one way."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

# Rows of a row group, as pyarrow has them by default.
_GROUP_ROWS = 2**20


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    """Write a table with page checksums; the same table gives the same bytes."""
    frame.to_parquet(path, engine="pyarrow", compression="zstd", index=False, write_page_checksum=True)


def write_parquet_parts(frames: Iterable[pd.DataFrame], path: Path) -> None:
    """Write a table that comes in parts, of one schema and at least one; the bytes are those of the table in one piece.

    Examples
    --------
    >>> import tempfile
    >>> one, other = (Path(tempfile.mkdtemp()) / "table.parquet" for _ in range(2))
    >>> write_parquet(pd.DataFrame({"x": [1, 2, 3]}), one)
    >>> write_parquet_parts((pd.DataFrame({"x": part}) for part in ([1], [2, 3])), other)
    >>> one.read_bytes() == other.read_bytes()
    True
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    waiting: list[pa.Table] = []
    rows, writer = 0, None
    try:
        for frame in frames:
            part = pa.Table.from_pandas(frame, preserve_index=False)
            if writer is None:
                writer = pq.ParquetWriter(path, part.schema, compression="zstd", write_page_checksum=True)
            waiting.append(part)
            rows += part.num_rows
            while rows >= _GROUP_ROWS:
                whole = pa.concat_tables(waiting)
                writer.write_table(whole.slice(0, _GROUP_ROWS).combine_chunks(), row_group_size=_GROUP_ROWS)
                rows -= _GROUP_ROWS
                waiting = [whole.slice(_GROUP_ROWS)] if rows else []
        if rows and writer is not None:
            writer.write_table(pa.concat_tables(waiting).combine_chunks(), row_group_size=_GROUP_ROWS)
    finally:
        if writer is not None:
            writer.close()


def read_parquet(path: Path) -> pd.DataFrame:
    """Read a table that :func:`write_parquet` wrote, and hold its pages against their checksums.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.parquet"
    >>> write_parquet(pd.DataFrame({"x": [1, 2]}), path)
    >>> read_parquet(path)["x"].tolist()
    [1, 2]
    """
    return pd.read_parquet(path, engine="pyarrow", page_checksum_verification=True)
