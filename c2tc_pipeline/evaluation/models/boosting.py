"""Gradient-boosted trees, what people most often train on tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from c2tc_pipeline.evaluation.models.base import WrappedClassifier


class BoostingClassifier(WrappedClassifier):
    """scikit-learn's histogram gradient boosting, fit for three rows.

    By default it requires 20 rows per leaf, so that it can't split a condensed table at all, and holds rows back for
    early stopping on large tables, which a class of a single row makes impossible. Here a leaf takes one row in
    ``1 / leaf_share``, at least 1 and at most 20, and all rows are trained on.

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

    def fitted(self, rows: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> Any:
        """Return the trees."""
        return HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.iterations,
            min_samples_leaf=int(np.clip(self.leaf_share * len(rows), 1, 20)),
            early_stopping=False,
            random_state=self.random_state,
        ).fit(rows, labels, weights)
