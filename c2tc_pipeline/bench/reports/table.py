"""The table of an experiment: mean ± standard deviation, best and second marked, the paper's numbers beside ours.

What belongs here: what each cell says. Rows and columns are chosen by a :class:`Layout`; the forms in which the table
leaves are in ``experiment_shown.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.bench.reports.layout import DIMENSIONS, Layout
from c2tc_pipeline.bench.reports.legend import PARTLY, legend
from c2tc_pipeline.bench.reports.shown import Cell, ShownTable
from c2tc_pipeline.bench.statistics.runs import CELL, WHOLE, cell_scores, named_contenders, paper_space
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.averages import METRICS
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.markup import Column

METRIC_NAMES = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "condense_seconds": "seconds to condense",
    "fit_seconds": "seconds to fit",
}


def experiment_table(scores: pd.DataFrame, layout: Layout, paper: pd.DataFrame | None = None) -> ShownTable:
    """Return an experiment's results as a table.

    Parameters
    ----------
    scores : DataFrame
        One row a trained model.
    layout : Layout
        Which columns of the scores are rows and which are columns.
    paper : DataFrame or None
        What :func:`~c2tc_pipeline.bench.experiments.grid.paper_numbers` returned; each number is put
        beside the one of ours that agrees with it in all but the space, and in that where the layout shows it.

    Returns
    -------
    ShownTable
        The table. In each row the best contender is bold and the second underlined, by the numbers as they are
        printed, so that equals are marked alike; the whole table takes no part. Models do not compete: where they are
        side by side, the best under each of them is marked.

    Raises
    ------
    InputError
        When the layout would put different things into one cell.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "t", "ratio": 0.1, "model": "mlp", "space": "hcfe",
    ...     "method": ["ours", "ours", "random", "random"], "variant": "", "split": [0, 1] * 2, "seed": 0,
    ...     "model_seed": 0, "status": "ok", "accuracy": [0.78, 0.82, 0.70, 0.70]})
    >>> print(experiment_table(scores, Layout(metrics=["accuracy"])).markdown().splitlines()[2])
    | t | 10 % | accuracy | **80.0 ± 2.0** | <u>70.0 ± 0.0</u> |
    """
    scores = layout.fitted(scores)
    cells = pd.concat([_cells(scores, metric).assign(metric=metric) for metric in layout.metrics], ignore_index=True)
    printed = _printed(paper, layout, scores)
    found = {
        (*key, metric): cell
        for metric, part in cells.groupby("metric", sort=False)
        for key, cell in zip(
            part[list(layout.shown)].itertuples(index=False, name=None), part.to_dict("records"), strict=True
        )
    }
    across = layout.ordered(cells, layout.across)
    races = _races(layout, across)
    rows, with_paper = [], set()
    for row_key in layout.ordered(cells, layout.rows):
        for metric in layout.metrics:
            in_row = [found.get((*row_key, *column_key, metric)) for column_key in across]
            if not any(cell is not None for cell in in_row):
                continue
            values = [_contending(cell, metric) for cell in in_row]
            marks = [""] * len(across)
            for race in races:
                for place, mark in zip(race, _marks([values[p] for p in race], highest=metric in METRICS), strict=True):
                    marks[place] = mark
            names = [wording.shortened(layout.name(*pair), 60) for pair in zip(layout.rows, row_key, strict=True)]
            shown = [Cell(name) for name in [*names, METRIC_NAMES.get(metric, metric)]]
            for column_key, cell, mark in zip(across, in_row, marks, strict=True):
                beside = _beside(printed, layout, (*row_key, *column_key), metric)
                with_paper |= {column_key} if beside else set()
                bracketed = f"({beside})" if beside and layout.paper == "brackets" else ""
                shown.append(Cell(_worded(cell, metric), mark, bracketed))
                if layout.paper == "column":
                    shown.append(Cell(beside or wording.MISSING))
            rows.append(shown)
    heads = [*(Column(name, name == "ratio") for name in layout.rows), Column("metric")]
    kept = list(range(len(heads)))
    for column_key in across:
        title = " / ".join(layout.name(*pair) for pair in zip(layout.across, column_key, strict=True))
        kept.append(len(heads))
        heads.append(Column(wording.shortened(title, 60), True))
        if layout.paper == "column":
            # A column without a single number of the paper's says nothing.
            kept += [len(heads)] if column_key in with_paper else []
            heads.append(Column(f"{wording.shortened(title, 60)}, paper", True))
    body = [[row[place] for place in kept] for row in rows]
    told = legend(cells, layout, marked=bool(races), beside=bool(with_paper))
    return ShownTable([heads[place] for place in kept], body, told)


def experiment_table_markdown(scores: pd.DataFrame, layout: Layout, paper: pd.DataFrame | None = None) -> str:
    """Return an experiment's results as Markdown; see :func:`experiment_table`.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "t", "ratio": 0.1, "model": "mlp", "space": "hcfe", "method": ["ours", "mtt"],
    ...     "variant": "", "split": 0, "seed": 0, "model_seed": 0, "status": ["ok", "OOT"],
    ...     "accuracy": [0.78, float("nan")], "macro_f1": [0.6, float("nan")]})
    >>> print(experiment_table_markdown(scores, Layout()).splitlines()[3])
    | t | 10 % | macro-F1 | **60.0** | OOT |
    """
    return experiment_table(scores, layout, paper).markdown()


def _cells(scores: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return means over runs with method and variant, which a contender's name holds together."""
    named = named_contenders(scores, [metric])
    # The whole table takes no time to condense: that is not a failure.
    scores = named[(named["method"] != WHOLE) | (named["status"] != "ok") | named[metric].notna()]
    parts = scores[[*CELL, "method", "variant"]].drop_duplicates()
    return cell_scores(scores, metric).merge(parts, on=CELL, how="left")


