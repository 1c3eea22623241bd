"""The picture of how good the condensed tables are: a score against the ratio, a panel a model."""

from __future__ import annotations

import numpy as np
import pandas as pd

from c2tc_pipeline.reports.canvas import Axes, KeyEntry, draw_key, log_scale
from c2tc_pipeline.reports.class_styles import COLOURS
from c2tc_pipeline.reports.picture import FAINT_INK, INK, Figure, Picture
from c2tc_pipeline.reports.wording import number, shortened

LOOKS = {
    "whole": {"color": FAINT_INK, "linestyle": "--", "linewidth": 1.5},
    "random": {"color": COLOURS[1], "linestyle": "-", "linewidth": 1.8},
    "condensed": {"color": COLOURS[0], "linestyle": "-", "linewidth": 2.2},
}
"""How each training set is drawn; the last lies on top."""
NAMES = {"condensed": "condensed", "random": "random rows", "whole": "whole table"}
MOST_ACROSS = 2


def score_by_ratio(means: pd.DataFrame, metric: str, title: str) -> Picture:
    """Draw a score of models trained on condensed, on random and on all rows, against the ratio.

    Parameters
    ----------
    means : DataFrame
        Columns ``ratio``, ``model``, ``training_set`` and, for the metric, mean and standard deviation; what
        :func:`~c2tc_pipeline.reports.score_means.means_by_ratio` returns, not empty.
    metric : str
        The column with the score; its standard deviation is in ``<metric>_std``.
    title : str
        What the score is called.

    Returns
    -------
    Picture
        The picture; the axis of the ratios is logarithmic.

    Examples
    --------
    >>> means = pd.DataFrame({"ratio": [0.001, 0.01], "model": "mlp", "training_set": "condensed",
    ...                       "accuracy": [0.7, 0.8], "accuracy_std": 0.01})
    >>> "mlp" in score_by_ratio(means, "accuracy", "accuracy").svg()
    True
    """
    models = list(dict.fromkeys(means["model"]))
    across = min(len(models), MOST_ACROSS)
    down = -(-len(models) // across)
    spans = means[metric] - means[f"{metric}_std"], means[metric] + means[f"{metric}_std"]
    low, high = 100 * spans[0].min(), 100 * spans[1].max()
    margin = max(0.05 * (high - low), 0.5)

    def draw(figure: Figure) -> None:
        panels = figure.subplots(down, across, squeeze=False, sharey=True)
        for place, axes in enumerate(panels.flat):
            if place >= len(models):
                axes.set_axis_off()
                continue
            _panel(axes, means[means["model"] == models[place]], metric)
            axes.set_title(shortened(models[place], 40), loc="left", color=INK)
            axes.set_ylim(low - margin, high + margin)
            if place >= len(models) - across:
                axes.set_xlabel("ratio: condensed rows / rows")
        for axes in panels[:, 0]:
            axes.set_ylabel(f"{title}, %")
        shown = [name for name in NAMES if name in set(means["training_set"])]
        forms = {"whole": "dashes"}
        entries = [KeyEntry(NAMES[name], str(LOOKS[name]["color"]), forms.get(name, "line")) for name in shown]
        draw_key(panels[0, -1], entries)

    return Picture(draw, height=20 + 270 * down)


def _panel(axes: Axes, means: pd.DataFrame, metric: str) -> None:
    ratios = np.sort(means["ratio"].unique())
    for name, look in LOOKS.items():
        line = means[means["training_set"] == name].sort_values("ratio")
        axes.errorbar(
            line["ratio"], 100 * line[metric], 100 * line[f"{metric}_std"], marker="o", markersize=5, capsize=3, **look
        )
    log_scale(axes, "x", ratios[0] / 1.4, ratios[-1] * 1.4)
    # The ratios themselves at the ticks, unless their numbers would touch.
    steps = np.diff(np.log([ratios[0] / 1.4, *ratios, ratios[-1] * 1.4]))
    if len(ratios) == 1 or steps[1:-1].min() > 0.17 * steps.sum():
        axes.set_xticks(ratios, [number(ratio) for ratio in ratios])
