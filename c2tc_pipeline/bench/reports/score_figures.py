"""Figures of an experiment's scores: against the ratio, against a setting, by variant, and mean ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.bench.reports.table import metric_name
from c2tc_pipeline.bench.statistics.comparisons import Ranking
from c2tc_pipeline.bench.statistics.runs import WHOLE, cell_scores, is_reference
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.metrics import METRICS
from c2tc_pipeline.reports.picture import (
    COLOURS,
    FAINT_INK,
    INK,
    LEGEND_LENGTH,
    OTHER_COLOUR,
    Axes,
    Figure,
    Picture,
    bar_rows,
    bar_text,
    draw_legend,
    plain_axis,
    ratio_axis,
)
from c2tc_pipeline.reports.wording import ratio as shown_ratio
from c2tc_pipeline.reports.wording import shortened

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
UNFINISHED = "*"
PANELS_ACROSS = 2
_RANK_LINE = 24
"""Points from one name of the rank diagram to the next."""


@dataclass(frozen=True)
class Look:
    """Colour, marker and line of a contender."""

    colour: str
    marker: str = "o"
    line: str = "-"
    width: float = 1.6

    @property
    def style(self) -> dict[str, Any]:
        """The look as arguments of matplotlib's ``plot``."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.line, "linewidth": self.width}


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Give every contender a look of its own; the first of ours is the most visible, the whole table dashed grey."""
    own = next((name for name in names if name.startswith("ours")), None)
    baseline = next((name for name in names if name.startswith("random")), None)
    fixed: dict[str | None, Look] = {
        own: Look(COLOURS[0], "o", "-", 2.4),
        baseline: Look(COLOURS[1], "s"),
        **{name: Look(FAINT_INK, "", "--", 1.4) for name in names if name.startswith(WHOLE)},
    }
    taken = ({COLOURS[0]} if own else set()) | ({COLOURS[1]} if baseline else set())
    # Each colour is reused with another line and marker; the shifts keep pairs of colour and marker distinct.
    pool = [
        Look(colour, MARKERS[(place + shift) % len(MARKERS)], line)
        for line, shift in (("-", 0), ("--", 6), (":", 3), ("-.", 5))
        for place, colour in enumerate(COLOURS)
        if line != "-" or colour not in taken
    ]
    return {name: fixed[name] if name in fixed else (pool.pop(0) if pool else Look(OTHER_COLOUR)) for name in names}


def series(scores: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return means over runs with a column ``series``: the contender, with its space and model where these differ."""
    cells = cell_scores(scores, metric)
    names = cells["contender"].astype(str)
    for column in ("space", "model"):
        if cells[column].nunique() > 1:
            names = names + ", " + cells[column].astype(str)
    return cells.assign(series=names)


def look_legend(figure: Figure, given: Mapping[str, Look]) -> None:
    """Draw the legend of contenders."""
    draw_legend(figure, [(name, look.style) for name, look in given.items()])


def scores_by_ratio(scores: pd.DataFrame, metric: str) -> Picture:
    """Draw a score against the ratio, one line per contender and one panel per table; the whole table is dashed.

    Points are moved apart a little so that their error bars can be seen; what did not finish is not drawn.
    """
    cells = series(scores, metric)
    tables = list(cells["table"].unique())
    given = looks(sorted(cells["series"].unique(), key=lambda name: name.startswith(WHOLE)))
    racing = [name for name in given if not name.startswith(WHOLE)]
    ratios = np.sort(cells.loc[~cells["contender"].map(is_reference), "ratio"].unique())

    def draw(figure: Figure) -> None:
        for axes, table in zip(draw_panels(figure, tables), tables, strict=True):
            here = cells[(cells["table"] == table) & (cells["status"] == "ok")]
            # Ours last, so that it is on top.
            for name in sorted(given, key=lambda name: given[name].width):
                look, line = given[name], here[here["series"] == name].sort_values("ratio")
                if name not in racing:
                    for mean in line["mean"]:
                        axes.axhline(100 * mean, **look.style)
                    continue
                aside = 1.035 ** (racing.index(name) - (len(racing) - 1) / 2)
                bars = {"markersize": 5, "elinewidth": 1.0}
                axes.errorbar(aside * line["ratio"], 100 * line["mean"], 100 * line["std"], **bars, **look.style)
            ratio_axis(axes, ratios, shown_ratio)
            plain_axis(axes.yaxis)
        figure.supylabel(f"{metric_name(metric)}, %", fontsize=12, color=FAINT_INK)
        figure.supxlabel("ratio: condensed rows / rows", fontsize=12, color=FAINT_INK)
        look_legend(figure, given)

    return Picture(draw, height=max(30 + 210 * panel_rows(len(tables)), legend_height(len(given))))


