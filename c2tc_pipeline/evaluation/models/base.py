"""Shared parts of the models: sample weights, prediction, and wrapping of scikit-learn's classifiers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from c2tc_pipeline.common.errors import InputError


def checked_weights(sample_weight: Any, rows: np.ndarray) -> np.ndarray:
    """Return one weight per row, 1 by default; raise InputError for negative ones and all zeros."""
    if sample_weight is None:
        return np.ones(len(rows), dtype=rows.dtype)
    weights = np.asarray(check_array(sample_weight, ensure_2d=False, dtype=rows.dtype, input_name="sample_weight"))
    if weights.shape != (len(rows),):
        raise InputError(f"Sample weights have the shape {weights.shape}; give one for each of {len(rows)} rows.")
    if (weights < 0).any():
        raise InputError(f"Sample weight {weights.min():g} is negative; give weights of at least 0.")
    if not weights.any():
        raise InputError("All sample weights are zero, so that no row is left to learn from; give one that is above 0.")
    return weights


class ProbabilityClassifier(ClassifierMixin, BaseEstimator):
    """Base of classifiers that predict the class of the highest probability."""

    takes_original: ClassVar[bool] = False
    """Whether a model can be fitted to a DataFrame of source columns; otherwise it takes numbers only."""

    gains_from_expansion: ClassVar[bool] = True
    """Whether a model learns more from rows drawn from a condensed table than from the condensed rows themselves."""

    classes_: np.ndarray

    @abstractmethod
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class of ``classes_`` for each row."""

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])


class WrappedClassifier(ProbabilityClassifier):
    """Base of models around a classifier of scikit-learn, which is ``model_``, or None when there is one class only.

    Rows of weight 0 are left out; a single class is predicted for every row; one row is enough.
    """

    dtypes: Any = (np.float64, np.float32)
    finite: ClassVar[bool | Literal["allow-nan"]] = True
    """Whether every value has to be a finite number; ``"allow-nan"`` permits missing ones."""

    @abstractmethod
    def fitted(self, rows: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> Any:
        """Return scikit-learn's classifier, fitted to two or more classes."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to rows X of numbers, their classes y and how much each row counts."""
        rows, labels = validate_data(self, X, y, dtype=list(self.dtypes), ensure_all_finite=self.finite)
        check_classification_targets(labels)
        weights = checked_weights(sample_weight, rows)
        counted = weights > 0
        rows, labels, weights = rows[counted], labels[counted], weights[counted]
        self.classes_ = np.unique(labels)
        self.model_ = self.fitted(rows, labels, weights) if len(self.classes_) > 1 else None
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "classes_")
        rows = validate_data(self, X, reset=False, dtype=list(self.dtypes), ensure_all_finite=self.finite)
        return np.ones((len(rows), 1)) if self.model_ is None else np.asarray(self.model_.predict_proba(rows))
