"""The report of a table over all its ratios, which the pipeline publishes.

It holds no timings, so that the same condensed tables and scores give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.evaluation.row_worth import row_worth
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.exhibits import TITLES, means_by_ratio, ratio_exhibit, timeless_means
from c2tc_pipeline.reports.html import (
    class_scores_table,
    ending_values,
    explanation,
    render_page,
    repeated_rows,
    table_values,
)
from c2tc_pipeline.reports.markdown import Cell, ShownTable, columns
from c2tc_pipeline.reports.verdict import verdict

MAX_ROWS = 200


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
    parts = []
    for ratio, table in tables.items():
        frame = scores.get(ratio, pd.DataFrame())
        if frame.empty:
            part = table_values(table, MAX_ROWS, frame, frame, "")
        else:
            part = table_values(table, MAX_ROWS, timeless_means(frame), row_worth(frame), verdict(frame))
        part |= {"title": f"Ratio {wording.ratio(ratio)}", "anchor": _anchor(ratio)}
        part["class_scores"] = class_scores_table(table, frame)
        part["notices"] = [text for text in part["notices"] if text not in shared]
        parts.append(part)
    means = means_by_ratio(scores)
    return render_page(
        "table_report.html",
        "Condensed table",
        name,
        headline=_headline(tables),
        notices=shared,
        score_exhibits=[] if means.empty else [ratio_exhibit(means, metric) for metric in TITLES],
        ratios=parts,
        **ending_values(first, {"seed": first.summary.get("seed"), **first.summary.get("settings", {})}),
    )


def _anchor(ratio: float) -> str:
    return f"ratio-{wording.ratio(ratio)}"


def _headline(tables: Mapping[float, CondensedTable]) -> ShownTable:
    """Return the headline numbers, one row per ratio, each linked to its section."""
    numbers = ("rows in", "rows out", "kept", "objective", "lower bound", "gap", "singletons", "repeated")
    body = []
    for ratio, table in tables.items():
        summary = table.summary
        rows_in, rows_out = int(summary["rows_in"]), int(summary["rows_out"])
        body.append(
            (
                Cell(wording.ratio(ratio), anchor=_anchor(ratio)),
                wording.count(rows_in),
                wording.count(rows_out),
                wording.one_in(rows_in, rows_out),
                wording.number(summary.get("objective")),
                wording.number(summary.get("bound")),
                wording.share(summary.get("gap")),
                wording.count(int((table.weight == 1).sum())),
                wording.count(repeated_rows(table)["total"]),
            )
        )
    return ShownTable(columns("ratio", *numbers, numeric=numbers), body, explanation(tables.values()))
