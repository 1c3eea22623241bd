"""What pictures are made of: bars, lines, dots and words, at places counted in points from the upper left corner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from c2tc_pipeline.reports.picture import INK, WIDTH

Point = tuple[float, float]


@dataclass(frozen=True)
class Bar:
    """A filled rectangle.

    Parameters
    ----------
    x, y : float
        Its upper left corner.
    width, height : float
        Its size.
    colour : str
        As ``#rrggbb``.
    """

    x: float
    y: float
    width: float
    height: float
    colour: str


@dataclass(frozen=True)
class Line:
    """A line through some points.

    Parameters
    ----------
    points : sequence of pairs
        Where it goes.
    colour : str
        As ``#rrggbb``.
    width : float
        How thick it is.
    dashed : bool
        Whether it has gaps.
    opacity : float
        From 0 to 1.
    """

    points: Sequence[Point]
    colour: str
    width: float = 1.0
    dashed: bool = False
    opacity: float = 1.0


@dataclass(frozen=True)
class Dots:
    """Discs of one size and colour.

    Parameters
    ----------
    points : sequence of pairs
        Where they are.
    diameter : float
        Their size.
    colour : str
        As ``#rrggbb``.
    opacity : float
        From 0 to 1.
    edge : str, optional
        The colour of their edge; none by default.
    edge_width : float
        How thick the edge is; half of it lies outside.
    """

    points: Sequence[Point]
    diameter: float
    colour: str
    opacity: float = 1.0
    edge: str | None = None
    edge_width: float = 0.8


@dataclass(frozen=True)
class Words:
    """A line of text.

    Parameters
    ----------
    x, y : float
        Where it is; letters stand around ``y`` as their middle.
    text : str
        What it says.
    size : float
        The size of the letters.
    colour : str
        As ``#rrggbb``.
    anchor : {"start", "middle", "end"}
        Which part of it is at ``x``.
    upwards : bool
        Whether it is read from below.
    """

    x: float
    y: float
    text: str
    size: float = 12.0
    colour: str = INK
    anchor: str = "start"
    upwards: bool = False


Shape = Bar | Line | Dots | Words


@dataclass
class Sheet:
    """Shapes on white paper, the first at the bottom; a picture that leaves as SVG or PNG.

    Parameters
    ----------
    height : float
        Its height; the width is that of all pictures.
    shapes : list of Shape
        What is on it.

    Examples
    --------
    >>> sheet = Sheet(100, [Bar(10, 10, 50, 20, "#0072b2"), Words(70, 20, "a bar")])
    >>> sheet.svg().count("<rect"), sheet.png()[:4]
    (2, b'\\x89PNG')
    """

    height: float
    shapes: list[Shape] = field(default_factory=list)
    width: float = float(WIDTH)

    def add(self, *shapes: Shape) -> None:
        """Put shapes on top of all others."""
        self.shapes.extend(shapes)

    def svg(self) -> str:
        """Return the picture as a complete SVG document without outside references."""
        from c2tc_pipeline.reports.drawing.svg import as_svg

        return as_svg(self)

    def png(self) -> bytes:
        """Return the picture as a small PNG."""
        from c2tc_pipeline.reports.drawing.raster import as_png

        return as_png(self)
