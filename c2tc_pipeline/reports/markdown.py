"""Markdown from values: escaping, tables, embedded pictures.

What belongs here: what the metadata of a Dagster asset and the leaderboard are written with. Dagster's pages show an
embedded SVG and an embedded PNG at its own size, in a window of its own; they drop HTML, so a picture has to be drawn
in the size in which it shall be seen.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from typing import Any

from c2tc_pipeline.reports.markup import Column
from c2tc_pipeline.reports.picture import Showable
from c2tc_pipeline.reports.wording import printable

MOST_SVG_BYTES = 45_000
"""Above this a picture is embedded as PNG: metadata goes through the event log, again for each materialisation."""
_PUNCTUATION = re.compile(r"([\\`*_\[\](){}<>#!|~&$:@^=])")
# Dagster's pages make links of what looks like an address after they have taken the backslashes away.
_ADDRESS = re.compile(r"(?:(?<=http)|(?<=https)|(?<=ftp))(?=\\:)|(?<=www)(?=\.)|(?=\\@)", re.IGNORECASE)
_NOTHING = "<!---->"


def markdown_escaped(value: Any) -> str:
    """Return a value as Markdown that shows it as it is wherever it does not begin a line.

    Addresses of pages and people are parted by an empty comment, which nobody sees: else they would become links.

    Examples
    --------
    >>> print(markdown_escaped("a_b|<i>"))
    a\\_b\\|\\<i\\>
    >>> print(markdown_escaped("http://host"))
    http<!---->\\://host
    """
    return _ADDRESS.sub(_NOTHING, _punctuation_escaped(value))


def _punctuation_escaped(value: Any) -> str:
    return _PUNCTUATION.sub(r"\\\1", printable(value))


def markdown_table(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table; heads and cells are escaped.

    Examples
    --------
    >>> print(markdown_table([Column("name"), Column("rows", True)], [["a|b", 3]]))
    | name | rows |
    | --- | ---: |
    | a\\|b | 3 |
    """
    lines = [[column.title for column in columns], *rows]
    head, *body = [f"| {' | '.join(markdown_escaped(cell) for cell in line)} |" for line in lines]
    rule = f"| {' | '.join('---:' if column.numeric else '---' for column in columns)} |"
    return "\n".join([head, rule, *body])


def picture_markdown(picture: Showable, alternative: str, caption: str = "") -> str:
    """Return a picture that is part of the Markdown text itself.

    Parameters
    ----------
    picture : Showable
        The picture; it is embedded as SVG or, where that would be large, as PNG.
    alternative : str
        What it shows, for people who cannot see it.
    caption : str
        How to read it, below the picture.

    Returns
    -------
    str
        Markdown of at most some 60 kB.

    Examples
    --------
    >>> from c2tc_pipeline.reports.picture import Picture
    >>> line = Picture(lambda figure: figure.subplots().plot([1, 2, 3]), height=200)
    >>> picture_markdown(line, "A line.")[:40]
    '![A line.](data:image/svg+xml;base64,PD9'
    """
    kind, data = "svg+xml", picture.svg().encode()
    if len(data) > MOST_SVG_BYTES:
        kind, data = "png", picture.png()
    image = f"![{_punctuation_escaped(alternative)}](data:image/{kind};base64,{base64.b64encode(data).decode()})"
    return f"{image}\n\n{markdown_escaped(caption)}" if caption else image
