"""Figures of a condensed table: scores, classes, distributions, importance, projection, loss curves, search trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.allocation.problem import Allocation
from c2tc_pipeline.clustering.loss_curves import LossCurve
from c2tc_pipeline.evaluation.row_worth import multiple_of
from c2tc_pipeline.reports.distributions import Distribution
from c2tc_pipeline.reports.picture import (
    COLOURS,
    FAINT_INK,
    INK,
    OTHER_COLOUR,
    PANEL_WIDTH,
    RULE,
    ClassStyle,
    Figure,
    Picture,
    bar_rows,
    bar_text,
    draw_legend,
    log_scale,
    plain_axis,
    ratio_axis,
)
from c2tc_pipeline.reports.verdict import learner_name, worth_number
from c2tc_pipeline.reports.wording import count, counted, share, shortened
from c2tc_pipeline.reports.wording import ratio as shown_ratio

MAX_BARS = 20
MAX_SHARES = 10
MAX_COLUMN_BARS = 14
MAX_DISCS = 2_000
DENSE_POINTS = 1_000
"""A projection of more points is embedded as PNG."""
SKEWED = 50
"""From this ratio of the largest to the smallest share on, the axis is logarithmic so that all bars show."""
Key = list[tuple[str, dict[str, Any]]]
_DOT: dict[str, Any] = {"marker": "o", "linestyle": "none"}
TRAINING_SETS: dict[str, tuple[str, dict[str, Any]]] = {
    "whole": ("whole table", {"color": FAINT_INK, "linestyle": "--", "linewidth": 1.5}),
    "random": ("random rows", {"color": COLOURS[1], "linestyle": "-", "linewidth": 1.8, "marker": "o"}),
    "condensed": ("condensed table", {"color": COLOURS[0], "linestyle": "none", "marker": "D", "markersize": 8}),
}
"""Name and line style of each training set; the last is drawn on top."""


def learners(means: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each model and kind of columns, by name, with its scores."""
    for key, own in means.groupby(["model", "columns"], sort=False):
        yield learner_name(key), own


def score_by_rows(
    means: pd.DataFrame, metric: str, title: str, *, name: str = "", worth: Mapping[Any, Any] | None = None
) -> Picture:
    """Draw a learner's score against the number of random rows; condensed tables are marks.

    ``worth``, a row of :func:`~c2tc_pipeline.evaluation.row_worth.row_worth`, is drawn as the way from the mark to the
    curve, with its interval.
    """
    panel = means.dropna(subset=[metric])
    sampled = panel[panel["training_set"].map(multiple_of).notna()].sort_values("rows")
    own = panel[panel["training_set"] == "condensed"]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.set_title(shortened(name, 40), loc="left", color=INK)
        look = {"markersize": 5, "capsize": 3, **TRAINING_SETS["random"][1]}
        spread = 100 * sampled[f"{metric}_std"]
        axes.errorbar(sampled["rows"], 100 * sampled[metric], spread if spread.any() else None, **look)
        for value in panel.loc[panel["training_set"] == "whole", metric]:
            axes.axhline(100 * value, **TRAINING_SETS["whole"][1])
        if worth is not None and len(own):
            rows, height = int(own["rows"].iloc[0]), 100 * float(own[metric].iloc[0])
            line = {"color": COLOURS[0], "solid_capstyle": "butt"}
            axes.plot([worth["low"] * rows, worth["high"] * rows], [height, height], linewidth=9, alpha=0.25, **line)
            axes.plot([rows, worth["worth"] * rows], [height, height], linewidth=1.5, **line)
            text = f"{worth_number(worth)} \N{MULTIPLICATION SIGN}"
            # Away from the line of the whole table, and from the curve, which meets that of the worth on the right.
            above = (panel.loc[panel["training_set"] == "whole", metric] * 100 < height).any()
            text_look = {"color": COLOURS[0], "weight": "bold", "va": "bottom" if above else "top"}
            axes.annotate(text, (rows, height), (9, 6 if above else -6), textcoords="offset points", **text_look)
        axes.plot(own["rows"], 100 * own[metric], **TRAINING_SETS["condensed"][1])
        drawn = panel.loc[panel["training_set"] != "whole", "rows"]
        if len(drawn):
            ratio_axis(axes, np.sort(drawn.unique()), lambda rows: count(int(rows)))
        axes.margins(y=0.12)
        plain_axis(axes.yaxis)
        axes.set(xlabel="rows trained on", ylabel=f"{title}, %")
        draw_legend(
            axes, reversed(TRAINING_SETS.values()), "lower right", frameon=True, framealpha=0.8, edgecolor="none"
        )

    return Picture(draw, height=260, width=PANEL_WIDTH)


