"""Finding the row at fault in a CSV file that could not be read.

A second, slow pass that runs only after the fast one failed; it reads row by row and remembers nothing.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import BinaryIO


def explain(stream: BinaryIO, shown: str, delimiter: str, width: int) -> str:
    """Say in one sentence what is wrong with a CSV file and in which row.

    Parameters
    ----------
    stream : binary file
        The file from its beginning.
    shown : str
        How the file is called in the message.
    delimiter : str
        The character between fields.
    width : int
        Number of columns in the header.

    Returns
    -------
    str
        The sentence.

    Examples
    --------
    >>> explain(io.BytesIO(b"a,b\\n1,2\\n3\\n"), "t.csv", ",", 2)
    'Data row 2 (line 3) of t.csv has 1 field where the header has 2; correct that row.'
    """
    # Latin-1 gives every byte a character, so that rows can be counted whatever bytes they hold; delimiters,
    # quotes and line ends are the same bytes as in UTF-8.
    reader = csv.reader(io.TextIOWrapper(stream, encoding="latin-1", newline=""), delimiter=delimiter)
    row = -1
    line = 1
    try:
        for fields in reader:
            if fields:
                row += 1
                what = "The header" if row == 0 else f"Data row {row}"
                where = f"{what} (line {line}) of {shown}"
                if not _is_utf8(fields):
                    return f"{where} holds bytes that are not UTF-8; save the file as UTF-8."
                if len(fields) != width:
                    return f"{where} has {_width_fault(len(fields), width, reader.line_num - line)}"
            line = reader.line_num + 1
    except csv.Error:
        where = f"Data row {row + 1} (line {line}) of {shown}"
        return f"{where} can't be read as CSV; look for an unclosed quotation mark."
    return f"The file {shown} can't be read as CSV; check that its quotation marks are closed."


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
    lines: list[str] = []

    def remembered() -> Iterator[str]:
        for text in io.TextIOWrapper(stream, encoding="latin-1", newline=""):
            lines.append(text)
            yield text

    reader = csv.reader(remembered(), delimiter=delimiter)
    row, line, last = -1, 1, lines[:]
    where = ""
    try:
        for fields in reader:
            if fields:
                row += 1
                last = lines[:]
                where = f"Data row {row} (line {line}) of {shown}"
            lines.clear()
            line = reader.line_num + 1
        for _ in csv.reader(last, delimiter=delimiter, strict=True):
            pass
    except csv.Error as error:
        if "field larger than" in str(error):
            where = f"Data row {row + 1} (line {line}) of {shown}"
        elif "unexpected end" not in str(error):
            return None
        return f"{where} has a quotation mark that is never closed; close it."
    return None


def _is_utf8(fields: list[str]) -> bool:
    try:
        "\n".join(fields).encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _width_fault(found: int, width: int, further_lines: int) -> str:
    counted = f"{found} field{'' if found == 1 else 's'} where the header has {width}"
    if further_lines:
        return f"{counted} and runs over {further_lines + 1} lines; look for an unclosed quotation mark."
    return f"{counted}; correct that row."
