"""Pictures drawn by matplotlib as deterministic SVG or PNG, and the axes and legends that they share.

Text stays text in the SVG, so that the browser's fonts show scripts that the measuring font lacks. The same input gives
the same bytes, whatever the user's matplotlib settings. matplotlib is imported when a picture is drawn.
"""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from c2tc_pipeline.reports.wording import number, shortened

WIDTH = 720
PANEL_WIDTH = 340
"""Width of pictures that stand side by side on a page, and below each other on a phone."""
INK = "#24292f"
FAINT_INK = "#6b7280"
RULE = "#e3e6ea"
# Okabe and Ito's palette, safe for common forms of colour blindness, without the yellow that vanishes on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#2b2b2b")
OTHER_COLOUR = "#a9adb3"
NAME_LENGTH = 16
LEGEND_LENGTH = 34
PAGE_SVG_BYTES = 150_000
"""Pages embed larger pictures as PNG."""
_PNG_COLOURS = 48
_STYLE: dict[Any, Any] = {
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
    "legend.fontsize": 11,
    "legend.frameon": False,
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
Axes = Any


@dataclass(frozen=True)
class Picture:
    """A function that draws on an empty matplotlib figure, with the figure's height and width in points.

    A ``dense`` picture has thousands of marks and is embedded as PNG.
    """

    draw: Callable[[Figure], Any]
    height: float
    dense: bool = False
    width: float = WIDTH

    def svg(self) -> str:
        """Return a complete SVG document without date, program name or outside references."""
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        buffer = io.StringIO()
        with self.drawn() as figure:
            # Unlike figure.savefig this draws once: the layout is computed while drawing.
            FigureCanvasSVG(figure).print_svg(buffer, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
        return buffer.getvalue()

    def png(self) -> bytes:
        """Return a PNG of 96 pixels per inch, small because it has few colours."""
        from PIL import Image

        buffer = io.BytesIO()
        with self.drawn() as figure:
            figure.canvas.draw()
            image = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
        image.quantize(_PNG_COLOURS, dither=Image.Dither.NONE).save(buffer, format="png", optimize=True)
        return buffer.getvalue()

    def data_uri(self, max_svg_bytes: int = PAGE_SVG_BYTES) -> str:
        """Return the picture as a data URI: SVG, or PNG where it is dense or the SVG would exceed the limit."""
        kind, data = "svg+xml", b"" if self.dense else self.svg().encode()
        if self.dense or len(data) > max_svg_bytes:
            kind, data = "png", self.png()
        return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"

    @contextmanager
    def drawn(self) -> Iterator[Figure]:
        """Yield the drawn figure in the settings that it has to be rendered in."""
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        with matplotlib.rc_context(), warnings.catch_warnings():
            # The measuring font lacks a glyph that the browser has.
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(_STYLE)
            # Browsers show 96 pixels per inch, so that PNG and SVG have the same size.
            figure = Figure(figsize=(self.width / 72, self.height / 72), dpi=96, layout="constrained")
            FigureCanvasAgg(figure)
            self.draw(figure)
            yield figure


@dataclass(frozen=True)
class ClassStyle:
    """Label and colour of a class; ``named`` classes have a colour of their own, the others share one grey."""

    label: str
    colour: str
    named: bool

    @property
    def pale(self) -> str:
        """The colour mixed with white."""
        channels = (int(self.colour[start : start + 2], 16) for start in (1, 3, 5))
        return "#" + "".join(f"{round(0.35 * channel + 0.65 * 255):02x}" for channel in channels)

    @property
    def short(self) -> str:
        """The label, printable and short enough for a legend."""
        return shortened(self.label, NAME_LENGTH)


def class_styles(classes: Sequence[Any], class_rows: Sequence[int]) -> list[ClassStyle]:
    """Give the largest classes a colour of their own and the others grey, in the order of ``classes``."""
    by_size = sorted(range(len(classes)), key=lambda index: (-class_rows[index], index))
    own_colour = dict(zip(sorted(by_size[: len(COLOURS)]), COLOURS, strict=False))
    return [
        ClassStyle(str(value), own_colour.get(index, OTHER_COLOUR), index in own_colour)
        for index, value in enumerate(classes)
    ]


def plain_axis(axis: Any, form: Callable[[float], str] = number) -> None:
    """Format the ticks of an axis without offsets, powers or mathtext."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: form(value)))


def log_scale(axes: Axes, which: str, low: float, high: float, form: Callable[[float], str] = number) -> None:
    """Make the ``"x"`` or ``"y"`` axis logarithmic from ``low`` to ``high``, with plain numbers at the ticks."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

    axis = axes.xaxis if which == "x" else axes.yaxis
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low, high)})
    # Within a decade powers of ten leave an axis without numbers.
    if high / low < 10:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    else:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 1000 else (1.0,)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    plain_axis(axis, form)


def ratio_axis(axes: Axes, ratios: np.ndarray, form: Callable[[float], str] = number) -> None:
    """Make the x axis logarithmic over sorted ratios, with these at the ticks unless their labels would overlap."""
    low, high = ratios[0] / 1.5, ratios[-1] * 1.5
    log_scale(axes, "x", low, high, form)
    if len(ratios) == 1 or np.diff(np.log(ratios)).min() > 0.18 * np.log(high / low):
        axes.set_xticks(ratios, [form(ratio) for ratio in ratios])


def bar_rows(axes: Axes, names: Sequence[str]) -> None:
    """Label one row of horizontal bars per name, the first at the top."""
    axes.set_yticks(range(len(names)), names, color=INK)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")


def bar_text(axes: Axes, text: str, x: float, y: float, size: float = 9, **options: Any) -> None:
    """Write text at the end of a bar."""
    given = {"xytext": (4, 0), "textcoords": "offset points", "va": "center_baseline", "color": FAINT_INK, **options}
    axes.annotate(text, (x, y), fontsize=size, **given)


def draw_legend(
    drawn_on: Figure | Axes,
    key: Iterable[tuple[str, Mapping[str, Any]]],
    place: str = "outside right upper",
    **options: Any,
) -> None:
    """Draw a legend, by default into the right margin of a figure: pairs of text and matplotlib line style."""
    from matplotlib.lines import Line2D

    entries = [(shortened(text, LEGEND_LENGTH), Line2D([], [], **{"markersize": 6, **style})) for text, style in key]
    texts, handles = [text for text, _ in entries], [handle for _, handle in entries]
    drawn_on.legend(handles, texts, loc=place, handlelength=2.0, **options)
