"""Reading a table from CSV or Parquet, wherever it lies.

Which format a file has is decided here, by its name; each format has its own module. What the columns mean is
decided later, in :mod:`c2tc_pipeline.tables.preparation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.tables import csv_files, parquet_files
from c2tc_pipeline.tables.location import Location
from c2tc_pipeline.tables.names import closest

CSV_ENDINGS = (".csv", ".csv.gz")
PARQUET_ENDINGS = (".parquet", ".pq")


@dataclass(frozen=True)
class TableHeader:
    """What can be known of a table without reading it.

    Parameters
    ----------
    columns : tuple of str
        Column names in order.
    rows : int or None
        Number of rows, or None where the format doesn't say.

    Examples
    --------
    >>> TableHeader(("age", "income"), rows=None).columns
    ('age', 'income')
    """

    columns: tuple[str, ...]
    rows: int | None


def read_table(
    source: str | Path,
    *,
    storage_options: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Read a CSV (``.csv``, ``.csv.gz``) or Parquet (``.parquet``, ``.pq``) file into a table.

    CSV columns get the type that fits the whole column: whole numbers, numbers, true/false, else text.
    Numbers written with a leading zero, such as ``00501``, make their column text. Empty cells and NA, N/A,
    NaN, null are missing; ``None`` and ``?`` are values. The delimiter (comma, semicolon, tab or bar) is
    found from the first rows.

    Parameters
    ----------
    source : str or Path
        A local path or an ``s3://`` address; endpoint and credentials come from the environment
        (``AWS_ENDPOINT_URL``, ``AWS_ACCESS_KEY_ID``, ...).
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
        When there is no such file, its kind is unknown, or its content is damaged; with the row where there
        is one.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("zip,age\\n00501,31\\n10001,\\n")
    >>> read_table(path).dtypes.astype(str).to_dict()
    {'zip': 'str', 'age': 'Int64'}
    """
    location = Location.parse(source, storage_options)
    wanted = None if columns is None else list(columns)
    if wanted is not None:
        _check_columns(wanted, _header(location).columns, location)
    if _is_csv(location):
        return csv_files.read(location, wanted)
    return parquet_files.read(location, wanted)


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
    return _header(Location.parse(source, storage_options))


def _header(location: Location) -> TableHeader:
    if _is_csv(location):
        return TableHeader(csv_files.read_header(location), rows=None)
    columns, rows = parquet_files.read_header(location)
    return TableHeader(columns, rows)


def _is_csv(location: Location) -> bool:
    name = location.name.lower()
    if name.endswith(CSV_ENDINGS):
        return True
    if name.endswith(PARQUET_ENDINGS):
        return False
    if location.scheme == "file" and Path(location.path).is_dir():
        raise InputError(f"The source {location} is a folder; give the path of one file.")
    kinds = ", ".join(CSV_ENDINGS + PARQUET_ENDINGS)
    raise InputError(f"The kind of file {location} is not known; give one whose name ends in one of: {kinds}.")


def _check_columns(wanted: Sequence[str], known: Sequence[str], location: Location) -> None:
    for name in wanted:
        if name not in known:
            raise InputError(f"There is no column {name!r} in {location}; {closest(name, known)}.")
