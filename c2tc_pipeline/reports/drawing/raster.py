"""A sheet as PNG, for where SVG would be large: matplotlib draws its shapes as they are, without axes."""

from __future__ import annotations

from functools import partial
from typing import Any

from c2tc_pipeline.reports.drawing.shapes import Bar, Dots, Line, Shape, Sheet, Words
from c2tc_pipeline.reports.drawing.svg import MIDDLE
from c2tc_pipeline.reports.picture import Figure, Picture

_ALIGNMENTS: dict[str, Any] = {"start": "left", "middle": "center", "end": "right"}


def as_png(sheet: Sheet) -> bytes:
    """Return a small PNG of the sheet.

    Examples
    --------
    >>> as_png(Sheet(50, [Dots([(10, 10), (20, 20)], 4, "#0072b2")]))[:4]
    b'\\x89PNG'
    """
    return Picture(partial(_draw, sheet), height=round(sheet.height)).png()


def _draw(sheet: Sheet, figure: Figure) -> None:
    from matplotlib.transforms import Affine2D

    figure.set_layout_engine("none")
    # Points from the upper left corner, as inches from the lower left one.
    places = Affine2D().scale(1 / 72, -1 / 72).translate(0, sheet.height / 72) + figure.dpi_scale_trans
    for order, shape in enumerate(sheet.shapes):
        artist = _artist(shape)
        artist.set(transform=places, zorder=order)
        figure.add_artist(artist)


def _artist(shape: Shape) -> Figure:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle
    from matplotlib.text import Text

    match shape:
        case Bar():
            return Rectangle((shape.x, shape.y), shape.width, shape.height, color=shape.colour, linewidth=0)
        case Line():
            xs, ys = zip(*shape.points, strict=True)
            looks: dict[str, Any] = {"linewidth": shape.width, "linestyle": "--" if shape.dashed else "-"}
            return Line2D(xs, ys, color=shape.colour, alpha=shape.opacity, **looks)
        case Dots():
            xs, ys = zip(*shape.points, strict=True)
            return Line2D(
                xs,
                ys,
                linestyle="none",
                marker="o",
                markersize=shape.diameter,
                markerfacecolor=shape.colour,
                markeredgecolor=shape.edge or shape.colour,
                markeredgewidth=shape.edge_width if shape.edge else 0,
                alpha=shape.opacity,
            )
        case Words():
            down = MIDDLE * shape.size
            return Text(
                shape.x + (down if shape.upwards else 0),
                shape.y + (0 if shape.upwards else down),
                shape.text,
                fontsize=shape.size,
                color=shape.colour,
                horizontalalignment=_ALIGNMENTS[shape.anchor],
                verticalalignment="baseline",
                rotation=90 if shape.upwards else 0,
                rotation_mode="anchor",
            )
