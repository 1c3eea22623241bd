"""The benchmark of speed as a picture: how many times as fast as each reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from c2tc_pipeline.reports.canvas import log_scale
from c2tc_pipeline.reports.class_styles import COLOURS
from c2tc_pipeline.reports.picture import FAINT_INK, INK, Figure, Picture
from c2tc_pipeline.reports.wording import number, share, shortened


def times_faster(rows: pd.DataFrame) -> Picture | None:
    """Draw how many times longer each reference takes than ours, on a logarithmic axis.

    Parameters
    ----------
    rows : DataFrame
        Rows of a run, such as those of one part.

    Returns
    -------
    Picture or None
        Bars that end at 1 where both are as fast; None when nothing was compared with anything.

    Examples
    --------
    >>> from c2tc_pipeline.bench.speed.measuring import SpeedRow, to_frame
    >>> rows = to_frame([SpeedRow(part="whole", what="condense", seconds=2.0, reference="MLP", reference_seconds=9.0)])
    >>> "4.5" in times_faster(rows).svg()
    True
    """
    bars = rows[rows["times_faster"] > 0].reset_index(drop=True)
    if bars.empty:
        return None
    low, high = min(bars["times_faster"].min() / 2, 0.5), max(bars["times_faster"].max(), 2.0)
    # Room for the number at the end of the longest bar, on a scale where distances are ratios.
    high *= (high / low) ** 0.18

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        log_scale(axes, "x", low, high)
        for place, bar in enumerate(bars.to_dict("records")):
            value = bar["times_faster"]
            axes.barh(place, value - 1, 0.7, left=1, color=COLOURS[0], alpha=0.45 if bar["noisy"] else 1.0)
            axes.annotate(
                f"{'at least ' if bar['at_least'] else ''}{number(float(f'{value:.3g}'))}",
                (max(value, 1.0), place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center_baseline",
                fontsize=9,
                color=INK,
            )
        axes.axvline(1, color=FAINT_INK, linewidth=0.8)
        axes.set_yticks(range(len(bars)), [_name(bar) for bar in bars.to_dict("records")], color=INK, fontsize=8)
        axes.set_ylim(len(bars) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("times as fast; pale: measured in a noisy moment")

    return Picture(draw, height=70 + 26 * len(bars))


def _name(bar: Mapping[Any, Any]) -> str:
    ratio = bar["ratio"]
    where = ", ".join(filter(None, [shortened(bar["table"], 28), "" if pd.isna(ratio) else share(ratio)]))
    measured = ": ".join(filter(None, [str(bar["what"]), where]))
    return f"{shortened(measured, 54)}\nagainst {shortened(bar['reference'], 46)}"
