"""How much work a cell is, roughly: what the estimate of the time left is made of.

One unit is about a training step of the multilayer perceptron. The numbers only have to be right relative to each
other, within a factor of two or so; no result depends on them.
"""

from __future__ import annotations

from c2tc_pipeline.evaluation.training import RECIPES

_STEP = {"mlp_plr": 3, "realmlp": 4, "ft_transformer": 30, "tabnet": 20, "tabr": 15}
_ROWS_A_UNIT = {"boosting": 30, "logistic": 1_000, "neighbour": 300}
# Multiplications and additions in the time of a unit, for methods that look at every row for every condensed one.
_PASS = 2e7
_PASSES = {"ours": 6, "cluster_centroids": 30, "herding": 3, "k_center": 3, "minibatch_kmeans": 2}
_MATCHING = {"dm": 60_000, "gm": 200_000, "mtt": 200_000}


def trial_effort(model: str, rows: int, recipe: str) -> float:
    """Return how much it is to train a model on so many rows.

    Examples
    --------
    >>> trial_effort("mlp", 10, "default") < trial_effort("ft_transformer", 10, "default")
    True
    """
    if model in _ROWS_A_UNIT:
        return 100 + rows / _ROWS_A_UNIT[model]
    return float(RECIPES[recipe].steps(max(rows, 1)) * _STEP.get(model, 1))


def condensation_effort(method: str, rows: int, columns: int, ratio: float) -> float:
    """Return how much it is to condense so many rows.

    Examples
    --------
    >>> condensation_effort("random", 10**6, 50, 0.01) < condensation_effort("ours", 10**6, 50, 0.01)
    True
    """
    if method in _MATCHING:
        return float(_MATCHING[method])
    return 10 + _PASSES.get(method, 0) * rows * (rows * ratio) * columns / _PASS / 4
