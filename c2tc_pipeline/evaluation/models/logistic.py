"""Logistic regression, the plainest model that people really use."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from c2tc_pipeline.evaluation.models.base import WrappedClassifier


class LogisticClassifier(WrappedClassifier):
    """scikit-learn's logistic regression, also for a single class.

    Examples
    --------
    >>> model = LogisticClassifier(C=100.0).fit([[0.0], [0.2], [1.0]], ["no", "no", "yes"])
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    dtypes = (np.float64,)

    def __init__(self, *, C: float = 1.0, iterations: int = 1000) -> None:
        self.C = C
        self.iterations = iterations

    def fitted(self, rows: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> Any:
        """Return the regression."""
        return LogisticRegression(C=self.C, max_iter=self.iterations).fit(rows, labels, weights)
