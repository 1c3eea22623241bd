"""Lightweight coresets: weighted random rows, those far from the mean more often."""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.condensation.sampler import ClassSampler, CondensedClass, centred_float32


class LightweightCoreset(ClassSampler):
    """Draw rows with a chance that grows with their distance from the class mean, and weigh them by its inverse.

    Bachem, Lucic and Krause, "Scalable k-means clustering via lightweight coresets", KDD 2018. One half of the chance
    is alike for all rows and the other goes by squared distance from the mean; a row drawn with chance q among m draws
    weighs 1 / (m q), so that weighted sums over the draws are right on average.

    Draws are independent, as in the paper, so a row can come twice. The paper has no classes: here each class is a
    coreset of its own, with a budget in proportion to its size. When all rows of a class are equal, all chances are.

    Costs two passes over the rows.

    Parameters
    ----------
    ratio : float, default=0.01
        Rows to draw as a share of the rows; every class gets at least one.
    rows : int, optional
        Rows to draw in all, instead of a ratio.
    random_state : int, default=0
        Determines the draws.

    Attributes
    ----------
    weights_ : ndarray of float
        How many source rows each row stands for; in a class they add up to its size on average.

    Examples
    --------
    >>> coreset = LightweightCoreset(rows=6, random_state=0)
    >>> X, y = coreset.fit_resample(np.arange(40.0).reshape(20, 2), np.repeat([0, 1], 10))
    >>> X.shape, bool((coreset.weights_ > 0).all())
    ((6, 2), True)
    """

    def __init__(self, ratio: float = 0.01, *, rows: int | None = None, random_state: int = 0) -> None:
        self.ratio = ratio
        self.rows = rows
        self.random_state = random_state

    def condense_class(self, X: np.ndarray, count: int, rng: np.random.Generator) -> CondensedClass:
        """Draw ``count`` rows with their weights."""
        rows = centred_float32(X)
        squares = np.einsum("ij,ij->i", rows, rows).astype(np.float64)
        total = squares.sum()
        alike = np.full(len(rows), 1 / len(rows))
        chances = alike if total == 0 else (alike + squares / total) / 2
        chosen = np.sort(rng.choice(len(rows), count, p=chances / chances.sum()))
        return CondensedClass(chosen=chosen, weights=1 / (count * chances[chosen]))
