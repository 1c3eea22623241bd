"""The pictures of how the condensed rows were shared out over the classes: the loss curves and the search.

What belongs here: one function a picture, plain values in. What pictures share is in ``canvas.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from c2tc_pipeline.allocation.result import Allocation
from c2tc_pipeline.clustering.curve import ClassCurve
from c2tc_pipeline.reports.canvas import KeyEntry, draw_key, log_scale
from c2tc_pipeline.reports.class_styles import COLOURS, OTHER_COLOUR, ClassStyle
from c2tc_pipeline.reports.picture import FAINT_INK, Figure, Picture
from c2tc_pipeline.reports.wording import counted, number


def loss_curves(
    styles: Sequence[ClassStyle], curves: Sequence[ClassCurve], counts: Sequence[int], gamma: float
) -> Picture:
    """Draw each class's term of the objective against its number of condensed rows, and where it ended up.

    Parameters
    ----------
    styles : sequence of ClassStyle
        How each class is shown.
    curves : sequence of ClassCurve
        The loss curve of each class.
    counts : sequence of int
        The condensed rows that each class got.
    gamma : float
        The exponent of the class sizes in the objective.

    Returns
    -------
    Picture
        The picture. Both axes are logarithmic, so losses of zero are not drawn.

    Examples
    --------
    >>> from c2tc_pipeline.reports.class_styles import class_styles
    >>> curve = ClassCurve(100, 100, np.array([1, 4, 16]), np.array([80.0, 20.0, 5.0]), 100)
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

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        if not len(losses):
            axes.text(0.5, 0.5, "Every class has a loss of zero.", ha="center", transform=axes.transAxes)
            axes.set_axis_off()
            return
        low, high = losses.min() / 1.4, losses.max() * 1.4
        log_scale(axes, "x", sizes.min() / 1.15, max(sizes.max(), 2) * 1.15)
        log_scale(axes, "y", low, high)
        entries, heights = [], []
        # Classes in grey first, so that they lie behind the others.
        for index in sorted(range(len(styles)), key=lambda index: styles[index].named):
            style, (size, loss), mark = styles[index], lines[index], marks[index]
            if style.named:
                axes.plot(size, loss, color=style.colour, linewidth=1.8, marker="o", markersize=2.5)
            else:
                axes.plot(size, loss, color=style.colour, linewidth=0.7, alpha=0.5)
            if mark:
                edge = {"markeredgecolor": "white", "markeredgewidth": 1.2}
                axes.plot(*mark, color=style.colour, marker="o", markersize=11 if style.named else 6, **edge)
            if style.named and len(loss):
                entries.append(KeyEntry(style.short, style.colour))
                heights.append(np.log(loss[-1] / low) / np.log(high / low))
        if others := sum(not style.named for style in styles):
            entries.append(KeyEntry(counted(others, "other class", "other classes"), OTHER_COLOUR))
            heights.append(0.0)
        draw_key(axes, entries, heights)
        axes.set_xlabel("condensed rows of the class")
        axes.set_ylabel("term in the objective")

    return Picture(draw, height=420)


def allocation_trace(allocation: Allocation) -> Picture:
    """Draw the search: every proposal, the best objective so far, and the bound when it is known.

    Parameters
    ----------
    allocation : Allocation
        The allocation with its trace, which must not be empty.

    Returns
    -------
    Picture
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

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        low, high = min(values), max(values)
        if low > 0 and high / low > 10:
            log_scale(axes, "y", low / 1.2, high * 1.2)
        axes.step([s.iteration for s in steps], [s.best for s in steps], where="post", color=COLOURS[0], linewidth=2)
        entries = [KeyEntry("best so far", COLOURS[0], "line")]
        if rejected:
            axes.plot(
                [step.iteration for step in rejected],
                [step.proposed for step in rejected],
                "o",
                color=FAINT_INK,
                markerfacecolor="white",
                markersize=5,
            )
            entries.append(KeyEntry("rejected proposal", FAINT_INK, "ring", 5))
        axes.plot(
            [s.iteration for s in accepted],
            [s.proposed for s in accepted],
            "o",
            color=COLOURS[0],
            markersize=6,
        )
        entries.append(KeyEntry("accepted proposal", COLOURS[0], size=6))
        if allocation.bound is not None:
            axes.axhline(allocation.bound, color=COLOURS[1], linestyle="--", linewidth=1.5)
            entries.append(KeyEntry("lower bound", COLOURS[1], "dashes"))
        draw_key(axes, entries)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.yaxis.set_major_formatter(lambda value, _: number(value))
        axes.set_xlabel("iteration")
        axes.set_ylabel("objective")

    return Picture(draw, height=340)
