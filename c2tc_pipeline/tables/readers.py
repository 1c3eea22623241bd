"""Reading a table into memory, wherever it comes from.

Which kinds of sources there are is known in :mod:`c2tc_pipeline.sources`. What the columns mean is decided later, in
:mod:`c2tc_pipeline.tables.preparation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from c2tc_pipeline.common.retries import with_retries
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.sources.source import TableHeader
from c2tc_pipeline.tables.frames import frame_of

__all__ = ["TableHeader", "peek_table", "read_table"]


def read_table(
    source: str | Path,
    *,
    storage_options: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Read a table from a file, a folder of Parquet files, a database or OpenML.

    CSV columns get the type that fits the whole column: whole numbers, numbers, true/false, else text.
    Numbers written with a leading zero, such as ``00501``, make their column text. Empty cells and NA, N/A,
    NaN, null are missing; ``None`` and ``?`` are values. The delimiter (comma, semicolon, tab or bar) is
    found from the first rows.

    Parameters
    ----------
    source : str or Path
        A path or an address of any kind that :mod:`c2tc_pipeline.sources.addresses` lists; endpoints and credentials
        come from the environment (``AWS_ENDPOINT_URL``, ``AWS_ACCESS_KEY_ID``, ``PGPASSWORD``, ...).
    storage_options : mapping, optional
        Handed to the remote file system.
    columns : sequence of str, optional
        Read only these, in this order.

    Returns
    -------
    pandas.DataFrame
        The table, rows numbered from 0.

    Raises
    ------
    InputError
        When there is no such table, its kind is unknown, or its content is damaged; with the row where there
        is one.
    ConnectionError
        When a server can't be reached, or went away, several times.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("zip,age\\n00501,31\\n10001,\\n")
    >>> read_table(path).dtypes.astype(str).to_dict()
    {'zip': 'str', 'age': 'Int64'}
    """
    opened = open_source(source, storage_options)
    # Nothing was handed out before all of it was there, so that a second try is safe.
    return with_retries(lambda: frame_of(opened.batches(columns), opened.shown), opened.tries)


def peek_table(source: str | Path, *, storage_options: Mapping[str, Any] | None = None) -> TableHeader:
    """Read a table's column names, and its row count where the format tells it, without reading the table.

    Parameters
    ----------
    source : str or Path
        As for :func:`read_table`.
    storage_options : mapping, optional
        As for :func:`read_table`.

    Returns
    -------
    TableHeader
        Columns, and rows or None.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("zip,age\\n00501,31\\n")
    >>> peek_table(path)
    TableHeader(columns=('zip', 'age'), rows=None)
    """
    return open_source(source, storage_options).header()
