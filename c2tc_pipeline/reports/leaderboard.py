"""The leaderboard: every table, ratio and model, and how much of what condensing could lose was kept.

What belongs here: one table of averaged scores in, its ranking as a frame, as Markdown and as a page out.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from c2tc_pipeline.evaluation.averages import METRICS
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.markdown import markdown_table
from c2tc_pipeline.reports.markup import Column, element, table
from c2tc_pipeline.reports.page import page

SETS = ("condensed", "random", "whole")
PLACE = ["table", "ratio", "rows_in", "rows_out", "model"]
EXPLANATION = (
    "Accuracy and macro-F1 in percent, mean ± standard deviation over the seeds, of models trained on the condensed "
    "rows, on as many random rows and on the whole table, tested on rows that nothing else has seen. Kept is the share "
    "of the gap between random and whole that the condensed rows close: (condensed - random) / (whole - random); a "
    "dash where the whole table is no better than random rows. Best first, by the kept accuracy."
)


def ranked(scores: pd.DataFrame) -> pd.DataFrame:
    """Return one row a table, ratio and model, best first.

    Parameters
    ----------
    scores : DataFrame
        One row a table, ratio, model and training set: ``table``, ``ratio``, ``rows_in``, ``rows_out``, ``model``,
        ``training_set``, and mean and standard deviation of each metric. Other columns are not looked at.

    Returns
    -------
    DataFrame
        ``table``, ``ratio``, ``rows_in``, ``rows_out``, ``model``; for each metric and training set the mean
        (``accuracy_condensed``) and its standard deviation (``accuracy_condensed_std``); for each metric the kept
        share of the gap (``accuracy_kept``), NaN where whole is no better than random.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "t", "ratio": 0.1, "rows_in": 90, "rows_out": 9, "model": "mlp",
    ...     "training_set": ["condensed", "random", "whole"], "accuracy": [0.8, 0.6, 0.9], "accuracy_std": 0.0,
    ...     "macro_f1": [0.5, 0.5, 0.5], "macro_f1_std": 0.0})
    >>> ranked(scores)[["table", "accuracy_kept", "macro_f1_kept"]].round(3).values.tolist()
    [['t', 0.667, nan]]
    """
    wide = scores[PLACE].drop_duplicates().set_index(PLACE)
    for metric in METRICS:
        for name in SETS:
            one = scores[scores["training_set"] == name].set_index(PLACE)
            wide[f"{metric}_{name}"] = one[metric]
            wide[f"{metric}_{name}_std"] = one[f"{metric}_std"]
        gap = wide[f"{metric}_whole"] - wide[f"{metric}_random"]
        wide[f"{metric}_kept"] = (wide[f"{metric}_condensed"] - wide[f"{metric}_random"]) / gap.where(gap > 0, np.nan)
    # Among equals the more accurate; after that by name, so that the order never depends on that of the input.
    order = ["accuracy_kept", "accuracy_condensed", "table", "ratio", "model"]
    return wide.reset_index().sort_values(order, ascending=[False, False, True, True, True], ignore_index=True)


def render_leaderboard(scores: pd.DataFrame) -> str:
    """Return the leaderboard as one self-contained HTML page.

    Parameters
    ----------
    scores : DataFrame
        What :func:`ranked` takes.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "<b>", "ratio": 0.1, "rows_in": 90, "rows_out": 9, "model": "mlp",
    ...     "training_set": ["condensed", "random", "whole"], "accuracy": [0.8, 0.6, 0.9], "accuracy_std": 0.0,
    ...     "macro_f1": [0.5, 0.5, 0.5], "macro_f1_std": 0.0})
    >>> "66.7 %" in render_leaderboard(scores), "<b>" in render_leaderboard(scores)
    (True, False)
    """
    columns, rows = _shown(scores)
    board = element(
        "section", element("div", table(columns, rows), css="board"), element("p", EXPLANATION, css="faint")
    )
    return page("Leaderboard", "", board)


def render_leaderboard_markdown(scores: pd.DataFrame) -> str:
    """Return the leaderboard as Markdown.

    Parameters
    ----------
    scores : DataFrame
        What :func:`ranked` takes.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "a|b", "ratio": 0.1, "rows_in": 90, "rows_out": 9, "model": "mlp",
    ...     "training_set": ["condensed", "random", "whole"], "accuracy": [0.8, 0.6, 0.9], "accuracy_std": 0.0,
    ...     "macro_f1": [0.5, 0.5, 0.5], "macro_f1_std": 0.0})
    >>> print(render_leaderboard_markdown(scores).splitlines()[4])
    | a\\|b | 0.1 | 90 → 9 | mlp | 80.0 ± 0.0 | 60.0 ± 0.0 | 90.0 ± 0.0 | 66.7 % | ...
    """
    return f"# Leaderboard\n\n{markdown_table(*_shown(scores))}\n\n{EXPLANATION}\n"


def _shown(scores: pd.DataFrame) -> tuple[list[Column], list[list[str]]]:
    """Return the columns and the worded cells that both forms show."""
    columns = [Column("table"), Column("ratio", True), Column("rows", True), Column("model")]
    for title in ("accuracy", "macro-F1"):
        columns += [*(Column(f"{title} {name}", True) for name in SETS), Column(f"{title} kept", True)]
    rows = []
    for row in ranked(scores).to_dict("records"):
        cells = [
            wording.shortened(row["table"], 60),
            wording.ratio(row["ratio"]),
            f"{wording.count(row['rows_in'])} → {wording.count(row['rows_out'])}",
            wording.shortened(row["model"], 60),
        ]
        for metric in METRICS:
            for name in SETS:
                cells.append(_score(row[f"{metric}_{name}"], row[f"{metric}_{name}_std"]))
            cells.append(wording.share(row[f"{metric}_kept"]))
        rows.append(cells)
    return columns, rows


def _score(mean: float, deviation: float) -> str:
    return wording.MISSING if np.isnan(mean) else wording.percentage(mean, deviation)
