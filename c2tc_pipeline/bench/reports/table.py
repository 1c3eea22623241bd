"""The results table of an experiment: mean ± standard deviation, best and second marked, the paper's numbers beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.bench.rivals import COSTLY
from c2tc_pipeline.bench.statistics.runs import CELL, MEAN_OF_MODELS, WHOLE, cell_scores, named_contenders, paper_space
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.metrics import METRICS
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.markdown import Cell, Column, ShownTable

METRIC_NAMES = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "auc": "AUC",
    "log_loss": "log-loss",
    "brier": "Brier score",
    "condense_seconds": "seconds to condense",
    "fit_seconds": "seconds to fit",
}
DIMENSIONS = ("table", "ratio", "model", "space", "method", "variant")
PERCENT = (*METRICS, "auc")
"""Metrics that are shown in percent, and better when higher."""
PARTLY = "†"
STATUSES = {"OOT": "out of time", "OOM": "out of memory", "failed": "ended in an error"}


def metric_name(metric: Any) -> str:
    """Return the name of a metric in tables and figures."""
    return METRIC_NAMES.get(metric, str(metric))


@dataclass(frozen=True)
class Layout:
    """Which columns of the scores are rows of the table (each metric is a row of its own) and which are columns.

    The paper's numbers are in brackets.
    """

    rows: Sequence[str] = ("table", "ratio")
    columns: Sequence[str] = ("method",)
    metrics: Sequence[str] = METRICS

    @property
    def shown(self) -> tuple[str, ...]:
        """The dimensions of rows and columns."""
        return (*self.rows, *self.columns)

    def name(self, dimension: str, value: Any) -> str:
        """Return the title of a value; an empty variant is ``"full"``."""
        if dimension == "ratio":
            return wording.ratio(float(value))
        return str(value) or "full"

    def title(self, dimensions: Sequence[str], key: Sequence[Any]) -> str:
        """Return the title of a column."""
        names = (self.name(*pair) for pair in zip(dimensions, key, strict=True))
        return wording.shortened(" / ".join(names), 60)

    def fitted(self, scores: pd.DataFrame) -> pd.DataFrame:
        """Return the scores that the layout shows, the whole table's repeated at every ratio.

        Raises InputError when the layout names an unknown dimension or would put different things into one cell.
        """
        for name in self.shown:
            if name not in DIMENSIONS:
                raise InputError(f"The layout names {name!r}; choose from: {', '.join(DIMENSIONS)}.")
        whole = scores["method"] == WHOLE
        parts = [scores[~whole]]
        if "method" in self.shown and whole.any():
            parts.append(_at_every_ratio(scores[whole], scores[~whole]) if "ratio" in self.shown else scores[whole])
        for part in parts:
            for name in DIMENSIONS:
                hidden = name not in self.shown and not (name == "ratio" and (part["method"] == WHOLE).all())
                if hidden and part[name].nunique() > 1:
                    values = ", ".join(str(value) or "''" for value in part[name].unique())
                    raise InputError(
                        f"The scores hold several values of {name!r} ({values}), which the layout does not show; "
                        "keep one of them or add it to the rows or columns."
                    )
        return pd.concat(parts, ignore_index=True)

    def ordered(self, cells: pd.DataFrame, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return distinct values in order of appearance, ratios from largest to smallest, the whole table last."""
        place: dict[str, dict[Any, int]] = {}
        for name in names:
            values = list(cells[name].unique())
            if name == "ratio":
                values.sort(reverse=True)
            values.sort(key=lambda value: value == WHOLE)
            place[name] = {value: index for index, value in enumerate(values)}
        keys = list(dict.fromkeys(cells[list(names)].itertuples(index=False, name=None)))
        return sorted(keys, key=lambda key: [place[name][value] for name, value in zip(names, key, strict=True)])


