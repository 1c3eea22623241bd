"""The pictures of a condensed table: class shares, the table in two dimensions, seconds by stage.

What belongs here: one function a picture, plain values in. The pictures of the search for the
allocation are in ``search_figures.py``, what all share in ``canvas.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from c2tc_pipeline.reports.canvas import KeyEntry, draw_key, log_scale
from c2tc_pipeline.reports.class_styles import COLOURS, OTHER_COLOUR, ClassStyle
from c2tc_pipeline.reports.picture import FAINT_INK, INK, Figure, Picture
from c2tc_pipeline.reports.wording import count, counted, seconds, share, shortened

MOST_BARS = 20
MOST_DISCS = 2_000
SPECK = 2.3
"""The diameter of a source row."""
SKEWED = 50
"""From this ratio of the largest to the smallest share on, the axis is logarithmic so that all bars show."""


def class_shares(styles: Sequence[ClassStyle], class_rows: Sequence[int], counts: Sequence[int]) -> Picture:
    """Draw each class's share of the source rows and of the condensed rows.

    Parameters
    ----------
    styles : sequence of ClassStyle
        How each class is shown.
    class_rows : sequence of int
        Source rows per class.
    counts : sequence of int
        Condensed rows per class.

    Returns
    -------
    Picture
        The picture.

    Examples
    --------
    >>> from c2tc_pipeline.reports.class_styles import class_styles
    >>> shares = class_shares(class_styles(["no", "yes"], [90, 10]), [90, 10], [6, 4])
    >>> "60 %" in shares.svg()
    True
    """
    bars = _share_bars(styles, class_rows, counts)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        thickness = 0.36
        for place, bar in enumerate(bars.to_dict("records")):
            for offset, value, colour in ((-1, bar["before"], bar["pale"]), (1, bar["after"], bar["colour"])):
                height = place + offset * thickness / 2
                axes.barh(height, value, thickness, color=colour)
                axes.annotate(
                    share(value),
                    (value, height),
                    xytext=(4, 0),
                    textcoords="offset points",
                    va="center_baseline",
                    fontsize=10,
                    color=FAINT_INK if offset < 0 else INK,
                )
        axes.set_yticks(range(len(bars)), bars.name, color=INK)
        axes.invert_yaxis()
        axes.margins(y=0.02)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        shares = bars[["before", "after"]].to_numpy()
        if shares.max() > SKEWED * shares.min():
            # Room for the figure at the end of the longest bar, on a scale where distances are ratios.
            low = shares.min() / 3
            log_scale(axes, "x", low, shares.max() * (shares.max() / low) ** 0.12)
        else:
            axes.set_xlim(0, shares.max() * 1.12)
        axes.xaxis.set_major_formatter(lambda value, _: share(value))
        axes.set_xlabel("share of all rows; pale: source table, full: condensed table")

    return Picture(draw, height=70 + 38 * len(bars))


def _share_bars(styles: Sequence[ClassStyle], class_rows: Sequence[int], counts: Sequence[int]) -> pd.DataFrame:
    """Return one row a pair of bars, the largest classes first when not all of them fit."""
    bars = pd.DataFrame(
        {
            "name": [style.short for style in styles],
            "colour": [style.colour for style in styles],
            "pale": [style.pale for style in styles],
            "before": np.asarray(class_rows) / np.sum(class_rows),
            "after": np.asarray(counts) / np.sum(counts),
        }
    )
    if len(bars) <= MOST_BARS:
        return bars
    bars = bars.sort_values("before", ascending=False, kind="stable", ignore_index=True)
    kept, rest = bars.iloc[: MOST_BARS - 1], bars.iloc[MOST_BARS - 1 :]
    together = ClassStyle(f"{count(len(rest))} others together", OTHER_COLOUR, named=False)
    last = pd.DataFrame(
        {
            "name": [together.label],
            "colour": [together.colour],
            "pale": [together.pale],
            "before": [rest["before"].sum()],
            "after": [rest["after"].sum()],
        }
    )
    return pd.concat([kept, last], ignore_index=True)


def projection(styles: Sequence[ClassStyle], points: pd.DataFrame) -> Picture:
    """Draw source rows and condensed rows in the plane of the first two principal components.

    Parameters
    ----------
    styles : sequence of ClassStyle
        How each class is shown.
    points : DataFrame
        Columns ``x``, ``y``, ``label``, ``kind`` (``"source"`` or ``"condensed"``) and ``weight``.

    Returns
    -------
    Picture
        The picture; of more than ``MOST_DISCS`` condensed rows an even selection is drawn.

    Examples
    --------
    >>> from c2tc_pipeline.reports.class_styles import class_styles
    >>> points = pd.DataFrame({"x": [0.0, 1.0, 0.5], "y": [0.0, 1.0, 0.4], "label": ["no", "yes", "no"],
    ...                        "kind": ["source", "source", "condensed"], "weight": [1, 1, 80]})
    >>> "</svg>" in projection(class_styles(["no", "yes"], [90, 10]), points).svg()
    True
    """
    colour_of = {style.label: style.colour for style in styles}
    points = points.assign(colour=[colour_of.get(str(label), OTHER_COLOUR) for label in points["label"]])
    source = points[points["kind"] == "source"]
    condensed = points[points["kind"] == "condensed"].sort_values("weight", ascending=False, kind="stable")
    heaviest, lightest = int(condensed["weight"].iloc[0]), int(condensed["weight"].iloc[-1])
    # Every so many from the heaviest on: light and heavy rows stay in proportion.
    condensed = condensed.iloc[:: -(-len(condensed) // MOST_DISCS)]
    condensed = condensed.assign(diameter=[_diameter(weight, heaviest) for weight in condensed["weight"]])

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for shade, specks in source.groupby("colour", sort=False):
            axes.plot(specks["x"], specks["y"], "o", color=shade, markersize=SPECK, alpha=0.3, markeredgewidth=0)
        edge = {"alpha": 0.85, "markeredgecolor": "white", "markeredgewidth": 0.8}
        # The largest first, so that small discs are not hidden behind them.
        for (diameter, colour), discs in condensed.groupby(["diameter", "colour"], sort=False):
            axes.plot(discs["x"], discs["y"], "o", color=colour, markersize=diameter, **edge)
        # One unit is as long across as it is up: distances can be compared.
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_xlabel("first principal component")
        axes.set_ylabel("second principal component")
        entries = [KeyEntry(style.short, style.colour) for style in styles if style.named]
        if others := sum(not style.named for style in styles):
            entries.append(KeyEntry(counted(others, "other class", "other classes"), OTHER_COLOUR))
        entries.append(KeyEntry("source row", FAINT_INK, size=SPECK))
        for weight in dict.fromkeys((lightest, heaviest)):
            text = f"stands for {counted(weight, 'row', 'rows')}"
            entries.append(KeyEntry(text, FAINT_INK, "ring", _diameter(weight, heaviest)))
        draw_key(axes, entries)

    return Picture(draw, height=460)


def _diameter(weight: int, heaviest: int) -> int:
    """Return a disc's diameter: its area grows with the weight, from what can still be seen.

    In steps of two: discs of one size and colour are drawn together, and more sizes than these take longer to draw than
    the eye can tell apart.
    """
    return 2 * round(2 + 7 * (weight / heaviest) ** 0.5)


def stage_seconds(stages: Mapping[str, float]) -> Picture:
    """Draw how long each stage took, in the order in which they ran.

    Parameters
    ----------
    stages : mapping of str to float
        Seconds by stage.

    Returns
    -------
    Picture
        The picture.

    Examples
    --------
    >>> "12.3 s" in stage_seconds({"read": 0.4, "encode": 12.3}).svg()
    True
    """
    names = [shortened(name, 24) for name in stages]
    values = [float(value) for value in stages.values()]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        bars = axes.barh(range(len(values)), values, 0.55, color=COLOURS[0])
        axes.bar_label(bars, [seconds(value) for value in values], padding=4, fontsize=11)
        axes.set_yticks(range(len(values)), names, color=INK)
        axes.invert_yaxis()
        axes.set_xlim(0, max(*values, 1e-9) * 1.12)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("seconds")

    return Picture(draw, height=60 + 28 * len(values))
