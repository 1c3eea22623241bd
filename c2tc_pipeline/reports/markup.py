"""HTML from values: escaping, tables, embedded pictures.

What belongs here: the few forms that every section uses. Text that comes from a user passes through
:func:`escaped` here and nowhere else; what is already markup is of type :class:`Markup`, so that the two
cannot be mixed up.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from c2tc_pipeline.reports.wording import printable


class Markup(str):
    """Text that is HTML already and is put into the page as it is."""

    __slots__ = ()


def escaped(value: Any) -> Markup:
    """Return a value as HTML; markup stays as it is, anything else is escaped.

    Examples
    --------
    >>> escaped("<b>")
    '&lt;b&gt;'
    >>> escaped(Markup("<b>"))
    '<b>'
    """
    return value if isinstance(value, Markup) else Markup(html.escape(printable(value), quote=True))


def element(tag: str, *children: Any, css: str = "", anchor: str = "") -> Markup:
    """Return an element with its children, each escaped unless it is markup.

    Examples
    --------
    >>> element("p", "a < b", css="note")
    '<p class="note">a &lt; b</p>'
    >>> element("section", anchor="scores")
    '<section id="scores"></section>'
    """
    attributes = (f' class="{css}"' if css else "") + (f' id="{escaped(anchor)}"' if anchor else "")
    return Markup(f"<{tag}{attributes}>{''.join(escaped(child) for child in children)}</{tag}>")


def link(anchor: str, text: str) -> Markup:
    """Return a link to the element of the same page that has the anchor.

    Examples
    --------
    >>> link("scores", "Scores")
    '<a href="#scores">Scores</a>'
    """
    return Markup(f'<a href="#{escaped(anchor)}">{escaped(text)}</a>')


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    title : object
        What its head says.
    numeric : bool
        Whether its cells are set to the right.
    """

    title: Any
    numeric: bool = False


def table(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> Markup:
    """Return a table in a box that scrolls when the table is larger than the box.

    Parameters
    ----------
    columns : sequence of Column
        The heads.
    rows : iterable of sequences
        The cells, already worded; each is escaped unless it is markup.

    Returns
    -------
    Markup
        The table.

    Examples
    --------
    >>> "<td>a&amp;b</td>" in table([Column("name")], [["a&b"]])
    True
    """
    styles = ["number" if column.numeric else "" for column in columns]
    head = element("tr", *(element("th", column.title, css=css) for column, css in zip(columns, styles, strict=True)))
    body = [
        element("tr", *(element("td", value, css=css) for value, css in zip(row, styles, strict=True))) for row in rows
    ]
    return element("div", element("table", element("thead", head), element("tbody", *body)), css="scroll")


def figure(svg: str, alternative: str, caption: str) -> Markup:
    """Return a picture that is part of the page itself.

    Parameters
    ----------
    svg : str
        The picture as SVG text.
    alternative : str
        What it shows, for people who cannot see it.
    caption : str
        How to read it.

    Returns
    -------
    Markup
        A figure element.

    Examples
    --------
    >>> figure("<svg/>", "nothing", "An empty picture.")
    '<figure><img src="data:image/svg+xml;base64,PHN2Zy8+" alt="nothing"><figcaption>An empty picture...'
    """
    data = base64.b64encode(svg.encode()).decode()
    image = Markup(f'<img src="data:image/svg+xml;base64,{data}" alt="{escaped(alternative)}">')
    return element("figure", image, element("figcaption", caption))


def swatch(colour: str) -> Markup:
    """Return a small disc in a class's colour.

    Examples
    --------
    >>> swatch("#0072b2")
    '<span class="swatch" style="background:#0072b2"></span>'
    """
    return Markup(f'<span class="swatch" style="background:{escaped(colour)}"></span>')


def class_name(colour: str, name: str) -> Markup:
    """Return the name of a class behind its colour.

    Examples
    --------
    >>> class_name("#0072b2", "no")
    '<div class="keyed"><span class="swatch" style="background:#0072b2"></span><span>no</span></div>'
    """
    return element("div", swatch(colour), element("span", name), css="keyed")
