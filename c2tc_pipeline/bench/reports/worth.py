"""Tables and figures of the worth of condensed rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from c2tc_pipeline.bench.experiments.grid import REPORTING_TABLES, TUNING_TABLES
from c2tc_pipeline.bench.reports.table import metric_name
from c2tc_pipeline.bench.statistics.worth import LEARNER, mean_worths, training_sets
from c2tc_pipeline.evaluation.row_worth import mean_scores
from c2tc_pipeline.reports import figures, wording
from c2tc_pipeline.reports.exhibits import Exhibit
from c2tc_pipeline.reports.markdown import Cell, Column, ShownTable
from c2tc_pipeline.reports.verdict import learner_name, worth_number

_PLACE = ["table", "ratio", "contender"]


def worth_table(found: pd.DataFrame, metric: str) -> ShownTable:
    """Return the worth by one metric, a column for each learner; ``found`` comes from ``worths``.

    Geometric means over tables come first, those of each ratio and method below each other.
    """
    own = found[found["metric"] == metric]
    groups = {"all tables": own}
    for name, members in (("tuning tables", TUNING_TABLES), ("reporting tables", REPORTING_TABLES)):
        part = own[own["table"].isin(members)]
        if 0 < part["table"].nunique() < own["table"].nunique():
            groups[name] = part
    means = pd.concat([mean_worths(part).assign(table=name) for name, part in groups.items()])
    cells = pd.concat([part.sort_values("ratio", ascending=False, kind="stable") for part in (means, own)])
    learners = list(dict.fromkeys(cells[LEARNER].itertuples(index=False, name=None)))
    body = []
    for place, part in cells.groupby(_PLACE, sort=False):
        table, ratio, contender = map(str, place)
        by_learner = {(cell["model"], cell["space"]): cell for cell in part.to_dict("records")}
        named = [Cell(table), Cell(wording.ratio(float(ratio))), Cell(wording.shortened(contender, 40))]
        body.append([*named, *(_cell(by_learner.get(learner)) for learner in learners)])
    heads = [Column(learner_name((model, space)), True) for model, space in learners]
    return ShownTable(
        [Column("table"), Column("ratio", True), Column("method"), *heads],
        body,
        f"Random rows that give the same {metric_name(metric)} as one condensed row; in brackets a 90 % interval over "
        f"draws and seeds, and the share of the whole table's {metric_name(metric)}. > and <: beyond the largest or "
        "smallest random sample. Over several tables: geometric means, in which a table beyond its samples counts as "
        "the largest or smallest of them (≈ where there are tables of both kinds), and mean shares. Bold: more than "
        "one random row.",
    )


def _cell(cell: Mapping[Any, Any] | None) -> Cell:
    if cell is None:
        return Cell(wording.MISSING)
    text = f"≈ {cell['worth']:.2g}" if cell["bound"] == "both" else worth_number(cell)
    low = cell.get("low", float("nan"))
    surely = cell["worth"] > 1 and not low <= 1 and cell["bound"] != "less"
    asides = [
        # A single seed has no interval.
        "" if pd.isna(low) or cell["bound"] or low == cell["high"] else f"{low:.2g} to {cell['high']:.2g}",
        "" if pd.isna(cell["share"]) else f"{100 * cell['share']:.1f} %",
    ]
    aside = "; ".join(filter(None, asides))
    return Cell(text, "best" if surely else "", f"({aside})" if aside else "")


def worth_exhibits(scores: pd.DataFrame, metric: str = "auc") -> Iterator[Exhibit]:
    """Yield, for each table, ratio and model, a score against random rows with the first contender as a mark."""
    drawn = set()
    for (table, ratio, contender), frame in training_sets(scores):
        if (table, ratio) in drawn:
            continue
        drawn.add((table, ratio))
        name = metric_name(metric)
        for learner, own in figures.learners(mean_scores(frame)):
            yield Exhibit(
                f"{name} against random rows, {learner} on {table}, {wording.ratio(ratio)}",
                figures.score_by_rows(own, metric, name, name=learner),
                f"{name} of {learner} on {table} by the number of random rows trained on, with {contender} as a mark.",
                "Means over the seeds, bars one standard deviation to either side. Where the curve reaches the height "
                "of the diamond, random rows do as well as the condensed ones. The dashed line is the whole table.",
            )
