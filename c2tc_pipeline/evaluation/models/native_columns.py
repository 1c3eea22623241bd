"""Source columns as numbers and category codes, for tree models with native categories."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.kinds import Kind, column_kind, to_numbers, to_text

_SECONDS_OF_A_DAY = 86_400.0
# Larger numbers, infinite ones among them, become this: trees only need their order.
_LARGEST = 1e300


class NativeColumns(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Transformer of source columns to floats: numbers as they are, dates as days, categories as integer codes.

    Strings, categories and mixed values become codes from 0, the most frequent value first, equally frequent ones in
    alphabetical order. Rarer values than the ``max_categories`` most frequent ones, and values that were not fitted,
    share the code after the last. Missing values become NaN. Dates and durations become days, booleans 0 and 1.

    Parameters
    ----------
    max_categories : int, default=254
        Codes of a column, without the one for other values; scikit-learn's boosting takes 255.

    Attributes
    ----------
    categories_ : list of Index or None
        The values of each category column in the order of their codes; None for a column of numbers.
    is_category_ : ndarray of bool
        Whether each column has category codes.

    Examples
    --------
    >>> frame = pd.DataFrame({"city": ["Bonn", "Rome", "Bonn", None], "height": [60, 20, 61, 62]})
    >>> columns = NativeColumns().fit(frame)
    >>> columns.transform(frame)["city"].tolist()
    [0.0, 1.0, 0.0, nan]
    >>> columns.transform(pd.DataFrame({"city": ["Oslo"], "height": [None]})).values.tolist()
    [[2.0, nan]]
    """

    def __init__(self, max_categories: int = 254) -> None:
        self.max_categories = max_categories

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the kind of each column and the categories of a DataFrame."""
        frame = self._frame(X, reset=True)
        kinds = [column_kind(frame.iloc[:, place]) for place in range(frame.shape[1])]
        self.is_category_ = np.array(
            [
                isinstance(dtype, pd.CategoricalDtype) or kind in (Kind.TEXT, Kind.MIXED)
                for dtype, kind in zip(frame.dtypes, kinds, strict=True)
            ]
        )
        self.is_time_ = np.array([kind in (Kind.MOMENT, Kind.DURATION) for kind in kinds]) & ~self.is_category_
        self.categories_ = [
            self._most_frequent(frame.iloc[:, place]) if category else None
            for place, category in enumerate(self.is_category_)
        ]
        return self

    def transform(self, X: Any) -> pd.DataFrame:
        """Return a DataFrame of float64 with the same columns."""
        check_is_fitted(self, "categories_")
        frame = self._frame(X, reset=False)
        values = np.empty(frame.shape, dtype=np.float64)
        for place, categories in enumerate(self.categories_):
            column = frame.iloc[:, place]
            if categories is not None:
                values[:, place] = _codes(to_text(column), categories)
                continue
            numbers = to_numbers(column).values.to_numpy(dtype=np.float64, na_value=np.nan)
            values[:, place] = numbers / _SECONDS_OF_A_DAY if self.is_time_[place] else numbers
        return pd.DataFrame(np.clip(values, -_LARGEST, _LARGEST), index=frame.index, columns=frame.columns)

    def _frame(self, X: Any, *, reset: bool) -> pd.DataFrame:
        if not isinstance(X, pd.DataFrame):
            raise InputError(f"Source columns are expected as a DataFrame, not as {type(X).__name__}.")
        checked: pd.DataFrame = validate_data(self, X, reset=reset, skip_check_array=True)
        return checked

    def _most_frequent(self, column: pd.Series[Any]) -> pd.Index[Any]:
        counts = to_text(column).value_counts().sort_index().sort_values(ascending=False, kind="stable")
        return counts.index[: self.max_categories]


def _codes(text: pd.Series[Any], categories: pd.Index[Any]) -> np.ndarray:
    codes = categories.get_indexer(pd.Index(text)).astype(np.float64)
    codes[codes < 0] = len(categories)
    codes[text.isna().to_numpy()] = np.nan
    return codes
