"""Input checks of samplers: numbers and classes in, results in the same types out."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from c2tc_pipeline.allocation.shares import budget_for_ratio
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.clusters import ClassOrder


def checked_budget(ratio: float, rows: int | None, n: int, classes: int) -> int:
    """Return how many condensed rows there will be, and refuse what can't be."""
    if rows is None:
        return budget_for_ratio(ratio, n, classes)
    if not isinstance(rows, Integral) or not classes <= rows <= n:
        raise InputError(
            f"A budget of {rows} condensed rows does not fit: it must be an integer, at least "
            f"{classes}, the number of classes, and at most {n}, the number of rows."
        )
    return int(rows)


def refuse_one_class(by_class: ClassOrder) -> None:
    """Raise an InputError when there is nothing to tell apart."""
    if len(by_class.classes) < 2:
        only = by_class.classes[0]
        raise InputError(f"The label has one class only ({only!r}); condensing needs at least 2 classes.")


def numbers_and_classes(sampler: BaseEstimator, X: Any, y: Any, *, fitting: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels as arrays, and refuse what is no number or no class."""
    try:
        rows, labels = validate_data(sampler, X, y, reset=fitting, dtype=[np.float64, np.float32], order="C")
    except ValueError as error:
        if isinstance(X, pd.DataFrame) and any(not pd.api.types.is_numeric_dtype(dtype) for dtype in X.dtypes):
            text = next(name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name]))
            raise InputError(
                f"Column {text!r} does not hold numbers; encode the table with HybridEncoder first, or call condense()."
            ) from None
        raise error
    check_classification_targets(labels)
    return rows, labels


def like_rows(X: Any, condensed: np.ndarray) -> Any:
    """Return condensed rows in the type that the rows came in."""
    if isinstance(X, pd.DataFrame):
        return pd.DataFrame(condensed, columns=X.columns)
    return condensed.tolist() if isinstance(X, list) else condensed


def like_labels(y: Any, condensed: np.ndarray) -> Any:
    """Return condensed labels in the type that the labels came in."""
    if isinstance(y, pd.Series):
        return pd.Series(condensed, name=y.name).astype(y.dtype)
    if isinstance(y, pd.DataFrame):
        return pd.DataFrame(condensed, columns=y.columns).astype(y.dtypes)
    return condensed.tolist() if isinstance(y, list) else condensed
