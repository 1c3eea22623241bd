"""Input checks of samplers: numbers and classes in, results in the same types out; and their tags."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import InputTags, Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.clusters import ClassOrder


def refuse_one_class(by_class: ClassOrder) -> None:
    """Raise InputError if all rows are of one class."""
    if len(by_class.classes) < 2:
        only = by_class.classes[0]
        raise InputError(f"The label has one class only ({only!r}); condensing needs at least 2 classes.")


def numbers_and_classes(sampler: BaseEstimator, X: Any, y: Any, *, fitting: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels as arrays; raise InputError unless they hold numbers and classes.

    Sparse columns of a DataFrame become dense, and labels that are one-hot become the numbers of their columns.
    """
    if np.ndim(y) == 2 and np.shape(y)[1] > 1:
        one_hot = np.asarray(y)
        if not (np.isin(one_hot, (0, 1)).all() and (one_hot.sum(axis=1) == 1).all()):
            raise InputError("Multilabel and multioutput targets are not supported; give one class for each row.")
        y = one_hot.argmax(axis=1)
    if isinstance(X, pd.DataFrame) and any(isinstance(dtype, pd.SparseDtype) for dtype in X.dtypes):
        X = X.astype({name: dtype.subtype for name, dtype in X.dtypes.items() if isinstance(dtype, pd.SparseDtype)})
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
        sparse = {name: dtype for name, dtype in X.dtypes.items() if isinstance(dtype, pd.SparseDtype)}
        return pd.DataFrame(condensed, columns=X.columns).astype(sparse)
    return condensed.tolist() if isinstance(X, list) else condensed


def like_labels(y: Any, condensed: np.ndarray) -> Any:
    """Return condensed labels in the type that the labels came in."""
    if np.ndim(y) == 2 and np.shape(y)[1] > 1:
        condensed = np.eye(np.shape(y)[1], dtype=getattr(y, "dtype", np.int64))[condensed]
    if isinstance(y, pd.Series):
        return pd.Series(condensed, name=y.name).astype(y.dtype)
    if isinstance(y, pd.DataFrame):
        return pd.DataFrame(condensed, columns=y.columns).astype(y.dtypes)
    return condensed.tolist() if isinstance(y, list) else condensed


@dataclass(slots=True)
class SamplerTags:
    """Tags of imbalanced-learn's samplers beside scikit-learn's tags."""

    sample_indices: bool = True


@dataclass(slots=True)
class SamplerInputTags(InputTags):
    """Input tags that say whether a sampler takes DataFrames."""

    dataframe: bool = True


@dataclass(slots=True)
class TagsOfSampler(Tags):
    """Tags of an estimator, with those that imbalanced-learn reads: its own, without the need to install it."""

    sampler_tags: SamplerTags = field(default_factory=SamplerTags)

    @classmethod
    def of(cls, tags: Tags) -> TagsOfSampler:
        """Return the tags of a sampler that needs classes, given its tags as an estimator."""
        values = {each.name: getattr(tags, each.name) for each in fields(Tags)}
        found = cls(**{**values, "input_tags": SamplerInputTags()})
        found.target_tags.required = True
        return found
