"""Tables as Parquet files, written and read in one way."""

from __future__ import annotations

from pathlib import Path

import pandas as pd


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    """Write a table with page checksums; the same table gives the same bytes."""
    frame.to_parquet(path, engine="pyarrow", compression="zstd", index=False, write_page_checksum=True)


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
