"""Gradient-boosted trees, what people most often train on tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from c2tc_pipeline.evaluation.models.weights import checked_weights


class BoostingClassifier(ClassifierMixin, BaseEstimator):
    """scikit-learn's histogram gradient boosting, fit for three rows.

    Out of the box it wants 20 rows a leaf, so that it can't split a condensed table at all, and holds rows back for
    early stopping on large tables, which a class of a single row makes impossible. Here a leaf takes one row in
    ``1 / leaf_share``, at least 1 and at most 20, and all rows are trained on.

    Parameters
    ----------
    iterations : int, default=100
        Trees a class.
    learning_rate : float, default=0.1
        How much of each tree is added.
    leaf_share : float, default=0.02
        The least share of the rows in a leaf, up to 20 rows.
    random_state : int, RandomState or None, default=0
        Which rows of very large tables the bins are drawn up from.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    model_ : HistGradientBoostingClassifier or None
        The trees; None when there was one class only.

    Examples
    --------
    >>> model = BoostingClassifier().fit([[0.0], [0.2], [1.0]], ["no", "no", "yes"])
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BoostingClassifier:
        """Grow the trees.

        Parameters
        ----------
        X : array or DataFrame of shape (n, d)
            Numbers; one row is enough.
        y : array of shape (n,)
            Classes; if there is one only, it is predicted for every row.
        sample_weight : array of shape (n,), optional
            How much each row counts.

        Returns
        -------
        BoostingClassifier
            The model itself.
        """
        rows, labels = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(labels)
        weights = checked_weights(sample_weight, rows)
        counted = weights > 0
        rows, labels, weights = rows[counted], labels[counted], weights[counted]
        self.classes_ = np.unique(labels)
        self.model_ = None
        if len(self.classes_) > 1:
            self.model_ = HistGradientBoostingClassifier(
                learning_rate=self.learning_rate,
                max_iter=self.iterations,
                min_samples_leaf=int(np.clip(self.leaf_share * len(rows), 1, 20)),
                early_stopping=False,
                random_state=self.random_state,
            ).fit(rows, labels, weights)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class of ``classes_`` for each row."""
        check_is_fitted(self, "classes_")
        rows = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return np.ones((len(rows), 1)) if self.model_ is None else np.asarray(self.model_.predict_proba(rows))

    def predict(self, X: Any) -> np.ndarray:
        """Return the likeliest class of each row."""
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])
