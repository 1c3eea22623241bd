"""What every way to condense rows shares: ``fit_resample(X, y)`` with a ratio or a number of rows.

What belongs here: checking what comes in, sorting it by class, and giving back what came in the same types. What does
not: how rows are condensed, which is what subclasses are for.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from c2tc_pipeline.allocation.shares import budget_for_ratio, proportional_counts
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.clusters import ClassOrder


@dataclass(frozen=True)
class CondensedRows:
    """What a sampler made of rows that are in the order of their classes."""

    X: np.ndarray
    codes: np.ndarray
    weights: np.ndarray | None = None
    chosen: np.ndarray | None = None


class Sampler(OneToOneFeatureMixin, BaseEstimator):
    """Base of everything that makes few rows of many, with the interface of imbalanced-learn's samplers.

    A subclass stores its parameters, ``ratio``, ``rows`` and ``random_state`` among them, and says in :meth:`condense`
    how rows that are sorted by class are condensed.
    """

    ratio: float
    rows: int | None
    random_state: int

    @abstractmethod
    def condense(self, X: np.ndarray, edges: np.ndarray, budget: int) -> CondensedRows:
        """Condense rows that are in the order of their classes.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Float rows; those of class c are ``X[edges[c]:edges[c + 1]]``. Not to be changed.
        edges : ndarray of int of shape (classes + 1,)
            Where each class begins, and the end.
        budget : int
            Condensed rows in all, from the number of classes to n.
        """

    def fit(self, X: Any, y: Any) -> Sampler:
        """Condense rows and keep the fitted attributes only; see :meth:`fit_resample`."""
        self.fit_resample(X, y)
        return self

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Condense rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n, d)
            Numbers without gaps.
        y : array or Series of shape (n,)
            Classes.

        Returns
        -------
        X_condensed, y_condensed
            Of the same types as ``X`` and ``y``.
        """
        rows, labels = numbers_and_classes(self, X, y, fitting=True)
        by_class = ClassOrder.of(labels)
        refuse_one_class(by_class)
        budget = checked_budget(self.ratio, self.rows, len(rows), len(by_class.classes))
        made = self.condense(np.ascontiguousarray(rows[by_class.order]), by_class.edges, budget)
        self.classes_ = by_class.classes
        self.counts_ = np.bincount(made.codes, minlength=len(by_class.classes))
        self.weights_ = made.weights
        self.sample_indices_ = None if made.chosen is None else by_class.order[made.chosen]
        return like_rows(X, made.X), like_labels(y, by_class.classes[made.codes])


@dataclass(frozen=True)
class CondensedClass:
    """What a sampler made of the rows of one class: rows it picked, or rows it made."""

    chosen: np.ndarray | None = None
    X: np.ndarray | None = None
    weights: np.ndarray | None = None


class ClassSampler(Sampler):
    """Base of samplers that condense each class by itself, in proportion to its size.

    Counts are those of :func:`~c2tc_pipeline.allocation.proportional_counts`: at least one row a class, the sum exact.
    """

    @abstractmethod
    def condense_class(self, X: np.ndarray, count: int, rng: np.random.Generator) -> CondensedClass:
        """Condense the rows of one class to ``count`` rows."""

    def condense(self, X: np.ndarray, edges: np.ndarray, budget: int) -> CondensedRows:
        """Condense each class to its share of the budget; see :meth:`Sampler.condense`."""
        sizes = np.diff(edges)
        counts = proportional_counts(sizes, budget, sizes)
        made, chosen = [], []
        for number, (start, end) in enumerate(itertools.pairwise(edges)):
            rng = np.random.default_rng([self.random_state, number])
            made.append(self.condense_class(X[start:end], int(counts[number]), rng))
            if made[-1].chosen is not None:
                chosen.append(start + made[-1].chosen)
        weights = [part.weights for part in made if part.weights is not None]
        positions = np.concatenate(chosen) if chosen else None
        return CondensedRows(
            X=np.vstack([part.X for part in made if part.X is not None]) if positions is None else X[positions],
            codes=np.repeat(np.arange(len(counts)), counts),
            weights=np.concatenate(weights) if weights else None,
            chosen=positions,
        )


def centred_float32(X: np.ndarray) -> np.ndarray:
    """Return rows around their mean, in float32 and within [-1, 1], for methods that only compare distances.

    Distances between rows far from the origin, or of huge numbers, would otherwise drown in rounding.

    Examples
    --------
    >>> centred_float32(np.array([[1e30], [3e30]])).ravel().tolist()
    [-1.0, 1.0]
    """
    centred = X - X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    largest = max(centred.max(), -centred.min())
    if largest > 0:
        centred /= largest
    return centred.astype(np.float32, copy=False)


def checked_budget(ratio: float, rows: int | None, n: int, classes: int) -> int:
    """Return how many condensed rows there will be, and refuse what can't be.

    Examples
    --------
    >>> checked_budget(0.01, None, 1000, 2), checked_budget(0.01, 30, 1000, 2)
    (10, 30)
    """
    if rows is None:
        return budget_for_ratio(ratio, n, classes)
    if not isinstance(rows, Integral) or not classes <= rows <= n:
        raise InputError(
            f"A budget of {rows} condensed rows does not fit: it must be a whole number, at least "
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
