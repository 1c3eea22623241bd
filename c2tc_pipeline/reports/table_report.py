"""The report of a table over all its ratios: what the pipeline publishes.

What belongs here: which sections it has and in which order. It holds no timings, so that the same condensed tables and
scores give the same bytes, however long they took.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from c2tc_pipeline.common.errors import InputError, Notice
from c2tc_pipeline.evaluation.averages import METRICS
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.exhibits import ratio_exhibit, table_exhibits
from c2tc_pipeline.reports.headline import explanation, ratios_section, tiles_section
from c2tc_pipeline.reports.markup import Markup, element, link
from c2tc_pipeline.reports.page import page
from c2tc_pipeline.reports.score_means import means_by_ratio, timeless_means
from c2tc_pipeline.reports.score_section import class_scores_section, scores_section
from c2tc_pipeline.reports.sections import (
    classes_section,
    columns_section,
    exhibits_section,
    notices_section,
    provenance_section,
    rows_section,
)
from c2tc_pipeline.reports.subject import ReportSubject

MOST_ROWS = 200


def render_table_report(
    name: str, tables: Mapping[float, ReportSubject], scores: Mapping[float, pd.DataFrame] | None = None
) -> str:
    """Return the report of a table as one self-contained HTML page over all its ratios.

    Parameters
    ----------
    name : str
        The table's name.
    tables : mapping of float to CondensedTable
        The condensed table of each ratio, all of the same encoder; or anything with the attributes that
        :class:`~c2tc_pipeline.reports.subject.ReportSubject` names.
    scores : mapping of float to DataFrame, optional
        What :func:`~c2tc_pipeline.evaluation.scores.evaluate_condensed` returned for a ratio; ratios may be missing.

    Returns
    -------
    str
        The page; the same tables and scores give the same text, whatever their timings.

    Raises
    ------
    InputError
        When there is no table.

    Examples
    --------
    >>> from c2tc_pipeline import condense
    >>> rows = pd.DataFrame({"x": range(100), "y": ["a"] * 80 + ["b"] * 20})
    >>> tables = {ratio: condense(rows, label="y", ratio=ratio, roles={"x": "numeric"}) for ratio in (0.1, 0.2)}
    >>> page = render_table_report("numbers", tables)
    >>> "<title>Condensed table: numbers</title>" in page, page.count("Condensed rows")
    (True, 2)
    """
    if not tables:
        raise InputError(f"Table {name!r} has no condensed table to report on; condense it at one ratio at least.")
    tables = {ratio: tables[ratio] for ratio in sorted(tables)}
    scores = {ratio: frame for ratio, frame in (scores or {}).items() if ratio in tables}
    anchors = {ratio: f"ratio-{wording.ratio(ratio)}" for ratio in tables}
    first = next(iter(tables.values()))
    shared = [notice for notice in first.notices if all(notice in table.notices for table in tables.values())]
    means = means_by_ratio(scores)
    return page(
        "Condensed table",
        name,
        _contents(anchors, scored=not means.empty),
        ratios_section(tables, anchors),
        explanation(tables.values()),
        notices_section(shared),
        _scores_against_ratio(means),
        *(
            _ratio_section(ratio, table, scores.get(ratio, pd.DataFrame()), shared, anchors[ratio])
            for ratio, table in tables.items()
        ),
        element("div", columns_section(first), anchor="columns"),
        provenance_section(
            {"seed": first.summary.get("seed"), **first.summary.get("settings", {})}, first.summary.get("versions", {})
        ),
    )


def _contents(anchors: Mapping[float, str], *, scored: bool) -> Markup:
    links = [link("scores", "Scores")] if scored else []
    links += [link(anchor, f"Ratio {wording.ratio(ratio)}") for ratio, anchor in anchors.items()]
    return element("nav", *links, link("columns", "Columns"))


def _scores_against_ratio(means: pd.DataFrame) -> Markup:
    if means.empty:
        return Markup("")
    parts = []
    for exhibit in (ratio_exhibit(means, metric) for metric in METRICS):
        parts += [element("h3", exhibit.title), exhibit.html()]
    return element("section", element("h2", "Scores against ratio"), *parts, anchor="scores")


def _ratio_section(
    ratio: float, table: ReportSubject, scores: pd.DataFrame, shared: list[Notice], anchor: str
) -> Markup:
    """Return all that is said about one ratio; notices that all ratios share are said once, elsewhere."""
    return element(
        "section",
        element("h2", f"Ratio {wording.ratio(ratio)}", css="part"),
        tiles_section(table),
        notices_section([notice for notice in table.notices if notice not in shared], level=3),
        scores_section(scores if scores.empty else timeless_means(scores), level=3),
        class_scores_section(table, scores, level=3),
        classes_section(table, level=3),
        exhibits_section(table_exhibits(table), level=3),
        rows_section(table, MOST_ROWS, level=3),
        anchor=anchor,
    )
