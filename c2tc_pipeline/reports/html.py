"""The report: one page that holds everything it shows, runs no script and loads nothing.

What belongs here: the page's frame and the order of its sections. The sections are in ``sections.py``.
"""

from __future__ import annotations

from c2tc_pipeline.reports.markup import Markup, element, escaped
from c2tc_pipeline.reports.score_section import scores_section
from c2tc_pipeline.reports.sections import (
    classes_section,
    columns_section,
    headline_section,
    notices_section,
    pictures_section,
    provenance_section,
    rows_section,
)
from c2tc_pipeline.reports.style_sheet import STYLE_SHEET
from c2tc_pipeline.reports.subject import ReportSubject

# Even if a name slipped through unescaped, the browser would neither run nor fetch anything.
CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def render_report(table: ReportSubject) -> str:
    """Return a condensed table's report as one self-contained HTML page.

    Parameters
    ----------
    table : CondensedTable
        The table to report on, or anything with the attributes that :class:`ReportSubject` names.

    Returns
    -------
    str
        The page; the same table gives the same text.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> import pandas as pd
    >>> from c2tc_pipeline.allocation.result import Allocation
    >>> points = pd.DataFrame({"x": [0.1, 0.9], "y": [0.2, 0.8], "label": ["no", "yes"], "kind": "condensed",
    ...                        "weight": [90, 10]})
    >>> table = SimpleNamespace(
    ...     label_name="bought", classes=["no", "yes"], class_rows=[90, 10], curves=None, notices=[],
    ...     allocation=Allocation("ratio", np.array([1, 1]), 7.5, 0, (), None, 0.25),
    ...     weight=points["weight"], projection=points, roles=pd.DataFrame(),
    ...     original=pd.DataFrame({"age": [41.5, 30.2], "bought": ["no", "yes"]}),
    ...     summary={"table": "visits", "rows_in": 100, "rows_out": 2, "objective": 7.5})
    >>> page = render_report(table)
    >>> "<title>Condensed table: visits</title>" in page, "1 : 50" in page
    (True, True)
    """
    name = table.summary.get("table") or "table"
    body = element(
        "main",
        element("h1", Markup("Condensed table: "), element("span", name, css="name")),
        headline_section(table),
        notices_section(table),
        scores_section(table),
        classes_section(table),
        pictures_section(table),
        columns_section(table),
        rows_section(table),
        provenance_section(table),
    )
    head = Markup(
        '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Condensed table: {escaped(name)}</title>\n"
        f"<style>{STYLE_SHEET}</style>\n"
    )
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}</head>\n<body>\n{body}\n</body>\n</html>\n'
