"""Models around scikit-learn's classifiers: boosted trees, logistic regression and the nearest neighbour."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from c2tc_pipeline.evaluation.models.base import WrappedClassifier


class BoostingClassifier(WrappedClassifier):
    """scikit-learn's histogram gradient boosting, usable on three rows.

    By default it requires 20 rows per leaf, so that it can't split a condensed table at all, and holds rows back for
    early stopping on large tables, which a class of a single row makes impossible. Here a leaf takes one row in
    ``1 / leaf_share``, at least 1 and at most 20, and all rows are trained on.
    """

    def __init__(
        self,
        *,
        iterations: int = 100,
        learning_rate: float = 0.1,
        leaf_share: float = 0.02,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.iterations = iterations
        self.learning_rate = learning_rate
        self.leaf_share = leaf_share
        self.random_state = random_state

    def fitted(self, rows: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> Any:
        """Return the trees."""
        return HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.iterations,
            min_samples_leaf=int(np.clip(self.leaf_share * len(rows), 1, 20)),
            early_stopping=False,
            random_state=self.random_state,
        ).fit(rows, labels, weights)


class LogisticClassifier(WrappedClassifier):
    """scikit-learn's logistic regression, also for a single class."""

    dtypes = (np.float64,)

    def __init__(self, *, C: float = 1.0, iterations: int = 1000) -> None:
        self.C = C
        self.iterations = iterations

    def fitted(self, rows: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> Any:
        """Return the regression."""
        return LogisticRegression(C=self.C, max_iter=self.iterations).fit(rows, labels, weights)


class NeighbourClassifier(WrappedClassifier):
    """The class of the nearest training row, whatever its weight: weights only leave out rows of weight 0."""

    def fitted(self, rows: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> Any:
        """Return scikit-learn's search."""
        return KNeighborsClassifier(n_neighbors=1).fit(rows, labels)
