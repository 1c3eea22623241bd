"""Tables of formatted cells, and Markdown for Dagster's metadata and result files.

Dagster's pages drop HTML but show embedded pictures at their own size.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from c2tc_pipeline.reports.wording import printable

_PUNCTUATION = re.compile(r"([\\`*_\[\](){}<>#!|~&$:@^=])")
# Dagster's pages turn what looks like an address into a link after they have removed the backslashes.
_ADDRESS = re.compile(r"(?:(?<=http)|(?<=https)|(?<=ftp))(?=\\:)|(?<=www)(?=\.)|(?=\\@)", re.IGNORECASE)
# Numbers and plain words start nothing in Markdown; without backslashes they stay readable in the file.
_HARMLESS = re.compile(r"(?:[^\W_]|[ ,;±%+()/'†—-]|\.(?!\w*[^\W\d])|: |:$|< )*")


def markdown_escaped(value: Any) -> str:
    """Escape a value for Markdown, anywhere but at the start of a line.

    Addresses of pages and people are broken up by an empty comment, or they would become links.
    """
    return _ADDRESS.sub("<!---->", escape_punctuation(value))


def escape_punctuation(value: Any) -> str:
    """Put a backslash before every character that may start something in Markdown."""
    return _PUNCTUATION.sub(r"\\\1", printable(value))


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, and whether its cells are aligned to the right."""

    title: Any
    numeric: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell that is more than text: emphasised (``"best"``, ``"second"``), linked, or behind a colour swatch."""

    text: str
    emphasis: str = ""
    aside: str = ""
    colour: str = ""
    anchor: str = ""

    def markdown(self) -> str:
        """Return the cell as Markdown; swatch and link are for pages only."""
        text = _escape_cell(self.text)
        marked = {"best": f"**{text}**", "second": f"<u>{text}</u>"}.get(self.emphasis, text)
        return " ".join(part for part in (marked, _escape_cell(self.aside)) if part)


@dataclass(frozen=True)
class ShownTable:
    """A table of formatted cells (text or :class:`Cell`) and a legend below it."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    legend: str = ""

    def markdown(self) -> str:
        """Return table and legend as Markdown."""
        return f"{markdown_table(self.columns, self.rows)}\n\n{_escape_cell(self.legend)}"


def columns(*titles: Any, numeric: Iterable[Any] = ()) -> list[Column]:
    """Return columns with these titles; those in ``numeric`` are aligned to the right."""
    right = set(numeric)
    return [Column(title, title in right) for title in titles]


def markdown_table(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table; titles and cells are escaped."""
    head = [_escape_cell(column.title) for column in columns]
    rule = ["---:" if column.numeric else "---" for column in columns]
    body = [[cell.markdown() if isinstance(cell, Cell) else _escape_cell(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *body))


def _escape_cell(value: Any) -> str:
    text = printable(value)
    return text if _HARMLESS.fullmatch(text) else markdown_escaped(text)