def _at_every_ratio(whole: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Repeat the whole table's scores at every ratio of the same table; keep their own where there is no other."""
    ratios = others[["table", "ratio"]].drop_duplicates()
    repeated = whole.rename(columns={"ratio": "own"}).merge(ratios, on="table", how="left")
    return repeated.assign(ratio=repeated["ratio"].fillna(repeated["own"])).drop(columns="own")


def experiment_table(scores: pd.DataFrame, layout: Layout, paper: pd.DataFrame | None = None) -> ShownTable:
    """Return an experiment's results, one row per trained model in ``scores``, as a table.

    Each of the paper's numbers stands beside the one of ours that agrees with it in all but the space, and in that
    where the layout shows it. In each row the best contender is bold and the second underlined, by the numbers as they
    are printed; the whole table does not compete, and models do not compete with each other.
    """
    scores = layout.fitted(scores)
    cells = pd.concat([_cells(scores, metric).assign(metric=metric) for metric in layout.metrics], ignore_index=True)
    printed = _printed(paper, layout, scores)
    keys = cells[[*layout.shown, "metric"]].itertuples(index=False, name=None)
    found = dict(zip(keys, cells.to_dict("records"), strict=True))
    across = layout.ordered(cells, layout.columns)
    races = _races(layout, across)
    rows, with_paper = [], False
    for row_key in layout.ordered(cells, layout.rows):
        for metric in layout.metrics:
            in_row = [found.get((*row_key, *column_key, metric)) for column_key in across]
            if not any(cell is not None for cell in in_row):
                continue
            values = [_contending(cell, metric) for cell in in_row]
            marks = [""] * len(across)
            for race in races:
                for place, mark in zip(race, _marks([values[p] for p in race], highest=metric in PERCENT), strict=True):
                    marks[place] = mark
            names = [wording.shortened(layout.name(*pair), 60) for pair in zip(layout.rows, row_key, strict=True)]
            shown = [Cell(name) for name in [*names, metric_name(metric)]]
            for column_key, cell, mark in zip(across, in_row, marks, strict=True):
                beside = _beside(printed, layout, (*row_key, *column_key), metric)
                with_paper |= bool(beside)
                shown.append(Cell(_formatted(cell, metric), mark, f"({beside})" if beside else ""))
            rows.append(shown)
    heads = [*(Column(name, name == "ratio") for name in layout.rows), Column("metric")]
    heads += [Column(layout.title(layout.columns, key), True) for key in across]
    return ShownTable(heads, rows, _legend(cells, layout, marked=bool(races), beside=with_paper))


def _legend(cells: pd.DataFrame, layout: Layout, *, marked: bool, beside: bool) -> str:
    """Explain the table's numbers, marks and statuses."""
    done = cells[cells["status"] == "ok"]
    runs = sorted(set(done.loc[done["method"] != WHOLE, "runs"]) or set(done["runs"]))
    often = wording.counted(runs[-1], "run", "runs") if runs else "no run"
    if len(runs) > 1:
        often = f"{runs[0]} to {often}"
    percent = ", in percent" if set(layout.metrics) & set(PERCENT) else ""
    parts = [f"Mean ± standard deviation over {often} (split and condensation seed){percent}."]
    if marked:
        aside = "; the whole table takes no part" if (cells["method"] == WHOLE).any() else ""
        best = "best of the row under each model" if "model" in layout.columns else "best of the row"
        parts.append(f"Bold: {best}, underlined: second{aside}.")
    if (cells["model"] == MEAN_OF_MODELS).any():
        parts.append(f"{MEAN_OF_MODELS.capitalize()}: each run averaged over all models first.")
    if beside:
        parts.append("In brackets: the paper's numbers, whose rivals ran on label-encoded columns.")
    costly = [name.upper() for name in COSTLY if (cells["method"] == name).any()]
    if costly:
        papers = "its paper" if len(costly) == 1 else "their papers"
        parts.append(
            f"{', '.join(costly)}: with a multilayer perceptron as relay and far fewer steps than in {papers}, "
            "unless the settings say otherwise."
        )
    for status in dict.fromkeys(cells.loc[cells["status"] != "ok", "status"]):
        parts.append(f"{wording.shortened(status, 20)}: {STATUSES.get(status, 'not finished')}.")
    if ((cells["unfinished"] > 0) & (cells["status"] == "ok")).any():
        parts.append(f"{PARTLY}: some runs did not finish, the mean is over the others.")
    return " ".join(parts)


def _cells(scores: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return means over runs with method and variant, which a contender's name holds together."""
    named = named_contenders(scores, [metric])
    # The whole table takes no time to condense: that is not a failure.
    scores = named[(named["method"] != WHOLE) | (named["status"] != "ok") | named[metric].notna()]
    parts = scores[[*CELL, "method", "variant"]].drop_duplicates()
    return cell_scores(scores, metric).merge(parts, on=CELL, how="left")


def _races(layout: Layout, across: Sequence[tuple[Any, ...]]) -> list[list[int]]:
    """Return the groups of columns that compete with each other; a single column has no competition."""
    races: dict[Any, list[int]] = {}
    for place, key in enumerate(across):
        named = dict(zip(layout.columns, key, strict=True))
        if named.get("method") != WHOLE:
            races.setdefault(named.get("model"), []).append(place)
    return [race for race in races.values() if len(race) > 1]


def _contending(cell: dict[Any, Any] | None, metric: str) -> float:
    """Return the number as it is printed, NaN for columns that do not compete."""
    if cell is None or cell["status"] != "ok" or cell["method"] == WHOLE:
        return float("nan")
    return round(100 * cell["mean"], 1) if metric in PERCENT else float(cell["mean"])


def _marks(values: Sequence[float], *, highest: bool) -> list[str]:
    """Return the emphasis of each value: the best and, where there are others, the next one."""
    order = sorted({value for value in values if not np.isnan(value)}, reverse=highest)
    if len(order) < 2:
        # A single contender is not marked, nor are equal values.
        alone = sum(not np.isnan(value) for value in values) == 1
        return ["best" if alone and not np.isnan(value) else "" for value in values]
    emphasis = {order[0]: "best", order[1]: "second"}
    return [emphasis.get(value, "") for value in values]


def _formatted(cell: dict[Any, Any] | None, metric: str) -> str:
    if cell is None:
        return wording.MISSING
    if cell["status"] != "ok":
        return wording.shortened(cell["status"], 20)
    partly = f" {PARTLY}" if cell["unfinished"] else ""
    return _number(cell["mean"], cell["std"] if cell["runs"] > 1 else np.nan, metric) + partly


def _number(mean: float, std: float, metric: str) -> str:
    if metric in PERCENT:
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
        # The paper names one space per method; only a layout that shows spaces distinguishes them.
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
