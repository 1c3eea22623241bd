"""Scales: from values to places along an axis, and the values that are named there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

# Values named on an axis: so many and no more, whatever it spans.
_MOST_TICKS = 9


@dataclass(frozen=True)
class Scale:
    """The way from values to shares of an axis, 0 at its beginning and 1 at its end.

    Parameters
    ----------
    low, high : float
        The values at both ends.
    ticks : tuple of float
        The values that are named.
    is_logarithmic : bool
        Whether equal distances are equal ratios.

    Examples
    --------
    >>> logarithmic_scale(1, 100).share(10).tolist()
    0.5
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    is_logarithmic: bool = False

    def share(self, values: ArrayLike) -> np.ndarray:
        """Return where values are."""
        found = np.asarray(values, dtype=np.float64)
        if self.is_logarithmic:
            return np.asarray(np.log(found / self.low) / math.log(self.high / self.low))
        return np.asarray((found - self.low) / (self.high - self.low))


def linear_scale(low: float, high: float, *, whole: bool = False) -> Scale:
    """Return a scale of equal steps, named at round values.

    Parameters
    ----------
    low, high : float
        The values at both ends.
    whole : bool
        Whether only whole numbers are named.

    Examples
    --------
    >>> linear_scale(0, 1.1).ticks
    (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    """
    if not high > low:
        room = abs(low) * 0.05 or 1.0
        low, high = low - room, high + room
    return Scale(low, high, _round_values(low, high, 8, whole=whole))


def logarithmic_scale(low: float, high: float) -> Scale:
    """Return a scale of equal ratios, named at round values; both ends are positive.

    Examples
    --------
    >>> logarithmic_scale(0.9, 30).ticks, logarithmic_scale(2, 9).ticks, logarithmic_scale(1, 5000).ticks
    ((1.0, 2.0, 5.0, 10.0, 20.0), (2.0, 4.0, 6.0, 8.0), (1.0, 10.0, 100.0, 1000.0))
    """
    # Within a decade powers of ten leave an axis without numbers.
    if high / low < 10:
        return Scale(low, high, _round_values(low, high, 5), is_logarithmic=True)
    factors = (1, 2, 5) if high / low < 1000 else (1,)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [factor * 10.0**decade for decade in decades for factor in factors]
    ticks = [tick for tick in ticks if low <= tick <= high]
    return Scale(low, high, tuple(ticks[:: -(-len(ticks) // _MOST_TICKS)]), is_logarithmic=True)


def _round_values(low: float, high: float, most: int, *, whole: bool = False) -> tuple[float, ...]:
    """Return at most so many multiples of one, two or five times a power of ten."""
    magnitude = 10.0 ** math.floor(math.log10((high - low) / most))
    steps = [factor * magnitude for factor in (1, 2, 5, 10)]
    step = next(step for step in steps if (high - low) / step <= most)
    step = max(step, 1.0) if whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    # Rounded, or a multiple of a tenth has seventeen digits.
    return tuple(round(index * step, 12 - math.floor(math.log10(step))) for index in range(first, last + 1))
