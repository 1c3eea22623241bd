"""The pictures of how the condensed rows were shared out over the classes: the loss curves and the search.

What belongs here: one function a picture, plain values in. What they are drawn with is in ``drawing``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from c2tc_pipeline.allocation.result import Allocation
from c2tc_pipeline.clustering.loss_curves import LossCurve
from c2tc_pipeline.reports.canvas import KeyEntry
from c2tc_pipeline.reports.class_styles import COLOURS, OTHER_COLOUR, ClassStyle
from c2tc_pipeline.reports.drawing.chart import Axis, Chart, Margins
from c2tc_pipeline.reports.drawing.scales import linear_scale, logarithmic_scale
from c2tc_pipeline.reports.drawing.shapes import Dots, Line, Sheet, Words
from c2tc_pipeline.reports.picture import FAINT_INK, WIDTH
from c2tc_pipeline.reports.wording import counted, number


def loss_curves(
    styles: Sequence[ClassStyle], curves: Sequence[LossCurve], counts: Sequence[int], gamma: float
) -> Sheet:
    """Draw each class's term of the objective against its number of condensed rows, and where it ended up.

    Parameters
    ----------
    styles : sequence of ClassStyle
        How each class is shown.
    curves : sequence of LossCurve
        The loss curve of each class.
    counts : sequence of int
        The condensed rows that each class got.
    gamma : float
        The exponent of the class sizes in the objective.

    Returns
    -------
    Sheet
        The picture. Both axes are logarithmic, so losses of zero are not drawn.

    Examples
    --------
    >>> from c2tc_pipeline.reports.class_styles import class_styles
    >>> curve = LossCurve(100, 100, np.array([1, 4, 16]), np.array([80.0, 20.0, 5.0]), 100)
    >>> "</svg>" in loss_curves(class_styles(["no", "yes"], [90, 10]), [curve, curve], [6, 4], 0.25).svg()
    True
    """
    lines, marks = [], []
    for curve, chosen in zip(curves, counts, strict=True):
        divisor = curve.rows**gamma
        drawn = curve.wcss > 0
        lines.append((curve.grid[drawn], curve.wcss[drawn] / divisor))
        loss = curve.at(np.array([chosen]))[0] / divisor
        marks.append((chosen, loss) if loss > 0 else None)
    losses = np.concatenate([loss for _, loss in lines] + [[mark[1]] for mark in marks if mark])
    sizes = np.concatenate([size for size, _ in lines] + [[mark[0]] for mark in marks if mark])

    if not len(losses):
        return Sheet(80, [Words(WIDTH / 2, 40, "Every class has a loss of zero.", anchor="middle")])
    below = Axis(
        logarithmic_scale(sizes.min() / 1.15, max(sizes.max(), 2) * 1.15), "condensed rows of the class", number
    )
    aside = Axis(logarithmic_scale(losses.min() / 1.4, losses.max() * 1.4), "term in the objective", number)
    entries, heights = [], []
    for style, (_, loss) in zip(styles, lines, strict=True):
        if style.named and len(loss):
            entries.append(KeyEntry(style.short, style.colour))
            heights.append(float(aside.scale.share(loss[-1])))
    if others := sum(not style.named for style in styles):
        entries.append(KeyEntry(counted(others, "other class", "other classes"), OTHER_COLOUR))
        heights.append(0.0)
    chart = Chart(Sheet(420), below, aside.scale, Margins.around(aside, entries))
    chart.draw_x()
    chart.draw_y(aside)
    # Classes in grey first, so that they lie behind the others.
    for index in sorted(range(len(styles)), key=lambda index: styles[index].named):
        style, places, mark = styles[index], chart.points(*lines[index]), marks[index]
        if style.named and places:
            chart.sheet.add(Line(places, style.colour, 1.8), Dots(places, 3.5, style.colour))
        elif places:
            chart.sheet.add(Line(places, style.colour, 0.7, opacity=0.5))
        if mark:
            chosen_here = chart.points([mark[0]], [mark[1]])
            size = 11 if style.named else 6
            chart.sheet.add(Dots(chosen_here, size, style.colour, edge="#ffffff", edge_width=1.2))
    chart.draw_key(entries, heights)
    return chart.sheet


def allocation_trace(allocation: Allocation) -> Sheet:
    """Draw the search: every proposal, the best objective so far, and the bound when it is known.

    Parameters
    ----------
    allocation : Allocation
        The allocation with its trace, which must not be empty.

    Returns
    -------
    Sheet
        The picture.

    Examples
    --------
    >>> from c2tc_pipeline.allocation.result import TraceStep
    >>> steps = (TraceStep(0, 9.0, 9.0, True, 2, (3, 1)), TraceStep(1, 8.0, 8.0, True, 2, (2, 2)))
    >>> "bound" in allocation_trace(Allocation("hfils", np.array([2, 2]), 8.0, 4, steps, 7.5, 0.25)).svg()
    True
    """
    steps = [step for step in allocation.trace if np.isfinite(step.proposed)]
    accepted = [step for step in steps if step.accepted]
    rejected = [step for step in steps if not step.accepted]
    values = [step.proposed for step in steps] + [step.best for step in steps]
    if allocation.bound is not None:
        values.append(allocation.bound)

    low, high = min(values), max(values)
    if low > 0 and high / low > 10:
        scale = logarithmic_scale(low / 1.2, high * 1.2)
    else:
        scale = linear_scale(low - 0.05 * (high - low), high + 0.05 * (high - low))
    aside = Axis(scale, "objective", number)
    entries = [KeyEntry("best so far", COLOURS[0], "line")]
    if rejected:
        entries.append(KeyEntry("rejected proposal", FAINT_INK, "ring", 5))
    entries.append(KeyEntry("accepted proposal", COLOURS[0], size=6))
    if allocation.bound is not None:
        entries.append(KeyEntry("lower bound", COLOURS[1], "dashes"))
    first, last = steps[0].iteration, steps[-1].iteration
    room = max(0.04 * (last - first), 0.2)
    below = Axis(linear_scale(first - room, last + room, whole=True), "iteration", number)
    chart = Chart(Sheet(340), below, scale, Margins.around(aside, entries))
    chart.draw_x()
    chart.draw_y(aside)
    # The best stays what it is until the next step.
    turns = [(step.iteration, value.best) for value, step in zip([steps[0], *steps], steps, strict=False)]
    ways = [place for turn, step in zip(turns, steps, strict=True) for place in (turn, (step.iteration, step.best))]
    chart.sheet.add(Line(chart.points(*zip(*ways, strict=True)), COLOURS[0], 2.0))
    if rejected:
        places = chart.points([step.iteration for step in rejected], [step.proposed for step in rejected])
        chart.sheet.add(Dots(places, 5, "#ffffff", edge=FAINT_INK, edge_width=1.0))
    places = chart.points([step.iteration for step in accepted], [step.proposed for step in accepted])
    chart.sheet.add(Dots(places, 6, COLOURS[0]))
    if allocation.bound is not None:
        ends = chart.points([below.scale.low, below.scale.high], [allocation.bound] * 2)
        chart.sheet.add(Line(ends, COLOURS[1], 1.5, dashed=True))
    chart.draw_key(entries)
    return chart.sheet
