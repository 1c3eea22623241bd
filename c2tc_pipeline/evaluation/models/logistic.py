"""Logistic regression, the plainest model that people really run."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from c2tc_pipeline.evaluation.models.weights import checked_weights


class LogisticClassifier(ClassifierMixin, BaseEstimator):
    """scikit-learn's logistic regression, fit for one class.

    Parameters
    ----------
    C : float, default=1.0
        How freely coefficients may grow; as in scikit-learn, against the sum of the losses of all rows, so that more
        rows, or heavier ones, are followed more closely.
    iterations : int, default=1000
        Steps of the solver at most.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    model_ : LogisticRegression or None
        The regression; None when there was one class only.

    Examples
    --------
    >>> model = LogisticClassifier(C=100.0).fit([[0.0], [0.2], [1.0]], ["no", "no", "yes"])
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    def __init__(self, *, C: float = 1.0, iterations: int = 1000) -> None:
        self.C = C
        self.iterations = iterations

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticClassifier:
        """Find the coefficients.

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
        LogisticClassifier
            The model itself.
        """
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        weights = checked_weights(sample_weight, rows)
        counted = weights > 0
        self.classes_ = np.unique(labels[counted])
        self.model_ = None
        if len(self.classes_) > 1:
            self.model_ = LogisticRegression(C=self.C, max_iter=self.iterations).fit(
                rows[counted], labels[counted], weights[counted]
            )
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class of ``classes_`` for each row."""
        check_is_fitted(self, "classes_")
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        return np.ones((len(rows), 1)) if self.model_ is None else np.asarray(self.model_.predict_proba(rows))

    def predict(self, X: Any) -> np.ndarray:
        """Return the likeliest class of each row."""
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])
