"""Figures of an experiment's seconds: by table and method, and against the size of the table."""

from __future__ import annotations

import re

import pandas as pd

from c2tc_pipeline.bench.reports.score_figures import legend_height, look_legend, looks, series
from c2tc_pipeline.bench.statistics import fitted_exponent
from c2tc_pipeline.bench.statistics.runs import WHOLE, cell_scores
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.reports.picture import INK, RULE, Figure, Picture, bar_rows, bar_text, log_scale
from c2tc_pipeline.reports.wording import number, seconds, shortened
from c2tc_pipeline.reports.wording import ratio as shown_ratio


def seconds_by_table(scores: pd.DataFrame, metric: str = "condense_seconds") -> Picture:
    """Draw the seconds of each contender on each table on a logarithmic axis, or the status of what did not finish."""
    cells = _timed(series(scores[scores["method"] != WHOLE], metric), metric)
    places = list(dict.fromkeys(cells[["table", "ratio"]].itertuples(index=False, name=None)))
    several = cells["ratio"].nunique() > 1
    names = [f"{shortened(table, 24)}{f', {shown_ratio(ratio)}' if several else ''}" for table, ratio in places]
    given = looks(list(cells["series"].unique()))
    step = 0.84 / len(given)
    low, high = cells["mean"].min(), cells["mean"].max()
    # Leave space for the duration as text at the end.
    low, high = low / 1.8, high * max(3.0, (high / low) ** 0.25)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        bar_rows(axes, names)
        log_scale(axes, "x", low, high, _in_seconds)
        for cell in cells.to_dict("records"):
            look, order = given[cell["series"]], list(given).index(cell["series"])
            height = places.index((cell["table"], cell["ratio"])) - 0.42 + (order + 0.5) * step
            if cell["status"] == "ok":
                axes.plot([low, cell["mean"]], [height, height], color=RULE, linewidth=1.0)
                axes.plot(cell["mean"], height, color=look.colour, marker=look.marker, markersize=7.5)
                bar_text(axes, seconds(cell["mean"]), cell["mean"], height, xytext=(7, 0))
            else:
                text = shortened(f"{cell['series']}: {cell['status']}", 44)
                bar_text(axes, text, high / 1.02, height, xytext=(-2, 0), ha="right", color=INK)
        for edge in range(1, len(places)):
            axes.axhline(edge - 0.5, color=RULE, linewidth=0.8)
        look_legend(figure, given)

    return Picture(draw, height=max(60 + len(places) * (16 + 15 * len(given)), legend_height(len(given))))


def seconds_by_size(scores: pd.DataFrame, what: str, metric: str = "condense_seconds") -> Picture:
    """Draw seconds against the size in the variants ``"<what>=<number>"``, with the exponent of a fitted power law."""
    sizes = scores["variant"].astype(str).str.extract(rf"(?:^|[ ,;]){re.escape(what)}=([0-9.eE+-]+)", expand=False)
    sized = scores.assign(size=pd.to_numeric(sizes, errors="coerce"))
    sized = sized[(sized["method"] != WHOLE) & sized["size"].notna()]
    if sized.empty:
        raise InputError(f"The scores have no variant that says a size; variants are written '{what}=<number>'.")
    cells = pd.concat(
        [cell_scores(part.assign(variant=""), metric).assign(size=size) for size, part in sized.groupby("size")],
        ignore_index=True,
    )
    for name in ("space", "table"):
        if cells[name].nunique() > 1:
            cells["contender"] = cells["contender"] + ", " + cells[name]
    cells = _timed(cells, metric)
    given = looks(list(cells["contender"].unique()))
    shares = cells["size"].max() <= 1
    texts = {}
    for name in given:
        line = cells[cells["contender"] == name]
        exponent = fitted_exponent(line["size"].to_numpy(), line["mean"].to_numpy())
        texts[name] = name if pd.isna(exponent) else f"{name}: {what}^{exponent:.2f}"

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        log_scale(axes, "x", cells["size"].min() / 1.15, cells["size"].max() * 1.15)
        log_scale(axes, "y", cells["mean"].min() / 1.6, cells["mean"].max() * 1.6, _in_seconds)
        for name, look in given.items():
            line = cells[(cells["contender"] == name) & (cells["status"] == "ok")].sort_values("size")
            axes.plot(line["size"], line["mean"], markersize=6, **look.style)
        points = sorted(cells["size"].unique())
        if len(points) <= 8:
            axes.set_xticks(points, [shown_ratio(size) if shares else f"{size:,.12g}" for size in points])
        axes.set_xlabel(shortened(f"{what} of the whole table" if shares else what, 60))
        look_legend(figure, {texts[name]: look for name, look in given.items()})

    return Picture(draw, height=max(320, legend_height(len(given))))


def _in_seconds(value: float) -> str:
    return f"{number(value)} s"


def _timed(cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the cells with times above zero, which a logarithmic axis cannot show."""
    if not (cells["mean"] > 0).any():
        raise InputError(f"The scores have no time in column {metric!r}; run the experiment that measures it.")
    return cells.assign(mean=cells["mean"].clip(lower=1e-4))
