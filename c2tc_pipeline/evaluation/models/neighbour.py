"""The nearest training row, which shows what a condensed table holds without any training."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from c2tc_pipeline.evaluation.models.weights import checked_weights


class NeighbourClassifier(ClassifierMixin, BaseEstimator):
    """The class of the nearest training row.

    The nearest row is the nearest whatever it weighs: weights only decide which rows there are, those above 0.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    model_ : KNeighborsClassifier
        scikit-learn's search.

    Examples
    --------
    >>> model = NeighbourClassifier().fit([[0.0], [0.2], [1.0]], ["no", "no", "yes"])
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NeighbourClassifier:
        """Keep the rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n, d)
            Numbers; one row is enough.
        y : array of shape (n,)
            Classes.
        sample_weight : array of shape (n,), optional
            Rows of weight 0 are left out; other weights change nothing.

        Returns
        -------
        NeighbourClassifier
            The model itself.
        """
        rows, labels = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(labels)
        counted = checked_weights(sample_weight, rows) > 0
        self.model_ = KNeighborsClassifier(n_neighbors=1).fit(rows[counted], labels[counted])
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return 1 for the nearest row's class and 0 for the others, in the order of ``classes_``."""
        check_is_fitted(self, "model_")
        rows = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return np.asarray(self.model_.predict_proba(rows))

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of the nearest training row."""
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])