def scores_by_setting(scores: pd.DataFrame, setting: str, metrics: Sequence[str] = METRICS) -> Picture:
    """Draw scores against the values of a setting, one line per table and one panel per metric.

    Variants ``"<setting>=<value>"`` are drawn, or all variants when ``setting`` is empty. Values are at equal
    distances, numbers first, so that a value may be a word. Where ratios, spaces, models or methods differ, each has a
    line of its own.
    """
    prefix = f"{setting}=" if setting else ""
    variants = scores["variant"].fillna("").astype(str)
    chosen = scores[variants.str.startswith(prefix) & (variants != "") & (scores["method"] != WHOLE)]
    if chosen.empty:
        raise InputError(f"The scores have no variant of {setting!r}; variants are written '{prefix}<value>'.")
    chosen = chosen.assign(value=variants.str.removeprefix(prefix))
    values = sorted(chosen["value"].unique(), key=_number_first)
    differing = [name for name in ("ratio", "space", "model", "method") if chosen[name].nunique() > 1]
    names = {
        key: ", ".join(
            [str(key[0]), *(shown_ratio(part) if isinstance(part, float) else str(part) for part in key[1:])]
        )
        for key in chosen[["table", *differing]].itertuples(index=False, name=None)
    }
    given = looks(list(names.values()))

    def draw(figure: Figure) -> None:
        titles = [f"{metric_name(metric)}, %" for metric in metrics]
        for axes, metric in zip(draw_panels(figure, titles), metrics, strict=True):
            for key, part in chosen.groupby(["table", *differing], sort=False):
                cells = cell_scores(part.assign(method=part["value"], variant=""), metric)
                line = cells.assign(place=[values.index(value) for value in cells["contender"]])
                line = line[line["status"] == "ok"].sort_values("place")
                bars = {"elinewidth": 1.0, "capsize": 3, "markersize": 5}
                look = given[names[key]]
                axes.errorbar(line["place"], 100 * line["mean"], 100 * line["std"], **bars, **look.style)
            axes.set_xticks(range(len(values)), [shortened(value, 8) for value in values])
            axes.margins(x=0.08)
            axes.set_xlabel(shortened(setting, 40))
            plain_axis(axes.yaxis)
        look_legend(figure, given)

    return Picture(draw, height=max(30 + 260 * panel_rows(len(metrics)), legend_height(len(given))))


def accuracy_macro_f1_front(scores: pd.DataFrame) -> Picture:
    """Draw accuracy against macro-F1, one panel per table and model, one line per method through its variants."""
    chosen = scores[(scores["method"] != WHOLE) & (scores["status"] == "ok")]
    means = chosen.groupby(["table", "model", "method", "variant"], sort=False, as_index=False)[list(METRICS)].mean()
    panels = list(dict.fromkeys(means[["table", "model"]].itertuples(index=False, name=None)))
    given = looks(list(means["method"].unique()))

    def draw(figure: Figure) -> None:
        titles = [f"{table}, {model}" for table, model in panels]
        for axes, (table, model) in zip(draw_panels(figure, titles), panels, strict=True):
            panel = means[(means["table"] == table) & (means["model"] == model)]
            for name, look in given.items():
                line = panel[panel["method"] == name]
                axes.plot(100 * line["accuracy"], 100 * line["macro_f1"], markersize=5, **look.style)
            plain_axis(axes.xaxis)
            plain_axis(axes.yaxis)
        figure.supxlabel("accuracy, %", fontsize=12, color=FAINT_INK)
        figure.supylabel("macro-F1, %", fontsize=12, color=FAINT_INK)
        look_legend(figure, given)

    return Picture(draw, height=max(30 + 260 * panel_rows(len(panels)), legend_height(len(given))))


def _number_first(text: str) -> tuple[bool, float, str]:
    try:
        # Of "10:1" the first number counts.
        return False, float(text.partition(":")[0]), text
    except ValueError:
        return True, 0.0, text


