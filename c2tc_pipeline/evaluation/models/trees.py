"""Base of boosted trees: source columns with native categories, and rows kept aside for early stopping."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from c2tc_pipeline.evaluation.models.base import WrappedClassifier
from c2tc_pipeline.evaluation.models.native_columns import NativeColumns

PATIENCE = 10
"""Trees without an improvement after which training stops."""

# Fewer rows are all trained on, and so are all rows of a class that has fewer than the second number.
_MIN_ROWS = 1_000
_MIN_CLASS_ROWS = 20
_SHARE_ASIDE = 0.1


class Rows(NamedTuple):
    """Rows of numbers, their classes and weights."""

    X: np.ndarray
    labels: np.ndarray
    weights: np.ndarray


class TreesClassifier(WrappedClassifier):
    """Base of boosted trees, which also take a DataFrame of source columns and missing values.

    Columns that are not NumPy numbers go through :class:`NativeColumns`, fitted to the training rows.
    """

    takes_original = True
    finite = "allow-nan"

    random_state: int | np.random.RandomState | None

    @abstractmethod
    def fitted_trees(self, training: Rows, aside: Rows | None, categories: np.ndarray | None) -> Any:
        """Return trees fitted to two or more classes.

        ``aside`` has the rows that decide when to stop, if any; ``categories`` says which columns are category codes.
        """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to rows X, numbers or source columns, their classes y and how much each row counts."""
        self.columns_ = None
        if has_source_columns(X):
            counted = X
            if sample_weight is not None and np.shape(sample_weight) == (len(X),):
                counted = X.loc[np.asarray(sample_weight) > 0]
            self.columns_ = NativeColumns().fit(counted if len(counted) else X)
        return super().fit(self._numbers(X), y, sample_weight)

    def fitted(self, rows: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> Any:
        """Keep rows aside where there are enough, and fit the trees to the others."""
        categories = None
        if self.columns_ is not None and self.columns_.is_category_.any():
            categories = self.columns_.is_category_
        aside = rows_kept_aside(labels, self.random_state)
        if not aside.any():
            return self.fitted_trees(Rows(rows, labels, weights), None, categories)
        training, kept = (Rows(rows[which], labels[which], weights[which]) for which in (~aside, aside))
        return self.fitted_trees(training, kept, categories)

    def predict_proba(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "classes_")
        return super().predict_proba(self._numbers(X))

    def _numbers(self, X: Any) -> Any:
        return X if self.columns_ is None else self.columns_.transform(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def has_source_columns(X: Any) -> bool:
    """Whether rows are a DataFrame with a column that is not of NumPy numbers."""
    return isinstance(X, pd.DataFrame) and any(
        not isinstance(dtype, np.dtype) or dtype.kind not in "biuf" for dtype in X.dtypes
    )


def rows_kept_aside(labels: np.ndarray, random_state: int | np.random.RandomState | None) -> np.ndarray:
    """Return a mask of rows for early stopping: a random tenth of each class of 20 rows or more.

    A smaller class is trained on whole. Of fewer than 1,000 rows none is kept aside.
    """
    aside = np.zeros(len(labels), dtype=bool)
    if len(labels) < _MIN_ROWS:
        return aside
    random = check_random_state(random_state)
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    # Rows in random order, sorted by class: the first of each class are kept aside.
    order = random.permutation(len(labels))
    order = order[np.argsort(codes[order], kind="stable")]
    place_in_class = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = np.where(counts >= _MIN_CLASS_ROWS, (counts * _SHARE_ASIDE).astype(np.int64), 0)
    aside[order[place_in_class < np.repeat(kept, counts)]] = True
    return aside


def rows_of_a_leaf(rows: int, share: float) -> int:
    """Return the minimum rows of a leaf: a share of all, from 1 to 20, so that a few rows can be split too."""
    return int(np.clip(share * rows, 1, 20))
