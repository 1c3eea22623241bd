"""Reading one CSV file: its dialect and header from the first rows, its values as text, types afterwards.

Deciding types belongs in :mod:`c2tc_pipeline.tables.csv_types`, finding the row at fault in
:mod:`c2tc_pipeline.tables.csv_faults`.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, cast

import pandas as pd

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.tables.csv_faults import explain, unclosed_quotation
from c2tc_pipeline.tables.csv_types import MISSING_SPELLINGS, typed
from c2tc_pipeline.tables.location import Location

DELIMITERS = (",", ";", "\t", "|")

_SAMPLE_BYTES = 1 << 20
_SAMPLE_ROWS = 50
# A row must fit into one block; rows of megabytes are the sign of an unclosed quotation mark.
_BLOCK_BYTES = 1 << 24


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written.

    Parameters
    ----------
    delimiter : str
        The character between fields.
    names : tuple of str
        The column names.
    header_lines : int
        Lines of the file up to the end of the header.
    has_rows : bool
        Whether anything follows the header.

    Examples
    --------
    >>> Dialect(";", ("a", "b"), header_lines=1, has_rows=True).delimiter
    ';'
    """

    delimiter: str
    names: tuple[str, ...]
    header_lines: int
    has_rows: bool


def read(location: Location, columns: list[str] | None) -> pd.DataFrame:
    """Read the file, or some of its columns, into a table.

    Parameters
    ----------
    location : Location
        The file; gzip when its name ends in ``.gz``.
    columns : list of str or None
        The columns to read, in this order; all when None.

    Returns
    -------
    pandas.DataFrame
        The table with a type for each whole column.

    Examples
    --------
    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "t.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("a;b\\n1;x\\n2;y\\n")
    >>> read(Location.parse(path), ["b"]).to_dict("list")
    {'b': ['x', 'y']}
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    dialect = find_dialect(location)
    wanted = list(dialect.names) if columns is None else columns
    if not dialect.has_rows:
        return pd.DataFrame({name: pd.Series(dtype="str") for name in wanted})
    with _opened(location) as stream:
        try:
            text = arrow_csv.read_csv(
                stream,
                read_options=arrow_csv.ReadOptions(
                    column_names=list(dialect.names), skip_rows=dialect.header_lines, block_size=_BLOCK_BYTES
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(dialect.names, pa.string()),
                    include_columns=list(dict.fromkeys([*wanted, dialect.names[-1]])),
                    null_values=list(MISSING_SPELLINGS),
                    strings_can_be_null=True,
                ),
            )
        except pa.ArrowException:
            text = None
    if text is None:
        with _opened(location) as stream:
            raise InputError(explain(stream, str(location), dialect.delimiter, len(dialect.names)))
    _refuse_swallowed_rows(location, dialect, text.column(dialect.names[-1])[-1].as_py())
    values = {}
    for name in wanted:
        values[name] = typed(text.column(name), delimiter=dialect.delimiter)
        text = text.drop_columns([name])
    return pd.DataFrame(values, copy=False)


def read_header(location: Location) -> tuple[str, ...]:
    """Read the column names from the first rows.

    Parameters
    ----------
    location : Location
        The file.

    Returns
    -------
    tuple of str
        The column names.

    Examples
    --------
    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "t.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("a|b\\n1|x\\n")
    >>> read_header(Location.parse(path))
    ('a', 'b')
    """
    return find_dialect(location).names


def find_dialect(location: Location) -> Dialect:
    """Find delimiter and header from the first rows of a file.

    The delimiter is the one that divides the first rows into the most fields, the same number in each; where
    none does, the one that divides the header into the most.

    Parameters
    ----------
    location : Location
        The file.

    Returns
    -------
    Dialect
        Delimiter, names, and where the rows begin.

    Examples
    --------
    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "t.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("a,b;c\\n1,x;y\\n")
    >>> find_dialect(Location.parse(path)).names
    ('a', 'b;c')
    """
    with _opened(location) as stream:
        sample = stream.read(_SAMPLE_BYTES + 1)
    is_whole = len(sample) <= _SAMPLE_BYTES
    text = sample[:_SAMPLE_BYTES].decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise InputError(f"The file {location} is empty; give a CSV file with a header and rows.")
    candidates = [_divided(text, delimiter, is_whole, str(location)) for delimiter in DELIMITERS]
    delimiter, rows, header_lines = max(candidates, key=lambda found: _fit(found[1]))
    names = _checked_names(rows[0], location)
    if any("\ufffd" in name for name in names):
        with _opened(location) as stream:
            raise InputError(explain(stream, str(location), delimiter, len(names)))
    return Dialect(delimiter, names, header_lines, has_rows=len(rows) > 1 or not is_whole)


def _refuse_swallowed_rows(location: Location, dialect: Dialect, last_cell: str | None) -> None:
    """Refuse a quotation that never ends: the fast reader takes the rest of the file for its text."""
    if last_cell is None or not ("\n" in last_cell or "\r" in last_cell):
        return
    with _opened(location) as stream:
        fault = unclosed_quotation(stream, str(location), dialect.delimiter)
    if fault is not None:
        raise InputError(fault)


def _divided(text: str, delimiter: str, is_whole: bool, shown: str) -> tuple[str, list[list[str]], int]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[list[str]] = []
    header_lines = 0
    try:
        for row in reader:
            if row:
                rows.append(row)
            if len(rows) == 1 and row:
                header_lines = reader.line_num
            if len(rows) > _SAMPLE_ROWS:
                return delimiter, rows[:-1], header_lines
    except csv.Error:
        if not rows:
            raise InputError(f"The first line of {shown} is not a CSV header; check that it is a CSV file.") from None
    # The sample may end in the middle of a row.
    return delimiter, rows if is_whole or len(rows) == 1 else rows[:-1], header_lines


def _fit(rows: list[list[str]]) -> tuple[bool, int]:
    width = len(rows[0])
    return width > 1 and all(len(row) == width for row in rows), width


def _checked_names(header: list[str], location: Location) -> tuple[str, ...]:
    # A header cell is empty where a table was written together with its row numbers.
    names = tuple(name or f"column_{position}" for position, name in enumerate(header, start=1))
    seen = set()
    for name in names:
        if name in seen:
            raise InputError(f"Two columns of {location} are called {name!r}; rename one of them.")
        seen.add(name)
    return names


@contextmanager
def _opened(location: Location) -> Iterator[BinaryIO]:
    with location.open() as stream:
        if not location.name.lower().endswith(".gz"):
            yield stream
            return
        try:
            with gzip.open(stream) as unpacked:
                yield cast("BinaryIO", unpacked)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise InputError(
                f"The file {location} is not a whole gzip file (truncated or damaged); compress it anew."
            ) from None
