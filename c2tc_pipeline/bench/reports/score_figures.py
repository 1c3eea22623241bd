"""Scores of an experiment as pictures: against the ratio, against a setting, and as bars by variant.

What belongs here: one function a picture, the tidy frame of scores in. What they share is in ``experiment_looks.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from c2tc_pipeline.bench.reports.looks import (
    NAME_LENGTH,
    draw_legend,
    draw_panels,
    legend_height,
    looks,
    panel_rows,
    series,
)
from c2tc_pipeline.bench.reports.table import METRIC_NAMES
from c2tc_pipeline.bench.statistics.runs import WHOLE, cell_scores, is_whole
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.averages import METRICS
from c2tc_pipeline.reports.canvas import Axes, log_scale
from c2tc_pipeline.reports.picture import FAINT_INK, INK, Figure, Picture
from c2tc_pipeline.reports.wording import share, shortened


def scores_by_ratio(scores: pd.DataFrame, metric: str) -> Picture:
    """Draw a score against the ratio, one line a contender and one panel a table.

    Parameters
    ----------
    scores : DataFrame
        One row a trained model. The whole table is a dashed line from side to side.
    metric : str
        Which score.

    Returns
    -------
    Picture
        The picture. Dots are means over runs and bars one standard deviation, moved apart a little so that they can be
        seen; what did not finish is not drawn.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "adult", "ratio": [0.01, 0.001], "model": "mlp", "space": "hcfe",
    ...     "method": "ours", "variant": "", "split": 0, "seed": 0, "model_seed": 0, "status": "ok",
    ...     "accuracy": [0.8, 0.7]})
    >>> text = scores_by_ratio(scores, "accuracy").svg()
    >>> "adult" in text, "0.1 %" in text
    (True, True)
    """
    cells = series(scores, metric)
    tables = list(cells["table"].unique())
    given = looks(sorted(cells["series"].unique(), key=lambda name: name.startswith(WHOLE)))
    racing = [name for name in given if not name.startswith(WHOLE)]
    ratios = np.sort(cells.loc[~cells["contender"].map(is_whole), "ratio"].unique())

    def draw(figure: Figure) -> None:
        for axes, table in zip(draw_panels(figure, tables), tables, strict=True):
            here = cells[(cells["table"] == table) & (cells["status"] == "ok")]
            # Ours last, so that it lies on top.
            for name in sorted(given, key=lambda name: given[name].width):
                look, line = given[name], here[here["series"] == name].sort_values("ratio")
                if name not in racing:
                    for mean in line["mean"]:
                        axes.axhline(100 * mean, **look.style)
                    continue
                aside = 1.035 ** (racing.index(name) - (len(racing) - 1) / 2)
                axes.errorbar(
                    aside * line["ratio"],
                    100 * line["mean"],
                    100 * line["std"],
                    markersize=5,
                    elinewidth=1.0,
                    **look.style,
                )
            _ratio_axis(axes, ratios)
        figure.supylabel(f"{METRIC_NAMES.get(metric, metric)}, %", fontsize=12, color=FAINT_INK)
        figure.supxlabel("ratio: condensed rows / rows", fontsize=12, color=FAINT_INK)
        draw_legend(figure, given)

    return Picture(draw, height=max(30 + 210 * panel_rows(len(tables)), legend_height(len(given))))


def _ratio_axis(axes: Axes, ratios: np.ndarray) -> None:
    log_scale(axes, "x", ratios[0] / 1.6, ratios[-1] * 1.6)
    steps = np.diff(np.log(ratios))
    # The ratios themselves at the ticks, unless their numbers would touch.
    if len(ratios) == 1 or steps.min() > 0.2 * np.log(2.56 * ratios[-1] / ratios[0]):
        axes.set_xticks(ratios, [share(ratio) for ratio in ratios])


def scores_by_setting(scores: pd.DataFrame, setting: str, metrics: Sequence[str] = METRICS) -> Picture:
    """Draw scores against a setting, one line a table and one panel a metric.

    Parameters
    ----------
    scores : DataFrame
        One row a trained model; variants ``"<setting>=<value>"`` are drawn. Values stand side by side at equal
        distances, numbers first, so that a value may be a word. Where ratios, spaces, models or methods differ, each
        has a line of its own.
    setting : str
        The name of the setting, for instance ``"gamma"``; empty when the variants are the values.
    metrics : sequence of str
        Which scores.

    Returns
    -------
    Picture
        The picture.

    Raises
    ------
    InputError
        When no variant is one of the setting.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "adult", "ratio": 0.001, "model": "mlp", "space": "hcfe", "method": "ours",
    ...     "variant": ["gamma=0.25", "gamma=1", "gamma=auto"], "split": 0, "seed": 0, "model_seed": 0, "status": "ok",
    ...     "accuracy": [0.8, 0.7, 0.8], "macro_f1": 0.6})
    >>> "auto" in scores_by_setting(scores, "gamma").svg()
    True
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
        key: ", ".join([str(key[0]), *(share(part) if isinstance(part, float) else str(part) for part in key[1:])])
        for key in chosen[["table", *differing]].itertuples(index=False, name=None)
    }
    given = looks(list(names.values()))
    titles = [f"{METRIC_NAMES.get(metric, metric)}, %" for metric in metrics]

    def draw(figure: Figure) -> None:
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
            axes.set_xlabel(setting)
        draw_legend(figure, given)

    return Picture(draw, height=max(30 + 260 * panel_rows(len(metrics)), legend_height(len(given))))


