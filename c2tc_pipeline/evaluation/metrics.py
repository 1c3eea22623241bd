"""Metrics of predictions: accuracy, and F1 class by class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Scores:
    """How well classes were predicted.

    Parameters
    ----------
    accuracy : float
        Share of rows whose class was found.
    macro_f1 : float
        Mean of F1 over the classes that the rows have; a class that is predicted but has no row counts only through
        the errors it makes.
    class_f1 : tuple of float or None
        F1 of each class, in order; None for a class that no row has.
    """

    accuracy: float
    macro_f1: float
    class_f1: tuple[float | None, ...]


def score_predictions(truth: np.ndarray, predicted: np.ndarray, classes: int) -> Scores:
    """Compare class numbers.

    Parameters
    ----------
    truth, predicted : ndarray of int of shape (n,)
        Class numbers, n at least 1.
    classes : int
        How many classes there are; numbers from there on are classes that no model can know.

    Returns
    -------
    Scores

    Examples
    --------
    >>> score_predictions(np.array([0, 0, 1]), np.array([0, 1, 1]), 3)
    Scores(accuracy=0.666..., macro_f1=0.666..., class_f1=(0.666..., 0.666..., None))
    """
    size = max(classes, int(truth.max()) + 1, int(predicted.max()) + 1)
    rows = np.bincount(truth, minlength=size)
    found = np.bincount(truth[truth == predicted], minlength=size)
    named = np.bincount(predicted, minlength=size)
    # A class with rows makes rows + named positive, so that its F1 is always defined.
    f1 = [
        2 * hits / (have + said) if have else None
        for hits, have, said in zip(*map(np.ndarray.tolist, (found, rows, named)), strict=True)
    ]
    return Scores(
        accuracy=float(found.sum() / rows.sum()),
        macro_f1=float(np.mean([value for value in f1 if value is not None])),
        class_f1=tuple(f1[:classes]),
    )
