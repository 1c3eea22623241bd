"""How much condensed rows should count when a model is trained on them."""

from __future__ import annotations

import numpy as np

# How far a class's weight is pulled from its share of the condensed rows towards its share of the source rows, as a
# mixture of the two: a rare class keeps much of the favour that the allocation did it, a class that got about its share
# is hardly touched. Chosen on validation rows.
PULL = 0.6


def training_weights(members: np.ndarray, classes: np.ndarray, pull: float = PULL) -> np.ndarray:
    """Return one weight a condensed row: by its members within its class, by the allocation between classes.

    Within a class a row counts by the source rows behind it: a cluster of many is worth more than a cluster of few.
    Between classes weights by members alone would undo the allocation, since they add up to the class's rows however
    many condensed rows it got; so a class weighs a mean of its share of the condensed rows and its share of the source
    rows, see :data:`PULL`.

    Examples
    --------
    >>> training_weights(np.array([90, 30, 5]), np.array(["a", "a", "b"])).round(2).tolist()
    [1.9, 0.63, 0.47]
    """
    _, codes = np.unique(classes, return_inverse=True)
    members = np.asarray(members, dtype=np.float64)
    rows = np.bincount(codes, weights=members)
    shares = (1 - pull) * np.bincount(codes) / len(codes) + pull * rows / rows.sum()
    return np.asarray(members * (shares / rows)[codes] * len(codes))
