"""How a cost grows: the exponent of the power law that lies closest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def fitted_exponent(sizes: Sequence[float] | np.ndarray, costs: Sequence[float] | np.ndarray) -> float:
    """Return the slope of the least-squares line through the logarithms.

    Parameters
    ----------
    sizes, costs : sequence of float
        Pairs; those that are missing or not positive are left out.

    Returns
    -------
    float
        1 where the cost grows as the size does; NaN for fewer than two different sizes.

    Examples
    --------
    >>> round(fitted_exponent([1, 2, 4], [3, 12, 48]), 6)
    2.0
    """
    x, y = np.asarray(sizes, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    usable = (x > 0) & (y > 0)
    x, y = np.log(x[usable]), np.log(y[usable])
    if len(np.unique(x)) < 2:
        return float("nan")
    centred = x - x.mean()
    return float(centred @ (y - y.mean()) / (centred @ centred))
