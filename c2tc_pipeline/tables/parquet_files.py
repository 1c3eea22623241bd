"""Reading one Parquet file; damage is noticed wherever the file carries checksums."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pandas as pd

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.tables.location import Location

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile


def read(location: Location, columns: list[str] | None) -> pd.DataFrame:
    """Read the file, or some of its columns, into a table.

    Parameters
    ----------
    location : Location
        The file.
    columns : list of str or None
        The columns to read, in this order; all when None.

    Returns
    -------
    pandas.DataFrame
        The table; a stored pandas index with a name is a column again.

    Examples
    --------
    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "t.parquet")
    >>> pd.DataFrame({"a": [1, 2]}).to_parquet(path)
    >>> read(Location.parse(path), None)["a"].tolist()
    [1, 2]
    """
    with _opened(location) as file:
        stored = file.schema_arrow.names
        _refuse_duplicates(stored, location)
        read_columns = None if columns is None else [name for name in columns if name in stored]
        frame = file.read(columns=read_columns).to_pandas()
    named_index = [name for name in frame.index.names if name is not None]
    if named_index:
        frame = frame.reset_index(level=named_index)
    frame = frame.reset_index(drop=True)
    return frame if columns is None else frame[columns]


def read_header(location: Location) -> tuple[tuple[str, ...], int]:
    """Read the column names and the number of rows from the file's footer.

    Parameters
    ----------
    location : Location
        The file.

    Returns
    -------
    tuple
        Column names, number of rows.

    Examples
    --------
    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "t.parquet")
    >>> pd.DataFrame({"a": [1, 2]}).to_parquet(path)
    >>> read_header(Location.parse(path))
    (('a',), 2)
    """
    with _opened(location) as file:
        names = [name for name in file.schema_arrow.names if not name.startswith("__index_level_")]
        names += _names_of_ranges(file)
        _refuse_duplicates(names, location)
        return tuple(names), int(file.metadata.num_rows)


@contextmanager
def _opened(location: Location) -> Iterator[ParquetFile]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with location.open() as stream:
        try:
            yield pq.ParquetFile(stream, page_checksum_verification=True)
        except InputError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            if isinstance(error, ConnectionError | PermissionError):
                raise
            raise InputError(
                f"The file {location} is not a whole Parquet file (truncated, damaged or of another kind); "
                "write it anew."
            ) from None


def _names_of_ranges(file: ParquetFile) -> list[str]:
    """Names of pandas indexes that count up: pandas stores only where they begin and end."""
    indexes = (file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
    return [index["name"] for index in indexes if isinstance(index, dict) and index.get("name") is not None]


def _refuse_duplicates(names: list[str], location: Location) -> None:
    for position, name in enumerate(names):
        if name in names[:position]:
            raise InputError(f"Two columns of {location} are called {name!r}; rename one of them.")
