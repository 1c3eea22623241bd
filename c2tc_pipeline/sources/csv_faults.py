"""Finding the row at fault in a CSV file that could not be read.

A second, slow pass that runs only after the fast one failed; it reads row by row and remembers one row at a time.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

# Longer rows are never read; shorter ones may be too long for the fast reader's blocks.
LONGEST_ROW = 1 << 23
_LONG_ROW = 1 << 22


class _RowTooLong(Exception):
    """A row goes on and on."""


class _Rows:
    """The rows of a file, with where each began; latin-1, so that they can be counted whatever bytes they hold.

    Delimiters, quotation marks and line ends are the same bytes as in UTF-8.
    """

    def __init__(self, stream: BinaryIO, delimiter: str) -> None:
        self._text = io.TextIOWrapper(stream, encoding="latin-1", newline="")
        self._delimiter = delimiter
        # One text and no list of lines: a quotation may run over millions of short ones.
        self.content = io.StringIO(newline="")
        self.length = 0
        self.row, self.line, self.further_lines = -1, 1, 0

    def __iter__(self) -> Iterator[list[str]]:
        reader = csv.reader(self._read(), delimiter=self._delimiter)
        for fields in reader:
            if fields:
                self.row += 1
                self.further_lines = reader.line_num - self.line
                yield fields
            self.content, self.length = io.StringIO(newline=""), 0
            self.line = reader.line_num + 1

    def _read(self) -> Iterator[str]:
        while line := self._text.readline(LONGEST_ROW):
            self.content.write(line)
            self.length += len(line)
            if self.length >= LONGEST_ROW:
                self.row += 1
                raise _RowTooLong
            yield line

    def place(self, shown: str) -> str:
        """Name the present row."""
        return f"{'The header' if self.row == 0 else f'Data row {self.row}'} (line {self.line}) of {shown}"

    def column(self, names: Sequence[str]) -> str:
        """Name the column in which a row that is too long was cut off."""
        self.content.seek(0)
        *_, fields = csv.reader(self.content, delimiter=self._delimiter)
        return repr(names[min(len(fields), len(names)) - 1])


def explain(stream: BinaryIO, shown: str, delimiter: str, names: Sequence[str]) -> str:
    """Say in one sentence what is wrong with a CSV file, in which row, and in which column where it is one.

    Parameters
    ----------
    stream : binary file
        The file from its beginning.
    shown : str
        How the file is called in the message.
    delimiter : str
        The character between fields.
    names : sequence of str
        The columns in the header.

    Returns
    -------
    str
        The sentence.

    Examples
    --------
    >>> explain(io.BytesIO(b"a,b\\n1,2\\n3\\n"), "t.csv", ",", ("a", "b"))
    'Data row 2 (line 3) of t.csv has 1 field where the header has 2; correct that row.'
    """
    rows = _Rows(stream, delimiter)
    width = len(names)
    long_row = None
    with fields_of_any_length():
        try:
            for fields in rows:
                where = rows.place(shown)
                for position, field in enumerate(fields):
                    if not _is_utf8(field):
                        column = f", column {names[position]!r}," if rows.row and position < width else ""
                        return f"{where}{column} holds bytes that are not UTF-8; save the file as UTF-8."
                if len(fields) != width:
                    return f"{where} has {_width_fault(len(fields), width, rows.further_lines)}"
                if rows.length > _LONG_ROW and long_row is None:
                    longest = max(range(width), key=lambda position: len(fields[position]))
                    long_row = _too_long(where, repr(names[longest]), _LONG_ROW)
        except _RowTooLong:
            return _too_long(rows.place(shown), rows.column(names), LONGEST_ROW)
        except csv.Error:
            where = f"Data row {rows.row + 1} (line {rows.line}) of {shown}"
            return f"{where} can't be read as CSV; look for an unclosed quotation mark."
    return long_row or f"The file {shown} can't be read as CSV; check that its quotation marks are closed."


def unclosed_quotation(stream: BinaryIO, shown: str, delimiter: str) -> str | None:
    """Say where a quotation begins that the file never closes.

    Parameters
    ----------
    stream : binary file
        The file from its beginning.
    shown : str
        How the file is called in the message.
    delimiter : str
        The character between fields.

    Returns
    -------
    str or None
        The sentence, or None when the last row is whole.

    Examples
    --------
    >>> unclosed_quotation(io.BytesIO(b'a,b\\n1,"x\\n2,y\\n'), "t.csv", ",")
    'Data row 1 (line 2) of t.csv has a quotation mark that is never closed; close it.'
    """
    rows = _Rows(stream, delimiter)
    last = rows.content
    where = ""
    with fields_of_any_length():
        try:
            for _ in rows:
                last, where = rows.content, rows.place(shown)
            last.seek(0)
            for _ in csv.reader(last, delimiter=delimiter, strict=True):
                pass
        except _RowTooLong:
            return f"{rows.place(shown)} has a quotation mark that is never closed; close it."
        except csv.Error as error:
            if "unexpected end" in str(error):
                return f"{where} has a quotation mark that is never closed; close it."
    return None


@contextmanager
def fields_of_any_length() -> Iterator[None]:
    """Lift the limit that the module csv sets to fields; rows have one of their own here."""
    before = csv.field_size_limit(2 * LONGEST_ROW)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _too_long(where: str, column: str, limit: int) -> str:
    return (
        f"{where} is longer than {limit >> 20} MiB, in column {column}; shorten that value, or close the quotation "
        "mark before it."
    )


def _is_utf8(field: str) -> bool:
    if field.isascii():
        return True
    try:
        field.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _width_fault(found: int, width: int, further_lines: int) -> str:
    counted = f"{found} field{'' if found == 1 else 's'} where the header has {width}"
    if further_lines:
        return f"{counted} and runs over {further_lines + 1} lines; look for an unclosed quotation mark."
    return f"{counted}; correct that row."
