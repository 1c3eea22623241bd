"""The nearest training row, which shows what a condensed table holds without any training."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from c2tc_pipeline.evaluation.models.base import WrappedClassifier


class NeighbourClassifier(WrappedClassifier):
    """The class of the nearest training row, whatever its weight: weights only leave out rows of weight 0.

    Examples
    --------
    >>> model = NeighbourClassifier().fit([[0.0], [0.2], [1.0]], ["no", "no", "yes"])
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    def fitted(self, rows: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> Any:
        """Return scikit-learn's search."""
        return KNeighborsClassifier(n_neighbors=1).fit(rows, labels)