def score_dots(title: str, names: Sequence[str], scores: Mapping[str, Sequence[float]]) -> Picture:
    """Draw a score of each name for the training sets in ``scores``, with the numbers in the colours of the marks."""
    found = {kind: 100 * np.array(values, dtype=np.float64) for kind, values in scores.items()}
    marks: dict[str, dict[str, Any]] = {
        # On top: the diamond often has the same place.
        "whole": {"marker": "|", "markersize": 17, "markeredgewidth": 2, "color": INK, "zorder": 3},
        "random": {"markersize": 7},
    }

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.set_title(title, loc="left", color=INK)
        # Few names have space for two lines each.
        lines = 2 if len(names) <= 8 else 1
        bar_rows(axes, ["\n".join(wrap(shortened(name, 17 * lines), 18)) for name in names])
        places = np.arange(len(names))
        every = np.vstack(list(found.values()))
        known = ~np.isnan(every).all(axis=0)
        axes.hlines(
            places[known],
            np.nanmin(every[:, known], axis=0),
            np.nanmax(every[:, known], axis=0),
            color=RULE,
            linewidth=4,
        )
        for kind, (_, look) in TRAINING_SETS.items():
            if kind in found:
                axes.plot(found[kind], places, **{**look, **marks.get(kind, {}), "linestyle": "none"})
        for number, kind in enumerate(kind for kind in reversed(TRAINING_SETS) if kind in found):
            color = marks.get(kind, {}).get("color", TRAINING_SETS[kind][1]["color"])
            look = {"color": color, "weight": "bold" if kind == "condensed" else "normal"}
            for place, value in enumerate(found[kind]):
                if not np.isnan(value) or kind == "condensed":
                    text = "no test rows" if np.isnan(value) else f"{value:.1f}"
                    xytext = (4 + 32 * number, 0)
                    bar_text(axes, text, 1, place, 10.5, xycoords=("axes fraction", "data"), xytext=xytext, **look)
        axes.margins(x=0.08)
        axes.locator_params(axis="x", nbins=4)
        plain_axis(axes.xaxis)

    return Picture(draw, height=46 + 26 * len(names), width=PANEL_WIDTH)


