"""The critical-difference diagram: mean ranks on a line, bars over contenders that are not told apart."""

from __future__ import annotations

import math

from c2tc_pipeline.bench.reports.looks import NAME_LENGTH
from c2tc_pipeline.bench.statistics.comparisons import Ranking
from c2tc_pipeline.reports.canvas import Axes
from c2tc_pipeline.reports.class_styles import COLOURS
from c2tc_pipeline.reports.picture import FAINT_INK, INK, Figure, Picture
from c2tc_pipeline.reports.wording import shortened

LINE = 24
"""Units from one name to the next."""
UNFINISHED = "*"


def rank_diagram(ranking: Ranking) -> Picture:
    """Draw mean ranks, the best to the left, with the critical difference.

    Parameters
    ----------
    ranking : Ranking
        What :func:`~c2tc_pipeline.bench.statistics.ranks.rank_contenders` returned.

    Returns
    -------
    Picture
        The picture; a thick bar joins contenders that Nemenyi's test does not tell apart, a star marks those that did
        not finish everywhere.

    Examples
    --------
    >>> import pandas as pd
    >>> ranks = pd.DataFrame({"ours": [1.0, 1.0], "mtt": [2.0, 2.0]})
    >>> ranking = Ranking(ranks, {"ours": 1.0, "mtt": 2.0}, {"mtt": 1}, 0, float("nan"), 0.05, 1.39, (("ours", "mtt"),))
    >>> text = rank_diagram(ranking).svg()
    >>> "2.00 mtt*" in text, "critical difference 1.39" in text
    (True, True)
    """
    names = list(ranking.mean_ranks)
    half = math.ceil(len(names) / 2)
    bars = 14 * len(ranking.groups)
    below = 16 + bars + LINE * half
    above = 62
    worst = max(len(names), 2)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.set_axis_off()
        # One unit up is one unit of the page; across, room for names on both sides.
        room = 0.42 * (worst - 1)
        axes.set_xlim(1 - room, worst + room)
        axes.set_ylim(-below, above)
        axes.plot([1, worst], [0, 0], color=INK, linewidth=1.4)
        for rank in range(1, worst + 1):
            axes.plot([rank, rank], [0, 6], color=INK, linewidth=1.2)
            axes.text(rank, 10, str(rank), ha="center", va="bottom", fontsize=11, color=FAINT_INK)
        _critical(axes, ranking.critical_difference, worst, room)
        for place, members in enumerate(ranking.groups):
            ends = [ranking.mean_ranks[members[0]], ranking.mean_ranks[members[-1]]]
            margin = 0.006 * (worst - 1)
            height = -12 - 14 * place
            axes.plot([ends[0] - margin, ends[1] + margin], [height, height], color=INK, linewidth=4.5, alpha=0.75)
        for place, name in enumerate(names):
            left = place < half
            height = -bars - 16 - LINE * (place if left else len(names) - 1 - place)
            side = 1 - 0.03 * (worst - 1) if left else worst + 0.03 * (worst - 1)
            own = name.startswith("ours")
            mean = ranking.mean_ranks[name]
            colour = COLOURS[0] if own else FAINT_INK
            axes.plot([mean, mean, side], [0, height, height], color=colour, linewidth=1.8 if own else 1.0)
            star = UNFINISHED if name in ranking.unfinished else ""
            shown = shortened(name, NAME_LENGTH) + star
            axes.text(
                side + (-0.012 if left else 0.012) * (worst - 1),
                height,
                f"{shown} {mean:.2f}" if left else f"{mean:.2f} {shown}",
                ha="right" if left else "left",
                va="center_baseline",
                fontsize=11,
                color=COLOURS[0] if own else INK,
                fontweight="bold" if own else "normal",
            )

    return Picture(draw, height=below + above + 24)


def _critical(axes: Axes, difference: float, worst: int, room: float) -> None:
    """Draw the critical difference at the scale of the ranks, cut where it is longer than the diagram."""
    start, end = 1.0, min(1.0 + difference, worst + room)
    for x in (start, end):
        axes.plot([x, x], [36, 44], color=INK, linewidth=1.2)
    axes.plot([start, end], [40, 40], color=INK, linewidth=1.2)
    axes.text(start, 48, f"critical difference {difference:.2f}", ha="left", va="bottom", fontsize=11, color=FAINT_INK)