def _races(layout: Layout, across: Sequence[tuple[Any, ...]]) -> list[list[int]]:
    """Return the places of columns that compete with each other; one alone is no race.

    Examples
    --------
    >>> _races(Layout(columns=("model", "method")), [("mlp", "ours"), ("mlp", "dm"), ("mlp", "whole"), ("tabr", "dm")])
    [[0, 1]]
    """
    races: dict[Any, list[int]] = {}
    for place, key in enumerate(across):
        named = dict(zip(layout.across, key, strict=True))
        if named.get("method") != WHOLE:
            races.setdefault(named.get("model"), []).append(place)
    return [race for race in races.values() if len(race) > 1]


def _contending(cell: dict[Any, Any] | None, metric: str) -> float:
    """Return the number as it is printed, NaN for what takes no part in the race."""
    if cell is None or cell["status"] != "ok" or cell["method"] == WHOLE:
        return float("nan")
    return round(100 * cell["mean"], 1) if metric in METRICS else float(cell["mean"])


def _marks(values: Sequence[float], *, highest: bool) -> list[str]:
    """Return the emphasis of each value: the best and, where there are others, the next one.

    Examples
    --------
    >>> _marks([81.2, 80.0, 81.2, float("nan"), 79.0], highest=True)
    ['best', 'second', 'best', '', '']
    """
    order = sorted({value for value in values if not np.isnan(value)}, reverse=highest)
    if len(order) < 2:
        # One contender is no race, and among equals nobody stands out.
        alone = sum(not np.isnan(value) for value in values) == 1
        return ["best" if alone and not np.isnan(value) else "" for value in values]
    emphasis = {order[0]: "best", order[1]: "second"}
    return [emphasis.get(value, "") for value in values]


def _worded(cell: dict[Any, Any] | None, metric: str) -> str:
    if cell is None:
        return wording.MISSING
    if cell["status"] != "ok":
        return wording.shortened(cell["status"], 20)
    partly = f" {PARTLY}" if cell["unfinished"] else ""
    return _number(cell["mean"], cell["std"] if cell["runs"] > 1 else np.nan, metric) + partly


def _number(mean: float, std: float, metric: str) -> str:
    if metric in METRICS:
        return f"{100 * mean:.1f}" if np.isnan(std) else wording.percentage(mean, std)
    shown = [wording.number(float(f"{value:.3g}")) for value in (mean, std) if not np.isnan(value)]
    return " ± ".join(shown)


def _printed(paper: pd.DataFrame | None, layout: Layout, scores: pd.DataFrame) -> dict[tuple[Any, ...], str]:
    """Return the paper's numbers as text, by what the layout shows and the metric."""
    if paper is None:
        return {}
    for name in DIMENSIONS:
        # What the layout does not show has to agree, too: a number of another model's does not belong here.
        if name not in layout.shown and name != "space":
            alike = paper[name].isin(scores[name]) | (paper[name] == "")
            paper = paper[alike | ((name == "ratio") & (paper["method"] == WHOLE))]
    found: dict[tuple[Any, ...], str] = {}
    for metric, part in paper[paper["metric"].isin(layout.metrics)].groupby("metric", sort=False):
        # The paper names one space a method; only a layout that shows spaces tells them apart.
        same = part if "space" in layout.shown else part.assign(space="")
        fitted = layout.fitted(same)
        for key, number in zip(
            fitted[list(layout.shown)].itertuples(index=False, name=None), fitted.to_dict("records"), strict=True
        ):
            text = number["status"]
            if text in ("ok", "under"):
                text = ("< " if text == "under" else "") + _number(number["mean"], number["std"], str(metric))
            if found.setdefault((*_rounded(key), metric), text) != text:
                raise InputError(
                    f"The paper's numbers hold two values for {', '.join(map(str, key))}; keep one of them."
                )
    return found


def _beside(printed: dict[tuple[Any, ...], str], layout: Layout, key: tuple[Any, ...], metric: str) -> str:
    """Return the paper's number for a cell; one that the paper gives for no space in particular holds for all."""
    parts = list(zip(layout.shown, key, strict=True))
    named = tuple(paper_space(value) if name == "space" else value for name, value in parts)
    spaceless = tuple("" if name == "space" else value for name, value in parts)
    return printed.get((*_rounded(named), metric)) or printed.get((*_rounded(spaceless), metric), "")


def _rounded(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(float(f"{value:.9g}") if isinstance(value, float) else value for value in key)
