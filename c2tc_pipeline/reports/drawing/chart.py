"""A chart: an area with an axis below and one on the left, and the key in the right margin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from c2tc_pipeline.reports.canvas import KeyEntry, spread
from c2tc_pipeline.reports.drawing.letters import words_width
from c2tc_pipeline.reports.drawing.scales import Scale
from c2tc_pipeline.reports.drawing.shapes import Dots, Line, Point, Sheet, Words
from c2tc_pipeline.reports.picture import FAINT_INK, RULE

_TICK_SIZE = 12.0
_KEY_SIZE = 11.0
_KEY_LINE = 18.0
_GAP = 7.0


@dataclass(frozen=True)
class Axis:
    """What stands along one side of a chart.

    Parameters
    ----------
    scale : Scale
        Where values are.
    name : str
        What they are.
    form : callable
        Says a value in words.
    """

    scale: Scale
    name: str
    form: Callable[[float], str]

    def words(self) -> list[str]:
        """Return what stands at each named value."""
        return [self.form(tick) for tick in self.scale.ticks]


@dataclass(frozen=True)
class Margins:
    """Room around the area of a chart, in points."""

    left: float
    right: float = 16.0
    top: float = 10.0
    bottom: float = 46.0

    @classmethod
    def around(cls, y: Axis, key: Sequence[KeyEntry] = ()) -> Margins:
        """Return the room that the words on the left and the key need."""
        left = max((words_width(text, _TICK_SIZE) for text in y.words()), default=0.0) + _GAP
        right = 34 + max(words_width(entry.text, _KEY_SIZE) for entry in key) if key else 16.0
        return cls(left + 26, right)


@dataclass(frozen=True)
class Chart:
    """An area on a sheet with two scales.

    Parameters
    ----------
    sheet : Sheet
        What it is drawn on.
    x : Axis
        The axis below.
    y : Scale
        The scale on the left, from the foot of the area to its head.
    margins : Margins
        Room around the area.

    Examples
    --------
    >>> from c2tc_pipeline.reports.drawing.scales import linear_scale
    >>> chart = Chart(Sheet(146), Axis(linear_scale(0, 10), "x", str), linear_scale(0, 1), Margins(104))
    >>> chart.points([0, 10], [0, 1])
    [(104.0, 100.0), (704.0, 10.0)]
    """

    sheet: Sheet
    x: Axis
    y: Scale
    margins: Margins

    @property
    def right(self) -> float:
        """Where the area ends on the right."""
        return self.sheet.width - self.margins.right

    @property
    def foot(self) -> float:
        """Where the area ends below."""
        return self.sheet.height - self.margins.bottom

    def points(self, xs: ArrayLike, ys: ArrayLike) -> list[Point]:
        """Return where some values are on the sheet."""
        across = self.margins.left + self.x.scale.share(xs) * (self.right - self.margins.left)
        down = self.foot - self.y.share(ys) * (self.foot - self.margins.top)
        return list(zip(across.tolist(), down.tolist(), strict=True))

    def draw_x(self) -> None:
        """Draw the axis below, with a rule up from each value that is named."""
        left, top = self.margins.left, self.margins.top
        for (place, _), text in zip(self._at_foot(), self.x.words(), strict=True):
            self.sheet.add(
                Line([(place, top), (place, self.foot)], RULE, 0.8),
                Words(place, self.foot + 13, text, _TICK_SIZE, FAINT_INK, "middle"),
            )
        self.sheet.add(
            Line([(left, top), (left, self.foot), (self.right, self.foot)], RULE, 0.8),
            Words((left + self.right) / 2, self.foot + 33, self.x.name, _TICK_SIZE, FAINT_INK, "middle"),
        )

    def draw_y(self, axis: Axis) -> None:
        """Draw the axis on the left, with a rule across at each value that is named."""
        left = self.margins.left
        ticks = axis.scale.ticks
        for (_, place), text in zip(self.points([self.x.scale.low] * len(ticks), ticks), axis.words(), strict=True):
            self.sheet.add(
                Line([(left, place), (self.right, place)], RULE, 0.8),
                Words(left - _GAP, place, text, _TICK_SIZE, FAINT_INK, "end"),
            )
        self.sheet.add(
            Words(12, (self.margins.top + self.foot) / 2, axis.name, _TICK_SIZE, FAINT_INK, "middle", upwards=True)
        )

    def draw_key(self, entries: Sequence[KeyEntry], heights: Sequence[float] | None = None) -> None:
        """Write a key to the right of the area, each entry beside what it names or all of them from the top.

        Parameters
        ----------
        entries : sequence of KeyEntry
            What to write.
        heights : sequence of float, optional
            Where each entry would like to be, 0 at the foot of the area and 1 at its head; entries are moved apart
            where they would touch.
        """
        line = _KEY_LINE / (self.foot - self.margins.top)
        wanted = 1 - line * (0.5 + np.arange(len(entries))) if heights is None else np.asarray(heights)
        for entry, height in zip(entries, spread(wanted, line).tolist(), strict=True):
            y = self.foot - height * (self.foot - self.margins.top)
            x = self.right + 15
            if entry.mark in ("dot", "ring"):
                inside = "#ffffff" if entry.mark == "ring" else entry.colour
                self.sheet.add(Dots([(x, y)], entry.size, inside, edge=entry.colour, edge_width=1.0))
            else:
                dashed = entry.mark == "dashes"
                self.sheet.add(Line([(x - 9, y), (x + 9, y)], entry.colour, 1.5 if dashed else 2.0, dashed))
            self.sheet.add(Words(self.right + 30, y, entry.text, _KEY_SIZE))

    def _at_foot(self) -> list[Point]:
        return self.points(self.x.scale.ticks, [self.y.low] * len(self.x.scale.ticks))
