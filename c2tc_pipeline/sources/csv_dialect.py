"""How a CSV file is written: its delimiter and its header, from the first rows."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, cast

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.csv_faults import LONGEST_ROW, explain, fields_of_any_length
from c2tc_pipeline.sources.location import Location
from c2tc_pipeline.sources.source import refuse_twins

DELIMITERS = (",", ";", "\t", "|")

_SAMPLE_BYTES = 1 << 20
_SAMPLE_ROWS = 50


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
    text, is_whole = _sample(location)
    if not text.strip():
        raise InputError(f"The file {location} is empty; give a CSV file with a header and rows.")
    # With the wrong delimiter a header of thousands of columns is one field.
    with fields_of_any_length():
        candidates = [_divided(text, delimiter, is_whole, str(location)) for delimiter in DELIMITERS]
    delimiter, rows, header_lines = max(candidates, key=lambda found: _fit(found[1]))
    # A header cell is empty where a table was written together with its row numbers.
    names = tuple(name or f"column_{position}" for position, name in enumerate(rows[0], start=1))
    refuse_twins(names, str(location))
    if any("\ufffd" in name for name in names):
        with opened(location) as stream:
            raise InputError(explain(stream, str(location), delimiter, names))
    return Dialect(delimiter, names, header_lines, has_rows=len(rows) > 1 or not is_whole)


def _sample(location: Location) -> tuple[str, bool]:
    """Return the beginning of a file, longer where the header alone fills the usual sample, and if that is all."""
    with opened(location) as stream:
        sample = stream.read(_SAMPLE_BYTES + 1)
        if len(sample) > _SAMPLE_BYTES and b"\n" not in sample and b"\r" not in sample:
            sample += stream.read(LONGEST_ROW - len(sample))
    is_whole = len(sample) <= _SAMPLE_BYTES
    cut = sample if is_whole or len(sample) > _SAMPLE_BYTES + 1 else sample[:_SAMPLE_BYTES]
    return cut.decode("utf-8-sig", errors="replace"), is_whole


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


@contextmanager
def opened(location: Location) -> Iterator[BinaryIO]:
    """Open a file for reading, unpacked where its name ends in ``.gz``."""
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
