"""The report of a table over all its ratios, which the pipeline publishes.

It holds no timings, so that the same condensed tables and scores give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.evaluation.row_worth import class_means, row_worth
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.exhibits import Panels, means_by_ratio, rows_panels, timeless_means
from c2tc_pipeline.reports.html import ending_values, render_page, repeated_rows, table_values
from c2tc_pipeline.reports.markdown import Cell, ShownTable, columns
from c2tc_pipeline.reports.verdict import Headline, headline, verdict, worth_number


def render_table_report(
    name: str, tables: Mapping[float, CondensedTable], scores: Mapping[float, pd.DataFrame] | None = None
) -> str:
    """Return the report of a table as one self-contained HTML page over all its ratios."""
    if not tables:
        raise InputError(f"Table {name!r} has no condensed table to report on; condense it at one ratio at least.")
    tables = {ratio: tables[ratio] for ratio in sorted(tables)}
    scores = {ratio: frame for ratio, frame in (scores or {}).items() if ratio in tables}
    first = next(iter(tables.values()))
    # Notices that all ratios share are shown once.
    shared = [str(notice) for notice in first.notices if all(notice in table.notices for table in tables.values())]
    parts, headlines = [], {}
    for ratio, table in tables.items():
        frame = scores.get(ratio, pd.DataFrame())
        if frame.empty:
            part = table_values(table, frame, frame, frame, "")
        else:
            means, worth = timeless_means(frame), row_worth(frame)
            headlines[ratio] = headline(means, worth)
            part = table_values(table, means, worth, class_means(frame), verdict(frame))
        part |= {"title": f"Ratio {wording.ratio(ratio)}", "anchor": _anchor(ratio)}
        part["notices"] = [text for text in part["notices"] if text not in shared]
        if table is not first:
            # The source has one distribution; the smallest ratio is the hardest.
            part["columns"] = Panels("", [], "")
        parts.append(part)
    means = means_by_ratio(scores)
    return render_page(
        "table_report.html",
        "Condensed table",
        name,
        headline=_headline(tables, headlines),
        by_rows=rows_panels(means, "auc") if len(means) and len(tables) > 1 else None,
        notices=shared,
        ratios=parts,
        ending=ending_values(first, {"seed": first.summary.get("seed"), **first.summary.get("settings", {})}),
    )


def _anchor(ratio: float) -> str:
    return f"ratio-{wording.ratio(ratio).removesuffix(' %')}"


def _headline(tables: Mapping[float, CondensedTable], headlines: Mapping[float, Headline | None]) -> ShownTable:
    """Return the headline numbers, one row per ratio, each linked to its section."""
    numbers = ("rows in", "rows out", "accuracy", "random rows", "whole table", "row worth", "repeated records")
    body = []
    for ratio, table in tables.items():
        summary, found = table.summary, headlines.get(ratio)
        accuracies = (None,) * 3 if found is None else (found.accuracy, found.random, found.whole)
        body.append(
            (
                Cell(wording.ratio(ratio), anchor=_anchor(ratio)),
                wording.count(summary["rows_in"]),
                wording.count(summary["rows_out"]),
                *(wording.MISSING if value is None else f"{100 * value:.1f} %" for value in accuracies),
                wording.MISSING if found is None or found.worth is None else worth_number(found.worth),
                wording.count(repeated_rows(table)["total"]),
            )
        )
    return ShownTable(columns("ratio", *numbers, numeric=numbers), body)
