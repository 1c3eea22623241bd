"""How much condensed rows should count when a model is trained on them."""

from __future__ import annotations

import numpy as np


def training_weights(members: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return one weight a condensed row: its members in relation to the other rows of its class.

    Within a class a row counts by the source rows behind it, since a cluster of many is worth more than a cluster of
    few. Between classes rows count alike: how much a class weighs is what the allocation decided, and weights by
    members alone would undo it, since they add up to the class's rows however many condensed rows it got.

    Parameters
    ----------
    members : ndarray of shape (k,)
        Source rows behind each condensed row.
    classes : ndarray of shape (k,)
        Its class.

    Returns
    -------
    ndarray of float64
        With a mean of 1 in every class.

    Examples
    --------
    >>> training_weights(np.array([90, 30, 5]), np.array(["a", "a", "b"])).tolist()
    [1.5, 0.5, 1.0]
    """
    _, codes = np.unique(classes, return_inverse=True)
    members = np.asarray(members, dtype=np.float64)
    means = np.bincount(codes, weights=members) / np.bincount(codes)
    return np.asarray(members / means[codes])
