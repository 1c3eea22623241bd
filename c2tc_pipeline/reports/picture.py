"""A picture: something that can be drawn, and the forms in which it leaves, SVG and PNG.

What belongs here: what all pictures look like, and the sheet that matplotlib draws on. What does not: any picture.
Those of a condensed table are drawn without matplotlib, with what is in ``drawing``; axes and keys of the others, such
as those in ``score_figures.py``, are in ``canvas.py``.

Text stays text in the SVG: the browser that shows it has letters for every script, the font that measures the picture
has not. Nothing else of the outside world enters: the same input gives the same bytes.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

WIDTH = 720
INK = "#24292f"
FAINT_INK = "#6b7280"
RULE = "#e3e6ea"
PNG_RESOLUTION = 96
"""What browsers take an inch to have: PNG and SVG are shown in the same size."""
PNG_COLOURS = 48

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 12,
    "text.color": INK,
    # A dollar sign in a class name is a dollar sign.
    "text.parse_math": False,
    "axes.edgecolor": RULE,
    "axes.labelcolor": FAINT_INK,
    "axes.labelsize": 12,
    "axes.titlesize": 12,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": FAINT_INK,
    "ytick.labelcolor": FAINT_INK,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "svg.fonttype": "none",
    "svg.hashsalt": "c2tc",
}

Figure = Any
"""A matplotlib figure; matplotlib is only imported when something is drawn."""


class Showable(Protocol):
    """What can be shown on a page, whoever draws it."""

    def svg(self) -> str:
        """Return the picture as a complete SVG document."""
        ...

    def png(self) -> bytes:
        """Return the picture as a small PNG."""
        ...


@dataclass(frozen=True)
class Picture:
    """A picture that matplotlib draws when it is asked for.

    Parameters
    ----------
    draw : callable
        Draws on the empty figure that it is given.
    height : int
        Height of the picture; the width is always ``WIDTH``.

    Examples
    --------
    >>> line = Picture(lambda figure: figure.subplots().plot([1, 2, 3]), height=200)
    >>> line.svg().count("<svg "), line.png()[:4]
    (1, b'\\x89PNG')
    """

    draw: Callable[[Figure], Any]
    height: int

    def svg(self) -> str:
        """Return the picture as a complete SVG document without date, program name or outside references."""
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        buffer = io.StringIO()
        with self._drawn() as figure:
            # figure.savefig would draw everything twice, first for the layout, which drawing sees to anyway.
            FigureCanvasSVG(figure).print_svg(buffer, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
        return buffer.getvalue()

    def png(self) -> bytes:
        """Return the picture as a small PNG; it has few colours, which the eye does not miss in a diagram."""
        from PIL import Image

        full, small = io.BytesIO(), io.BytesIO()
        with self._drawn() as figure:
            figure.savefig(full, format="png", dpi=PNG_RESOLUTION)
        image = Image.open(full).convert("RGB")
        image.quantize(PNG_COLOURS, dither=Image.Dither.NONE).save(small, format="png", optimize=True)
        return small.getvalue()

    @contextmanager
    def _drawn(self) -> Iterator[Figure]:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        with matplotlib.rc_context(), warnings.catch_warnings():
            # The measuring font lacks a letter, the browser does not.
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            # A matplotlibrc of the user's must not change the report.
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(STYLE)
            figure = Figure(figsize=(WIDTH / 72, self.height / 72), layout="constrained")
            FigureCanvasAgg(figure)
            self.draw(figure)
            yield figure
