"""What pictures have in common: logarithmic axes with plain numbers, and the key in the right margin.

What belongs here: the parts that several pictures are made of. What does not: any picture, nor the sheet that it is
drawn on, which is in ``picture.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from c2tc_pipeline.reports.wording import number

Axes = Any
"""A matplotlib axes; matplotlib is only imported when something is drawn."""


def log_scale(axes: Axes, which: str, low: float, high: float) -> None:
    """Make one axis logarithmic from ``low`` to ``high``, with plain numbers at the ticks.

    Parameters
    ----------
    axes : matplotlib Axes
        The axes to change.
    which : {"x", "y"}
        Which of its axes.
    low, high : float
        The limits, both positive.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    (axes.set_xlim if which == "x" else axes.set_ylim)(low, high)
    # Within a decade powers of ten leave an axis without numbers.
    if high / low < 10:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    else:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 1000 else (1.0,)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


@dataclass(frozen=True)
class KeyEntry:
    """One line of the key in the right margin.

    Parameters
    ----------
    text : str
        What the mark stands for.
    colour : str
        The mark's colour.
    mark : {"dot", "ring", "line", "dashes"}
        The mark's form.
    size : float
        The diameter of a dot or ring.
    """

    text: str
    colour: str
    mark: str = "dot"
    size: float = 7.0


_MARKS: dict[str, dict[str, Any]] = {
    "dot": {"marker": "o", "linestyle": "none"},
    "ring": {"marker": "o", "linestyle": "none", "markerfacecolor": "white"},
    "line": {"linewidth": 2.0},
    "dashes": {"linewidth": 1.5, "linestyle": "--"},
}


def draw_key(axes: Axes, entries: Sequence[KeyEntry], heights: Sequence[float] | None = None) -> None:
    """Write a key to the right of the axes, each entry beside what it names or all of them from the top.

    Parameters
    ----------
    axes : matplotlib Axes
        The axes that the key belongs to.
    entries : sequence of KeyEntry
        What to write.
    heights : sequence of float or None
        Where each entry would like to be, 0 at the foot of the axes and 1 at its head; entries are moved
        apart where they would touch.
    """
    # The height of the axes is not known before the layout is done; below and above them go some 50 units.
    line = 18 / (72 * axes.figure.get_figheight() / axes.get_gridspec().nrows - 50)
    wanted = 1 - line * (0.5 + np.arange(len(entries))) if heights is None else np.asarray(heights)
    for entry, height in zip(entries, spread(wanted, line), strict=True):
        xs = (1.03,) if entry.mark in ("dot", "ring") else (1.015, 1.045)
        axes.plot(
            xs,
            [height] * len(xs),
            color=entry.colour,
            markersize=entry.size,
            transform=axes.transAxes,
            clip_on=False,
            **_MARKS[entry.mark],
        )
        axes.text(1.06, height, entry.text, transform=axes.transAxes, va="center_baseline", fontsize=11)


def spread(wanted: Sequence[float] | np.ndarray, gap: float) -> np.ndarray:
    """Move positions apart until neighbours are ``gap`` away, keeping their order and staying below 1.

    Parameters
    ----------
    wanted : sequence of float
        Where each would like to be.
    gap : float
        The smallest distance allowed.

    Returns
    -------
    ndarray of float
        Where each goes, in the order of ``wanted``.

    Examples
    --------
    >>> spread([0.5, 0.9, 0.95], 0.25)
    array([0.5 , 0.75, 1.  ])
    """
    wanted = np.asarray(wanted, dtype=np.float64)
    order = np.argsort(wanted, kind="stable")
    placed = wanted[order].copy()
    for index in range(1, len(placed)):
        placed[index] = max(placed[index], placed[index - 1] + gap)
    ceiling = 1.0
    for index in range(len(placed) - 1, -1, -1):
        placed[index] = min(placed[index], ceiling)
        ceiling = placed[index] - gap
    result = np.empty_like(placed)
    result[order] = placed
    return result
