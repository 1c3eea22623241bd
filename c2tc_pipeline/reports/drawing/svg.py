"""A sheet as SVG. Text stays text: the browser that shows it has letters for every script."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from c2tc_pipeline.reports.drawing.shapes import Bar, Dots, Line, Shape, Sheet, Words

# From the middle of the letters to the line that they stand on, as a share of their size.
MIDDLE = 0.36


def as_svg(sheet: Sheet) -> str:
    """Return a complete SVG document.

    Examples
    --------
    >>> as_svg(Sheet(20, [Words(0, 10, "a < b")])).count("a &lt; b")
    1
    """
    size = f'width="{_short(sheet.width)}pt" height="{_short(sheet.height)}pt"'
    box = f'viewBox="0 0 {_short(sheet.width)} {_short(sheet.height)}"'
    font = 'font-family="DejaVu Sans, Verdana, sans-serif"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} {font}>',
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *(_element(shape) for shape in sheet.shapes),
            "</svg>\n",
        ]
    )


def _element(shape: Shape) -> str:
    match shape:
        case Bar():
            return (
                f'<rect x="{_short(shape.x)}" y="{_short(shape.y)}" width="{_short(shape.width)}" '
                f'height="{_short(shape.height)}" fill={quoteattr(shape.colour)}/>'
            )
        case Line():
            path = " ".join(f"{_short(x)},{_short(y)}" for x, y in shape.points)
            looks = ' stroke-dasharray="5.5 2.4"' if shape.dashed else ""
            looks += "" if shape.opacity == 1 else f' opacity="{shape.opacity}"'
            return (
                f'<polyline points="{path}" fill="none" stroke={quoteattr(shape.colour)} '
                f'stroke-width="{_short(shape.width)}"{looks} stroke-linejoin="round"/>'
            )
        case Dots():
            edge = "" if shape.edge is None else f' stroke="{shape.edge}" stroke-width="{_short(shape.edge_width)}"'
            # Of each disc and not of the group: where many lie on each other it is darker.
            opacity = "" if shape.opacity == 1 else f' fill-opacity="{shape.opacity}" stroke-opacity="{shape.opacity}"'
            return _group(shape, f"fill={quoteattr(shape.colour)}{edge}{opacity}")
        case Words():
            y = shape.y + (0 if shape.upwards else MIDDLE * shape.size)
            x = shape.x + (MIDDLE * shape.size if shape.upwards else 0)
            turned = f' transform="rotate(-90 {_short(x)} {_short(y)})"' if shape.upwards else ""
            return (
                f'<text x="{_short(x)}" y="{_short(y)}" font-size="{_short(shape.size)}" '
                f'fill={quoteattr(shape.colour)} text-anchor="{shape.anchor}"{turned}>{escape(shape.text)}</text>'
            )


def _group(dots: Dots, looks: str) -> str:
    radius = _short(dots.diameter / 2)
    discs: Iterable[str] = (f'<circle cx="{_short(x)}" cy="{_short(y)}" r="{radius}"/>' for x, y in dots.points)
    return f"<g {looks}>{''.join(discs)}</g>"


def _short(value: float) -> str:
    """Return a place to a hundredth of a point, in as few letters as that takes."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
