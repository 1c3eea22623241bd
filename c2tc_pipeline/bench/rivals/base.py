"""Base classes of the rivals: samplers with ``fit_resample(X, y)``, as in imbalanced-learn."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin

from c2tc_pipeline.allocation.shares import checked_budget, proportional_counts
from c2tc_pipeline.condensation.clusters import ClassOrder
from c2tc_pipeline.condensation.sampler import (
    like_labels,
    like_rows,
    numbers_and_classes,
    refuse_one_class,
)


@dataclass(frozen=True)
class CondensedRows:
    """Rows that a sampler condensed from rows sorted by class."""

    X: np.ndarray
    codes: np.ndarray
    weights: np.ndarray | None = None
    chosen: np.ndarray | None = None


class Sampler(OneToOneFeatureMixin, BaseEstimator):
    """Base of the rivals, with the interface of imbalanced-learn's samplers.

    A subclass stores its parameters, ``ratio``, ``rows``, ``class_counts`` and ``random_state`` among them, and says in
    :meth:`condense` how rows that are sorted by class are condensed.
    """

    ratio: float
    rows: int | None
    class_counts: Sequence[int] | None
    random_state: int

    def counts(self, sizes: np.ndarray, budget: int) -> np.ndarray:
        """Return the rows of each class: ``class_counts``, or shares of the budget in proportion to the class sizes."""
        return proportional_counts(sizes, budget, sizes) if self.class_counts is None else np.asarray(self.class_counts)

    @abstractmethod
    def condense(self, X: np.ndarray, edges: np.ndarray, budget: int) -> CondensedRows:
        """Condense rows that are sorted by class.

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
        """Condense numeric rows with classes; return rows and classes of the same types as ``X`` and ``y``."""
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
    """Rows that a sampler condensed from the rows of one class: picked ones, or synthetic ones."""

    chosen: np.ndarray | None = None
    X: np.ndarray | None = None
    weights: np.ndarray | None = None


class ClassSampler(Sampler):
    """Base of samplers that condense each class by itself, to the rows that :meth:`Sampler.counts` gives it."""

    @abstractmethod
    def condense_class(self, X: np.ndarray, count: int, rng: np.random.Generator) -> CondensedClass:
        """Condense the rows of one class to ``count`` rows."""

    def condense(self, X: np.ndarray, edges: np.ndarray, budget: int) -> CondensedRows:
        sizes = np.diff(edges)
        counts = self.counts(sizes, budget)
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
    """Return rows minus their mean, in float32 and within [-1, 1], for methods that only compare distances.

    Distances between rows far from the origin, or of huge numbers, would otherwise lose precision.
    """
    centred = X - X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    largest = max(centred.max(), -centred.min())
    if largest > 0:
        centred /= largest
    return centred.astype(np.float32, copy=False)