def _number_first(text: str) -> tuple[bool, float, str]:
    try:
        # Of "10:1" the first number counts.
        return False, float(text.partition(":")[0]), text
    except ValueError:
        return True, 0.0, text


def scores_by_variant(scores: pd.DataFrame, metrics: Sequence[str] = METRICS) -> Picture:
    """Draw scores as bars, one a contender, table by table, one panel a metric.

    Parameters
    ----------
    scores : DataFrame
        One row a trained model. The whole table is left out.
    metrics : sequence of str
        Which scores.

    Returns
    -------
    Picture
        The picture; a thin line at the end of a bar is one standard deviation to either side, and what did not finish
        has its ending in place of a bar.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "adult", "ratio": 0.001, "model": "mlp", "space": "hcfe", "method": "ours",
    ...     "variant": ["hfils", "ratio"], "split": 0, "seed": 0, "model_seed": 0, "status": "ok",
    ...     "accuracy": [0.8, 0.7], "macro_f1": 0.6})
    >>> "80.0" in scores_by_variant(scores).svg()
    True
    """
    scores = scores[scores["method"] != WHOLE]
    if scores["method"].nunique() == 1:
        # The variants alone tell the bars apart.
        scores = scores.assign(method=scores["variant"].replace("", "full"), variant="")
    found = {metric: series(scores, metric) for metric in metrics}
    cells = found[metrics[0]]
    places = list(dict.fromkeys(cells[["table", "ratio"]].itertuples(index=False, name=None)))
    named = [f"{table}\n{share(ratio)}" if cells["ratio"].nunique() > 1 else str(table) for table, ratio in places]
    given = looks(list(cells["series"].unique()))
    thickness = 0.84 / len(given)

    def draw(figure: Figure) -> None:
        titles = [f"{METRIC_NAMES.get(metric, metric)}, %" for metric in metrics]
        panels = draw_panels(figure, titles, sharey=True)
        for axes, metric in zip(panels, metrics, strict=True):
            for cell in found[metric].to_dict("records"):
                order = list(given).index(cell["series"])
                height = places.index((cell["table"], cell["ratio"])) - 0.42 + (order + 0.5) * thickness
                done = cell["status"] == "ok"
                mean, std = (100 * cell["mean"], 100 * cell["std"]) if done else (0.0, 0.0)
                axes.barh(height, mean, 0.88 * thickness, color=given[cell["series"]].colour)
                axes.errorbar(mean, height, xerr=std, color=INK, elinewidth=0.9)
                axes.annotate(
                    f"{mean:.1f}" if done else shortened(cell["status"], 12),
                    (mean + std, height),
                    xytext=(4, 0),
                    textcoords="offset points",
                    va="center_baseline",
                    fontsize=9,
                    color=FAINT_INK,
                )
            ends = 100 * (found[metric]["mean"] + found[metric]["std"])
            axes.set_xlim(0, (ends.max() if ends.notna().any() else 1) * 1.16)
            axes.set_yticks(range(len(places)), [shortened(n, 24) if "\n" not in n else n for n in named], color=INK)
            axes.tick_params(axis="y", length=0)
            axes.grid(visible=False, axis="y")
        panels[0].set_ylim(len(places) - 0.5, -0.5)
        _bar_legend(figure, {name: look.colour for name, look in given.items()})

    return Picture(draw, height=max(60 + len(places) * (18 + 15 * len(given)), legend_height(len(given))))


def _bar_legend(figure: Figure, colours: dict[str, str]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=colour) for colour in colours.values()]
    labels = [shortened(name, NAME_LENGTH) for name in colours]
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=11, handlelength=1.2)
