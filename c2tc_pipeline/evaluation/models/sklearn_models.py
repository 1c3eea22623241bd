"""Models around scikit-learn's classifiers: boosted trees, logistic regression and the nearest neighbour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from c2tc_pipeline.evaluation.models.base import WrappedClassifier
from c2tc_pipeline.evaluation.models.trees import PATIENCE, Rows, TreesClassifier, rows_of_a_leaf


@dataclass(kw_only=True, eq=False, repr=False)
class BoostingClassifier(TreesClassifier):
    """scikit-learn's histogram gradient boosting, from one row to a million, also with classes of very few rows.

    Without a penalty on leaves, a class of a few rows has leaves of almost no second derivative, whose values grow
    without bounds. Without early stopping, later trees make it worse. ``penalty`` is scikit-learn's
    ``l2_regularization``. A leaf takes one row in ``1 / leaf_share``, at least 1 and at most 20. Training stops after
    ten trees that do not improve on the rows of :func:`~c2tc_pipeline.evaluation.models.trees.rows_kept_aside`, if any.

    Settings were chosen on validation rows of five tables, see docs/method.md.
    """

    iterations: int = 200
    learning_rate: float = 0.1
    leaf_share: float = 0.02
    penalty: float = 10.0
    random_state: int | np.random.RandomState | None = 0

    def fitted_trees(self, training: Rows, aside: Rows | None, categories: np.ndarray | None) -> Any:
        trees = HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.iterations,
            min_samples_leaf=rows_of_a_leaf(len(training.labels), self.leaf_share),
            l2_regularization=self.penalty,
            categorical_features=categories,
            early_stopping=aside is not None,
            n_iter_no_change=PATIENCE,
            random_state=self.random_state,
        )
        empty = np.isnan(training.X).all(axis=0)
        if empty.any():
            # scikit-learn fails on a column without a value; one with a single value is never split at.
            training = training._replace(X=np.where(empty, 0, training.X))
        if aside is None:
            return trees.fit(*training)
        return trees.fit(*training, X_val=aside.X, y_val=aside.labels, sample_weight_val=aside.weights)


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticClassifier(WrappedClassifier):
    """scikit-learn's logistic regression, also for a single class."""

    dtypes = (np.float64,)

    C: float = 1.0
    iterations: int = 1000

    def fitted(self, rows: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> Any:
        return LogisticRegression(C=self.C, max_iter=self.iterations).fit(rows, labels, weights)


class NeighbourClassifier(WrappedClassifier):
    """The class of the nearest training row, whatever its weight: weights only leave out rows of weight 0."""

    gains_from_expansion = False

    def fitted(self, rows: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> Any:
        return KNeighborsClassifier(n_neighbors=1).fit(rows, labels)
