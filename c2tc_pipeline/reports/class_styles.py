"""One colour a class, the same in every picture and table of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from c2tc_pipeline.reports.wording import shortened

# Okabe and Ito's palette, which people with any common form of colour blindness can tell apart; its yellow is
# left out because it vanishes on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#2b2b2b")
OTHER_COLOUR = "#a9adb3"
NAME_LENGTH = 22


@dataclass(frozen=True)
class ClassStyle:
    """How a class is shown.

    Parameters
    ----------
    label : str
        The class value as text, unchanged, so that labels in data can be looked up by it.
    colour : str
        Its colour as ``#rrggbb``.
    named : bool
        Whether the colour is the class's own; the smaller classes of a table with many share one grey.
    """

    label: str
    colour: str
    named: bool

    @property
    def pale(self) -> str:
        """The colour mixed with white, for what stands behind."""
        channels = (int(self.colour[start : start + 2], 16) for start in (1, 3, 5))
        return "#" + "".join(f"{round(0.35 * channel + 0.65 * 255):02x}" for channel in channels)

    @property
    def short(self) -> str:
        """The label, printable and short enough for the margin of a picture."""
        return shortened(self.label, NAME_LENGTH)


def class_styles(classes: Sequence[Any], class_rows: Sequence[int]) -> list[ClassStyle]:
    """Give the largest classes a colour of their own and the others grey.

    Parameters
    ----------
    classes : sequence
        The class values.
    class_rows : sequence of int
        Source rows per class.

    Returns
    -------
    list of ClassStyle
        In the order of ``classes``.

    Examples
    --------
    >>> [style.colour for style in class_styles(["no", "yes"], [90, 10])]
    ['#0072b2', '#d55e00']
    """
    by_size = sorted(range(len(classes)), key=lambda index: (-class_rows[index], index))
    named = sorted(by_size[: len(COLOURS)])
    own_colour = dict(zip(named, COLOURS, strict=False))
    return [
        ClassStyle(str(value), own_colour.get(index, OTHER_COLOUR), index in own_colour)
        for index, value in enumerate(classes)
    ]
