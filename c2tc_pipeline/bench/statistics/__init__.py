"""Paired tests, standings, ranks and row worth over the scores of an experiment.

The scores are a tidy frame with one row per trained model: ``table``, ``ratio``, ``method``, ``space``, ``variant``,
``model``, ``split``, ``seed``, ``model_seed``, ``status`` and one column per metric. A *run* is one split and one
condensation seed: scores of models trained on the same condensed rows are averaged first, because they are no
independent evidence about those rows. A *unit* is one table, ratio and model. A *cell* is a unit in one column space
for one *contender*, which is a method with its variant.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def fitted_exponent(sizes: Sequence[float] | np.ndarray, costs: Sequence[float] | np.ndarray) -> float:
    """Return the exponent of the power law fitted to costs against sizes; NaN for fewer than two distinct sizes.

    Pairs that are missing or not positive are left out.
    """
    x, y = np.asarray(sizes, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    usable = (x > 0) & (y > 0)
    if len(np.unique(x[usable])) < 2:
        return float("nan")
    return float(np.polyfit(np.log(x[usable]), np.log(y[usable]), 1)[0])
