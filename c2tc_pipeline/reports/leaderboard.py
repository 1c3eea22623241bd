"""The leaderboard: scores of every table, ratio and model, ranked by the share of the gap to the whole table kept."""

from __future__ import annotations

import numpy as np
import pandas as pd

from c2tc_pipeline.evaluation.metrics import METRICS
from c2tc_pipeline.evaluation.row_worth import COMPARED_SETS
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.html import render_page
from c2tc_pipeline.reports.markdown import ShownTable, columns
from c2tc_pipeline.reports.verdict import learner_name, worth_number

PLACE = ["table", "ratio", "rows_in", "rows_out", "model", "columns"]
_LEGEND = (
    "Accuracy and macro-F1 in percent, mean ± standard deviation over the seeds, of models trained on the condensed "
    "rows, on as many random rows and on the whole table, tested on rows that nothing else has seen. Kept is the share "
    "of the gap between random and whole that the condensed rows close: (condensed - random) / (whole - random); a "
    "dash where the whole table is no better than random rows. Row worth is the number of random rows that a condensed "
    "row replaces, by AUC. Best first, by the kept accuracy."
)


def ranked(scores: pd.DataFrame) -> pd.DataFrame:
    """Return one row per table, ratio and model, best first.

    ``scores`` has one row per table, ratio, model and training set: the columns of ``PLACE``, ``training_set``, and
    mean and standard deviation of each metric. The result has, for each metric and training set, the mean
    (``accuracy_condensed``) and its standard deviation (``accuracy_condensed_std``), and for each metric the kept share
    of the gap (``accuracy_kept``), NaN where whole is no better than random.
    """
    wide = scores[PLACE].drop_duplicates().set_index(PLACE)
    for metric in METRICS:
        for name in COMPARED_SETS:
            one = scores[scores["training_set"] == name].set_index(PLACE)
            wide[f"{metric}_{name}"] = one[metric]
            wide[f"{metric}_{name}_std"] = one[f"{metric}_std"]
        gap = wide[f"{metric}_whole"] - wide[f"{metric}_random"]
        wide[f"{metric}_kept"] = (wide[f"{metric}_condensed"] - wide[f"{metric}_random"]) / gap.where(gap > 0, np.nan)
    of_condensed = scores[scores["training_set"] == "condensed"].set_index(PLACE)
    wide[["worth", "bound"]] = of_condensed[["worth", "bound"]]
    # Names break ties, so that the order never depends on that of the input.
    order = ["accuracy_kept", "accuracy_condensed", "table", "ratio", "model", "columns"]
    return wide.reset_index().sort_values(order, ascending=[False, False, True, True, True, True], ignore_index=True)


def render_leaderboard(scores: pd.DataFrame) -> str:
    """Return the leaderboard as one self-contained HTML page; ``scores`` as in :func:`ranked`."""
    return render_page("board.html", "Leaderboard", "", notes=(), sections=[("", _board(scores))])


def render_leaderboard_markdown(scores: pd.DataFrame) -> str:
    """Return the leaderboard as Markdown; ``scores`` as in :func:`ranked`."""
    return f"# Leaderboard\n\n{_board(scores).markdown()}\n"


def _board(scores: pd.DataFrame) -> ShownTable:
    numbers = [f"{title} {name}" for title in ("accuracy", "macro-F1") for name in (*COMPARED_SETS, "kept")]
    rows = []
    for row in ranked(scores).to_dict("records"):
        cells = [
            wording.shortened(row["table"], 60),
            wording.ratio(row["ratio"]),
            f"{wording.count(row['rows_in'])} → {wording.count(row['rows_out'])}",
            wording.shortened(learner_name((row["model"], row["columns"])), 60),
            worth_number(row),
        ]
        for metric in METRICS:
            for name in (f"{metric}_{kind}" for kind in COMPARED_SETS):
                cells.append(wording.percentage(row[name], row[f"{name}_std"]))
            cells.append(wording.share(row[f"{metric}_kept"]))
        rows.append(cells)
    return ShownTable(
        columns(
            "table",
            "ratio",
            "rows",
            "model",
            "row worth",
            *numbers,
            numeric=["ratio", "rows", "row worth", *numbers],
        ),
        rows,
        _LEGEND,
    )
