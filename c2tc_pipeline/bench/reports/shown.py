"""A table of results as it is shown: worded cells, of which some stand out, and the line that explains them.

What belongs here: the two forms in which such a table leaves, Markdown and HTML. What its cells say is decided in
``experiment_table.py``, ``experiment_statistics.py`` and ``experiment_standings.py``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from c2tc_pipeline.reports.markdown import markdown_escaped
from c2tc_pipeline.reports.markup import Column, Markup, element, table

TAGS = {"best": "b", "second": "u"}
# Numbers and plain words start nothing in Markdown; without backslashes they can be read in the file, too.
_HARMLESS = re.compile(r"(?:[^\W_]|[ .,;±%+()/'†—-]|: |:$|< )*")


@dataclass(frozen=True)
class Cell:
    """One worded cell.

    Parameters
    ----------
    text : str
        What stands out, or all there is.
    emphasis : {"", "best", "second"}
        Whether the text is bold or underlined.
    aside : str
        What follows without emphasis.
    """

    text: str
    emphasis: str = ""
    aside: str = ""

    def markdown(self) -> str:
        """Return the cell as Markdown.

        Examples
        --------
        >>> Cell("81.2", "best", "(80.1)").markdown()
        '**81.2** (80.1)'
        >>> Cell("81.2", "second").markdown()
        '<u>81.2</u>'
        """
        text = _escaped(self.text)
        marked = {"best": f"**{text}**", "second": f"<u>{text}</u>"}.get(self.emphasis, text)
        return " ".join(part for part in (marked, _escaped(self.aside)) if part)

    def html(self) -> Markup:
        """Return the cell as HTML, what follows on a line of its own.

        Examples
        --------
        >>> Cell("a<b", "second").html()
        '<div><u>a&lt;b</u></div>'
        """
        marked = element("div", element(TAGS[self.emphasis], self.text) if self.emphasis else self.text)
        return Markup(marked + (element("div", self.aside, css="faint") if self.aside else ""))


@dataclass(frozen=True)
class ShownTable:
    """A table that can be shown.

    Parameters
    ----------
    columns : sequence of Column
        The heads.
    rows : sequence of sequences of Cell
        The body.
    legend : str
        How to read it.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    legend: str

    def markdown(self) -> str:
        """Return table and legend as Markdown.

        Examples
        --------
        >>> columns = [Column("name"), Column("score", True)]
        >>> print(ShownTable(columns, [[Cell("a|b"), Cell("3", "best")]], "Ok.").markdown())
        | name | score |
        | --- | ---: |
        | a\\|b | **3** |
        <BLANKLINE>
        Ok.
        """
        head = [_escaped(column.title) for column in self.columns]
        rule = ["---:" if column.numeric else "---" for column in self.columns]
        body = [[cell.markdown() for cell in row] for row in self.rows]
        lines = "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *body))
        return f"{lines}\n\n{_escaped(self.legend)}"

    def html(self) -> Markup:
        """Return table and legend as part of a page.

        Examples
        --------
        >>> "<b>3</b>" in ShownTable([Column("score", True)], [[Cell("3", "best")]], "").html()
        True
        """
        shown = table(self.columns, [[cell.html() for cell in row] for row in self.rows])
        return element("div", shown, element("p", self.legend, css="faint"), css="board")


def _escaped(text: str) -> str:
    return text if _HARMLESS.fullmatch(text) else markdown_escaped(text)
