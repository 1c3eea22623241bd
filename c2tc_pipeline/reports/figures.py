"""The pictures of a condensed table: class shares, the table in two dimensions, seconds by stage.

What belongs here: one function a picture, plain values in. The pictures of the search for the
allocation are in ``search_figures.py``, what all are drawn with in ``drawing``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from c2tc_pipeline.reports.canvas import KeyEntry
from c2tc_pipeline.reports.class_styles import COLOURS, OTHER_COLOUR, ClassStyle
from c2tc_pipeline.reports.drawing.chart import Axis, Chart, Margins
from c2tc_pipeline.reports.drawing.letters import words_width
from c2tc_pipeline.reports.drawing.scales import Scale, linear_scale, logarithmic_scale
from c2tc_pipeline.reports.drawing.shapes import Bar, Dots, Sheet, Words
from c2tc_pipeline.reports.picture import FAINT_INK, INK
from c2tc_pipeline.reports.wording import count, counted, number, seconds, share, shortened

MOST_BARS = 20
MOST_DISCS = 2_000
SPECK = 2.3
"""The diameter of a source row."""
SKEWED = 50
"""From this ratio of the largest to the smallest share on, the axis is logarithmic so that all bars show."""


def class_shares(styles: Sequence[ClassStyle], class_rows: Sequence[int], counts: Sequence[int]) -> Sheet:
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
    Sheet
        The picture.

    Examples
    --------
    >>> from c2tc_pipeline.reports.class_styles import class_styles
    >>> shares = class_shares(class_styles(["no", "yes"], [90, 10]), [90, 10], [6, 4])
    >>> "60 %" in shares.svg()
    True
    """
    bars = _share_bars(styles, class_rows, counts)
    shares = bars[["before", "after"]].to_numpy()
    scale = linear_scale(0, shares.max() * 1.12)
    if shares.max() > SKEWED * shares.min():
        # Room for the figure at the end of the longest bar, on a scale where distances are ratios.
        low = shares.min() / 3
        scale = logarithmic_scale(low, shares.max() * (shares.max() / low) ** 0.12)
    below = Axis(scale, "share of all rows; pale: source table, full: condensed table", share)
    chart = _bar_chart(bars["name"].tolist(), below, row_height=38)
    thickness = 0.36
    for place, bar in enumerate(bars.to_dict("records")):
        for offset, value, colour in ((-1, bar["before"], bar["pale"]), (1, bar["after"], bar["colour"])):
            _draw_bar(
                chart,
                place + offset * thickness / 2,
                value,
                thickness,
                colour,
                Words(0, 0, share(value), 10, FAINT_INK if offset < 0 else INK),
            )
    return chart.sheet


def _bar_chart(names: Sequence[str], below: Axis, *, row_height: float) -> Chart:
    """Return a chart with a row for each name, the first at the top; bars are still to be drawn."""
    margins = Margins(max(words_width(name) for name in names) + 20)
    height = margins.top + row_height * len(names) + margins.bottom
    rows = Scale(len(names) - 0.5, -0.5, ())
    chart = Chart(Sheet(height), below, rows, margins)
    chart.draw_x()
    for (_, y), name in zip(chart.points([below.scale.low] * len(names), range(len(names))), names, strict=True):
        chart.sheet.add(Words(margins.left - 8, y, name, anchor="end"))
    return chart


def _draw_bar(chart: Chart, place: float, value: float, thickness: float, colour: str, end: Words) -> None:
    """Draw a bar of a thickness in rows around a place, with words at its end."""
    (left, top), (right, foot) = chart.points(
        [chart.x.scale.low, max(value, chart.x.scale.low)], [place - thickness / 2, place + thickness / 2]
    )
    chart.sheet.add(Bar(left, top, right - left, foot - top, colour), replace(end, x=right + 4, y=(top + foot) / 2))


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


def projection(styles: Sequence[ClassStyle], points: pd.DataFrame) -> Sheet:
    """Draw source rows and condensed rows in the plane of the first two principal components.

    Parameters
    ----------
    styles : sequence of ClassStyle
        How each class is shown.
    points : DataFrame
        Columns ``x``, ``y``, ``label``, ``kind`` (``"source"`` or ``"condensed"``) and ``weight``.

    Returns
    -------
    Sheet
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

    entries = [KeyEntry(style.short, style.colour) for style in styles if style.named]
    if others := sum(not style.named for style in styles):
        entries.append(KeyEntry(counted(others, "other class", "other classes"), OTHER_COLOUR))
    entries.append(KeyEntry("source row", FAINT_INK, size=SPECK))
    for weight in dict.fromkeys((lightest, heaviest)):
        text = f"stands for {counted(weight, 'row', 'rows')}"
        entries.append(KeyEntry(text, FAINT_INK, "ring", _diameter(weight, heaviest)))
    chart = _plane(points["x"].to_numpy(), points["y"].to_numpy(), entries)
    for shade, specks in source.groupby("colour", sort=False):
        chart.sheet.add(Dots(chart.points(specks["x"], specks["y"]), SPECK, str(shade), 0.3))
    # The largest first, so that small discs are not hidden behind them.
    for _, discs in condensed.groupby(["diameter", "colour"], sort=False):
        diameter, colour = float(discs["diameter"].iloc[0]), str(discs["colour"].iloc[0])
        chart.sheet.add(Dots(chart.points(discs["x"], discs["y"]), diameter, colour, 0.85, edge="#ffffff"))
    chart.draw_key(entries)
    return chart.sheet


def _plane(xs: np.ndarray, ys: np.ndarray, entries: Sequence[KeyEntry]) -> Chart:
    """Return a chart on which one unit is as long across as it is up, so that distances can be compared."""
    sheet = Sheet(460)
    margins = Margins.around(Axis(linear_scale(ys.min(), ys.max()), "", number), entries)
    across, up = sheet.width - margins.left - margins.right, sheet.height - margins.top - margins.bottom
    unit = max(np.ptp(xs) / across, np.ptp(ys) / up, 1e-9) * 1.08
    middle_x, middle_y = (xs.min() + xs.max()) / 2, (ys.min() + ys.max()) / 2
    below = linear_scale(middle_x - unit * across / 2, middle_x + unit * across / 2)
    aside = linear_scale(middle_y - unit * up / 2, middle_y + unit * up / 2)
    chart = Chart(sheet, Axis(below, "first principal component", number), aside, margins)
    chart.draw_x()
    chart.draw_y(Axis(aside, "second principal component", number))
    return chart


def _diameter(weight: int, heaviest: int) -> int:
    """Return a disc's diameter: its area grows with the weight, from what can still be seen.

    In steps of two, which is what the eye can tell apart.
    """
    return 2 * round(2 + 7 * (weight / heaviest) ** 0.5)


def stage_seconds(stages: Mapping[str, float]) -> Sheet:
    """Draw how long each stage took, in the order in which they ran.

    Parameters
    ----------
    stages : mapping of str to float
        Seconds by stage.

    Returns
    -------
    Sheet
        The picture.

    Examples
    --------
    >>> "12.3 s" in stage_seconds({"read": 0.4, "encode": 12.3}).svg()
    True
    """
    names = [shortened(name, 24) for name in stages]
    values = [float(value) for value in stages.values()]

    below = Axis(linear_scale(0, max(*values, 1e-9) * 1.12), "seconds", number)
    chart = _bar_chart(names, below, row_height=28)
    for place, value in enumerate(values):
        _draw_bar(chart, place, value, 0.55, COLOURS[0], Words(0, 0, seconds(value), 11))
    return chart.sheet