def distribution(found: Distribution) -> Picture:
    """Draw the distribution of a column in the source, filled, and in drawn rows, as a line or thinner bars."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.set_title(shortened(found.column, 36), loc="left", color=INK)
        if found.edges is not None:
            edges = found.edges.astype("datetime64[s]") if found.is_moment else found.edges
            axes.stairs(found.source, edges, fill=True, color=OTHER_COLOUR, alpha=0.6)
            axes.stairs(found.drawn, edges, color=COLOURS[0], linewidth=2)
            axes.set_ylim(0)
            axes.set_yticks([])
            axes.grid(visible=False)
            axes.spines["left"].set_visible(False)
            axes.tick_params(axis="x", labelsize=11)
            if found.is_moment:
                from matplotlib.dates import AutoDateLocator

                axes.xaxis.set_major_locator(AutoDateLocator(minticks=2, maxticks=4))
            else:
                plain_axis(axes.xaxis)
                axes.locator_params(axis="x", nbins=6)
            if max(found.missing) >= 5e-4:
                before, after = map(share, found.missing)
                axes.set_xlabel(f"missing: {before} of source rows, {after} of drawn", fontsize=10.5)
        else:
            bar_rows(axes, [shortened(name, 18) for name in found.categories])
            places = np.arange(len(found.categories))
            axes.barh(places, found.source, 0.8, color=OTHER_COLOUR, alpha=0.6)
            axes.barh(places, found.drawn, 0.3, color=COLOURS[0])
            for place, value in enumerate(np.maximum(found.source, found.drawn)):
                bar_text(axes, share(round(float(found.source[place]), 3)), value, place, 10)
            axes.set_xlim(0, 1.35 * max(found.source.max(), found.drawn.max()))
            axes.set_xticks([])
            axes.grid(visible=False)

    return Picture(draw, height=190, width=PANEL_WIDTH)


def class_shares(styles: Sequence[ClassStyle], class_rows: Sequence[int], counts: Sequence[int]) -> Picture:
    """Draw each class's share of the source rows and of the condensed rows."""
    bars = _share_bars(styles, class_rows, counts)
    low, high = bars[["before", "after"]].to_numpy().min(), bars[["before", "after"]].to_numpy().max()

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        bar_rows(axes, list(bars["name"]))
        places = np.arange(len(bars))
        for column, colour, offset, ink in (("before", "pale", -0.18, FAINT_INK), ("after", "colour", 0.18, INK)):
            axes.barh(places + offset, bars[column], 0.36, color=list(bars[colour]))
            for place, value in enumerate(bars[column]):
                bar_text(axes, share(value), value, place + offset, 10, color=ink)
        # Leave space for the number at the end of the longest bar.
        if high > SKEWED * low:
            log_scale(axes, "x", low / 3, high * (3 * high / low) ** 0.3, shown_ratio)
        else:
            axes.set_xlim(0, high * 1.35)
            axes.set_xticks([])
        axes.set_title("Share of the rows", loc="left", color=INK)

    return Picture(draw, height=50 + len(bars) * min(max(38, 340 // len(bars)), 90), width=PANEL_WIDTH)


def _share_bars(styles: Sequence[ClassStyle], class_rows: Sequence[int], counts: Sequence[int]) -> pd.DataFrame:
    """Return one row per pair of bars; of many classes the largest, and the others added up."""
    bars = pd.DataFrame(
        [(style.short, style.colour, style.pale) for style in styles], columns=["name", "colour", "pale"]
    ).assign(before=np.asarray(class_rows) / np.sum(class_rows), after=np.asarray(counts) / np.sum(counts))
    if len(bars) <= MAX_SHARES:
        return bars
    bars = bars.sort_values("before", ascending=False, kind="stable", ignore_index=True)
    kept, rest = bars.iloc[: MAX_SHARES - 1], bars.iloc[MAX_SHARES - 1 :]
    others = ClassStyle(f"{count(len(rest))} others together", OTHER_COLOUR, named=False)
    last = [others.label, others.colour, others.pale, rest["before"].sum(), rest["after"].sum()]
    return pd.concat([kept, pd.DataFrame([last], columns=bars.columns)], ignore_index=True)


def projection(styles: Sequence[ClassStyle], points: pd.DataFrame) -> Picture:
    """Draw source and condensed rows on two principal components; ``points``: x, y, label, kind and weight.

    Of more than ``MAX_DISCS`` condensed rows every n-th by weight is drawn.
    """
    colour_of = {style.label: style.colour for style in styles}
    points = points.assign(colour=[colour_of.get(str(label), OTHER_COLOUR) for label in points["label"]])
    source = points[points["kind"] == "source"]
    # The heaviest first, so that large discs do not hide small ones.
    condensed = points[points["kind"] == "condensed"].sort_values("weight", ascending=False, kind="stable")
    max_weight, min_weight = int(condensed["weight"].iloc[0]), int(condensed["weight"].iloc[-1])
    condensed = condensed.iloc[:: -(-len(condensed) // MAX_DISCS)]
    condensed = condensed.assign(size=[_disc_size(weight, max_weight) for weight in condensed["weight"]])
    key = _class_key(styles, _DOT)
    key.append(("source row", {**_DOT, "color": FAINT_INK, "markersize": 2.3}))
    for weight in dict.fromkeys((min_weight, max_weight)):
        ring = {"color": FAINT_INK, "markerfacecolor": "white", "markersize": _disc_size(weight, max_weight)}
        key.append((f"stands for {counted(weight, 'row', 'rows')}", {**_DOT, **ring}))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for colour, specks in source.groupby("colour", sort=False):
            axes.plot(specks["x"], specks["y"], **_DOT, color=colour, markersize=2.3, markeredgewidth=0, alpha=0.3)
        disc = {**_DOT, "markeredgecolor": "white", "markeredgewidth": 0.8, "alpha": 0.85}
        for (size, shade), discs in condensed.groupby(["size", "colour"], sort=False):
            axes.plot(discs["x"], discs["y"], **disc, color=shade, markersize=size)
        # Equal units on both axes, so that distances can be compared.
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_title("Rows on two principal components", loc="left", color=INK)
        axes.set(xticks=[], yticks=[])
        _legend_below(figure, key, styles)

    return Picture(draw, height=360 + 9 * len(key), dense=len(points) > DENSE_POINTS, width=PANEL_WIDTH)


def _disc_size(weight: int, max_weight: int) -> int:
    """Return a diameter whose area grows with the weight, in steps of two that the eye can distinguish."""
    return 2 * round(2 + 7 * (weight / max_weight) ** 0.5)


def _class_key(styles: Sequence[ClassStyle], form: Mapping[str, Any]) -> Key:
    """Return legend entries of the classes with colours of their own, and one for all others."""
    key: Key = [(style.short, {**form, "color": style.colour}) for style in styles if style.named]
    if others := sum(not style.named for style in styles):
        key.append((counted(others, "other class", "other classes"), {**form, "color": OTHER_COLOUR}))
    return key


def _legend_below(figure: Figure, key: Key, styles: Sequence[ClassStyle] = ()) -> None:
    """Draw a legend below a panel, in two columns unless class names are long."""
    columns = 1 if any(style.named and len(style.short) > 12 for style in styles) else 2
    draw_legend(figure, key, "outside lower center", ncols=columns)


def loss_curves(
    styles: Sequence[ClassStyle], curves: Sequence[LossCurve], counts: Sequence[int], gamma: float
) -> Picture:
    """Draw each class's term of the objective against its condensed rows, and the chosen number; zeros are skipped."""
    lines, marks = [], []
    for curve, chosen in zip(curves, counts, strict=True):
        divisor = curve.rows**gamma
        positive = curve.wcss > 0
        lines.append((curve.grid[positive], curve.wcss[positive] / divisor))
        loss = curve.at(np.array([chosen]))[0] / divisor
        marks.append(([chosen], [loss]) if loss > 0 else ([], []))
    sizes, losses = (np.concatenate([part[axis] for part in [*lines, *marks]]) for axis in (0, 1))
    if not len(losses):
        text = "Every class has a loss of zero."
        return Picture(lambda figure: figure.text(0.5, 0.5, text, ha="center", va="center"), height=80)
    drawn = [style for style, line in zip(styles, lines, strict=True) if len(line[0]) or not style.named]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        # Grey classes first, behind the others.
        for style, line, mark in sorted(zip(styles, lines, marks, strict=True), key=lambda parts: parts[0].named):
            thin = (
                {"linewidth": 1.8, "marker": "o", "markersize": 3.5}
                if style.named
                else {"linewidth": 0.7, "alpha": 0.5}
            )
            axes.plot(*line, color=style.colour, **thin)
            size = 11 if style.named else 6
            axes.plot(*mark, **_DOT, color=style.colour, markersize=size, markeredgecolor="white", zorder=3)
        log_scale(axes, "x", sizes.min() / 1.15, max(sizes.max(), 2) * 1.15)
        log_scale(axes, "y", losses.min() / 1.4, losses.max() * 1.4)
        axes.set(xlabel="condensed rows of the class", ylabel="term in the objective")
        _legend_below(figure, _class_key(drawn, {"marker": "o", "linewidth": 1.8}), styles)

    return Picture(draw, height=330, width=PANEL_WIDTH)


def allocation_trace(allocation: Allocation) -> Picture:
    """Draw the search for an allocation: proposals, the best objective so far, and the bound when it is known."""
    steps = [step for step in allocation.trace if np.isfinite(step.proposed)]
    iterations = [step.iteration for step in steps]
    bound = [] if allocation.bound is None else [allocation.bound]
    values = [*(step.proposed for step in steps), *(step.best for step in steps), *bound]
    low, high = min(values), max(values)
    line = {"color": COLOURS[0], "linewidth": 2.0}
    ring = {**_DOT, "color": FAINT_INK, "markerfacecolor": "white", "markersize": 5}
    dot = {**_DOT, "color": COLOURS[0], "markersize": 6}
    dashes = {"color": COLOURS[1], "linewidth": 1.5, "linestyle": "--"}

    def draw(figure: Figure) -> None:
        from matplotlib.ticker import MaxNLocator

        axes = figure.subplots()
        axes.plot(iterations, [step.best for step in steps], drawstyle="steps-post", **line)
        key: Key = [("best so far", line)]
        for accepted, name, style in ((False, "rejected proposal", ring), (True, "accepted proposal", dot)):
            shown = [(step.iteration, step.proposed) for step in steps if step.accepted == accepted]
            if shown:
                axes.plot(*zip(*shown, strict=True), **style)
                key.append((name, style))
        for value in bound:
            axes.axhline(value, **dashes)
            key.append(("lower bound", dashes))
        if low > 0 and high / low > 10:
            log_scale(axes, "y", low / 1.2, high * 1.2)
        plain_axis(axes.yaxis)
        plain_axis(axes.xaxis)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.set(xlabel="iteration", ylabel="objective")
        _legend_below(figure, key)

    return Picture(draw, height=330, width=PANEL_WIDTH)


def column_importance(importance: Mapping[str, float]) -> Picture:
    """Draw the importance of source columns for the label, the largest first; it is at most 1."""
    largest = sorted(importance.items(), key=lambda item: -item[1])[:MAX_COLUMN_BARS]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        bar_rows(axes, [shortened(name, 20) for name, _ in largest])
        axes.barh(range(len(largest)), [value for _, value in largest], 0.55, color=COLOURS[0])
        for place, (_, value) in enumerate(largest):
            bar_text(axes, f"{value:.2f}", value, place, 11, color=INK)
        axes.set_xlim(0, 1.2)
        axes.set_xticks([])
        axes.set_title("Importance for the label", loc="left", color=INK)

    return Picture(draw, height=40 + 24 * len(largest), width=PANEL_WIDTH)
