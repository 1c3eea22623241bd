"""The report of one condensed table, with its timings: what ``c2tc condense`` writes.

What belongs here: the order of its sections. The sections are in ``sections.py``, ``headline.py``, ``exhibits.py`` and
``score_section.py``, the page's frame in ``page.py``.
"""

from __future__ import annotations

import pandas as pd

from c2tc_pipeline.reports.exhibits import stages_exhibit, table_exhibits
from c2tc_pipeline.reports.headline import explanation, tiles_section, time_tile
from c2tc_pipeline.reports.page import page
from c2tc_pipeline.reports.score_section import scores_section
from c2tc_pipeline.reports.sections import (
    classes_section,
    columns_section,
    exhibits_section,
    notices_section,
    provenance_section,
    rows_section,
)
from c2tc_pipeline.reports.subject import ReportSubject

MOST_ROWS = 50


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
    summary = table.summary
    name = summary.get("table") or "table"
    stages = summary.get("seconds")
    settings = {"seed": summary.get("seed"), "ratio": summary.get("ratio"), **summary.get("settings", {})}
    return page(
        "Condensed table",
        name,
        tiles_section(table, *([time_tile(stages)] if stages else [])),
        explanation([table]),
        notices_section(table.notices),
        scores_section(pd.DataFrame(summary.get("scores", []))),
        classes_section(table),
        exhibits_section([*table_exhibits(table), *([stages_exhibit(stages)] if stages else [])]),
        columns_section(table),
        rows_section(table, MOST_ROWS),
        provenance_section(settings, summary.get("versions", {})),
    )
