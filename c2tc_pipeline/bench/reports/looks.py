"""What the pictures of experiments have in common: one look a contender, the key, panels side by side.

What belongs here: the parts that several of these pictures are made of. What does not: any picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from c2tc_pipeline.bench.statistics.runs import WHOLE, cell_scores
from c2tc_pipeline.reports.canvas import Axes
from c2tc_pipeline.reports.class_styles import COLOURS, OTHER_COLOUR
from c2tc_pipeline.reports.picture import FAINT_INK, INK, Figure
from c2tc_pipeline.reports.wording import shortened

NAME_LENGTH = 34
MOST_ACROSS = 2
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@dataclass(frozen=True)
class Look:
    """How a contender is drawn.

    Parameters
    ----------
    colour : str
        Its colour.
    marker : str
        Its mark, so that nobody has to tell colours apart.
    line : str
        The style of its line.
    width : float
        The width of its line.
    """

    colour: str
    marker: str = "o"
    line: str = "-"
    width: float = 1.6

    @property
    def style(self) -> dict[str, Any]:
        """The look as matplotlib takes it."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.line, "linewidth": self.width}


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Give every contender a look that differs from all others in colour, mark or line.

    Parameters
    ----------
    names : sequence of str
        The contenders. The first that is ours is the most visible one, the whole table is dashed grey.

    Returns
    -------
    dict of str to Look
        In the order of ``names``.

    Examples
    --------
    >>> [(name, look.colour, look.line) for name, look in looks(["random", "ours", "whole"]).items()]
    [('random', '#d55e00', '-'), ('ours', '#0072b2', '-'), ('whole', '#6b7280', '--')]
    """
    own = next((name for name in names if name.startswith("ours")), None)
    baseline = next((name for name in names if name.startswith("random")), None)
    fixed: dict[str | None, Look] = {
        own: Look(COLOURS[0], "o", "-", 2.4),
        baseline: Look(COLOURS[1], "s"),
        **{name: Look(FAINT_INK, "", "--", 1.4) for name in names if name.startswith(WHOLE)},
    }
    taken = ({COLOURS[0]} if own else set()) | ({COLOURS[1]} if baseline else set())
    # Each colour comes back with another line and another mark; the shifts keep pairs of colour and mark apart.
    pool = [
        Look(colour, MARKERS[(place + shift) % len(MARKERS)], line)
        for line, shift in (("-", 0), ("--", 6), (":", 3), ("-.", 5))
        for place, colour in enumerate(COLOURS)
        if line != "-" or colour not in taken
    ]
    given: dict[str, Look] = {}
    for name in names:
        given[name] = fixed[name] if name in fixed else (pool.pop(0) if pool else Look(OTHER_COLOUR))
    return given


def series(scores: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return means over runs with a column ``series``: the contender, with its space and model where these differ.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "t", "ratio": 0.1, "model": "mlp", "space": ["hcfe", "label"],
    ...     "method": "ours", "variant": "", "split": 0, "seed": 0, "model_seed": 0, "status": "ok", "accuracy": 0.7})
    >>> series(scores, "accuracy")["series"].tolist()
    ['ours, hcfe', 'ours, label']
    """
    cells = cell_scores(scores, metric)
    names = cells["contender"].astype(str)
    for column in ("space", "model"):
        if cells[column].nunique() > 1:
            names = names + ", " + cells[column].astype(str)
    return cells.assign(series=names)


def draw_legend(figure: Figure, given: Mapping[str, Look], texts: Mapping[str, str] | None = None) -> None:
    """Write the key into the right margin of the whole figure.

    Parameters
    ----------
    figure : matplotlib Figure
        The figure.
    given : mapping of str to Look
        The looks.
    texts : mapping of str to str, optional
        What to write instead of a name.
    """
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **look.style, markersize=6) for look in given.values()]
    labels = [shortened((texts or {}).get(name, name), NAME_LENGTH) for name in given]
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=11, handlelength=2.4)


def legend_height(entries: int) -> int:
    """Return how high a picture must be for its key."""
    return 40 + 20 * entries


def draw_panels(figure: Figure, titles: Sequence[str], *, sharey: bool = False) -> list[Axes]:
    """Return one axes a title, at most ``MOST_ACROSS`` side by side."""
    across = min(len(titles), MOST_ACROSS)
    grid = figure.subplots(panel_rows(len(titles)), across, squeeze=False, sharey=sharey)
    for place, axes in enumerate(grid.flat):
        if place < len(titles):
            axes.set_title(shortened(titles[place], 40), loc="left", color=INK)
        else:
            axes.set_axis_off()
    return list(grid.flat)[: len(titles)]


def panel_rows(panels: int) -> int:
    """Return how many rows of panels there are.

    Examples
    --------
    >>> panel_rows(1), panel_rows(5)
    (1, 3)
    """
    return -(-panels // MOST_ACROSS)