def scores_by_variant(scores: pd.DataFrame, metrics: Sequence[str] = METRICS) -> Picture:
    """Draw scores as bars with error bars, one per contender, table by table, one panel per metric."""
    scores = scores[scores["method"] != WHOLE]
    if scores["method"].nunique() == 1:
        # The variants alone distinguish the bars.
        scores = scores.assign(method=scores["variant"].replace("", "full"), variant="")
    found = {metric: series(scores, metric) for metric in metrics}
    cells = found[metrics[0]]
    places = list(dict.fromkeys(cells[["table", "ratio"]].itertuples(index=False, name=None)))
    several = cells["ratio"].nunique() > 1
    names = [
        f"{shortened(table, 24)}\n{shown_ratio(ratio)}" if several else shortened(table, 24) for table, ratio in places
    ]
    given = looks(list(cells["series"].unique()))
    thickness = 0.84 / len(given)

    def draw(figure: Figure) -> None:
        panels = draw_panels(figure, [f"{metric_name(metric)}, %" for metric in metrics], sharey=True)
        for axes, metric in zip(panels, metrics, strict=True):
            bar_rows(axes, names)
            for cell in found[metric].to_dict("records"):
                order = list(given).index(cell["series"])
                height = places.index((cell["table"], cell["ratio"])) - 0.42 + (order + 0.5) * thickness
                done = cell["status"] == "ok"
                mean, std = (100 * cell["mean"], 100 * cell["std"]) if done else (0.0, 0.0)
                axes.barh(height, mean, 0.88 * thickness, color=given[cell["series"]].colour)
                axes.errorbar(mean, height, xerr=std, color=INK, elinewidth=0.9)
                # What did not finish has its status in place of a bar.
                bar_text(axes, f"{mean:.1f}" if done else shortened(cell["status"], 12), mean + std, height)
            ends = 100 * (found[metric]["mean"] + found[metric]["std"])
            axes.set_xlim(0, (ends.max() if ends.notna().any() else 1) * 1.16)
            plain_axis(axes.xaxis)
        draw_legend(figure, [(name, {"color": look.colour, "linewidth": 7}) for name, look in given.items()])

    return Picture(draw, height=max(60 + len(places) * (18 + 15 * len(given)), legend_height(len(given))))


def rank_diagram(ranking: Ranking) -> Picture:
    """Draw mean ranks with the critical difference; a thick bar joins contenders that Nemenyi's test cannot tell apart.

    A star marks contenders that did not finish everywhere.
    """
    names = list(ranking.mean_ranks)
    half = math.ceil(len(names) / 2)
    bars = 14 * len(ranking.groups)
    below, above = 16 + bars + _RANK_LINE * half, 62
    worst = max(len(names), 2)
    span = worst - 1
    end = min(1.0 + ranking.critical_difference, worst + 0.42 * span)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.set_axis_off()
        # One unit up is one point; across, names need space on both sides.
        axes.set(xlim=(1 - 0.42 * span, worst + 0.42 * span), ylim=(-below, above))
        axes.plot([1, worst], [0, 0], color=INK, linewidth=1.4)
        for rank in range(1, worst + 1):
            axes.plot([rank, rank], [0, 6], color=INK, linewidth=1.2)
            axes.text(rank, 10, str(rank), ha="center", va="bottom", fontsize=11, color=FAINT_INK)
        axes.plot([1, 1, 1, end, end, end], [36, 44, 40, 40, 36, 44], color=INK, linewidth=1.2)
        text = f"critical difference {ranking.critical_difference:.2f}"
        axes.text(1, 48, text, ha="left", va="bottom", fontsize=11, color=FAINT_INK)
        for place, members in enumerate(ranking.groups):
            best, last = ranking.mean_ranks[members[0]], ranking.mean_ranks[members[-1]]
            ends = [best - 0.006 * span, last + 0.006 * span]
            axes.plot(ends, [-12 - 14 * place] * 2, color=INK, linewidth=4.5, alpha=0.75)
        for place, name in enumerate(names):
            left, own, mean = place < half, name.startswith("ours"), ranking.mean_ranks[name]
            height = -bars - 16 - _RANK_LINE * (place if left else len(names) - 1 - place)
            side = 1 - 0.03 * span if left else worst + 0.03 * span
            colour = COLOURS[0] if own else FAINT_INK
            axes.plot([mean, mean, side], [0, height, height], color=colour, linewidth=1.8 if own else 1.0)
            shown = shortened(name, LEGEND_LENGTH) + (UNFINISHED if name in ranking.unfinished else "")
            axes.text(
                side + (-0.012 if left else 0.012) * span,
                height,
                f"{shown} {mean:.2f}" if left else f"{mean:.2f} {shown}",
                ha="right" if left else "left",
                va="center_baseline",
                fontsize=11,
                color=COLOURS[0] if own else INK,
                fontweight="bold" if own else "normal",
            )

    return Picture(draw, height=below + above + 24)


def draw_panels(figure: Figure, titles: Sequence[str], *, sharey: bool = False) -> list[Axes]:
    """Return one axes per title, at most two side by side."""
    grid = figure.subplots(
        panel_rows(len(titles)), min(len(titles), PANELS_ACROSS), squeeze=False, sharey=sharey, sharex=False
    )
    for place, axes in enumerate(grid.flat):
        if place < len(titles):
            axes.set_title(shortened(titles[place], 40), loc="left", color=INK)
        else:
            axes.set_axis_off()
    return list(grid.flat)[: len(titles)]


def panel_rows(panels: int) -> int:
    """Return the number of rows of panels."""
    return -(-panels // PANELS_ACROSS)


def legend_height(entries: int) -> int:
    """Return the height that a figure needs for its legend."""
    return 40 + 20 * entries
