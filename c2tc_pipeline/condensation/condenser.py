"""The condenser as a scikit-learn sampler: ``fit_resample(X, y)``, as in imbalanced-learn."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from c2tc_pipeline.allocation import Allocator
from c2tc_pipeline.allocation.shares import checked_budget
from c2tc_pipeline.clustering.rows import RowSource
from c2tc_pipeline.common.defaults import (
    REPRESENTATIVES,
    check_choice,
    check_column_weights,
    check_min_rows,
)
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.seeds import RandomStateLike, generator_of, seed_of
from c2tc_pipeline.common.stages import Listener, StageClock
from c2tc_pipeline.condensation.clusters import (
    ClassOrder,
    Clusters,
    SingletonWarning,
    cluster_classes,
    singleton_message,
)
from c2tc_pipeline.condensation.column_weights import choose_weights
from c2tc_pipeline.condensation.encoded import EncodedRows
from c2tc_pipeline.condensation.expand import check_expansion, default_rows, draw_encoded, rows_to_draw
from c2tc_pipeline.condensation.plan import (
    AllocationPlan,
    ClusterSettings,
    check_room,
    plan_allocation,
)
from c2tc_pipeline.condensation.sampler import (
    TagsOfSampler,
    like_labels,
    like_rows,
    numbers_and_classes,
    refuse_one_class,
)
from c2tc_pipeline.condensation.spread import measure_spread
from c2tc_pipeline.condensation.table import training_weights
from c2tc_pipeline.storage.cache import ContentCache


class Condenser(OneToOneFeatureMixin, BaseEstimator):
    """Condense numeric rows class by class: allocate a budget of rows over the classes, then cluster each class.

    For tables with strings, codes and missing values put :class:`~c2tc_pipeline.HybridEncoder` before it, or call
    :func:`~c2tc_pipeline.condense`, which does both.

    Parameters
    ----------
    ratio : float, default=0.01
        Condensed rows as a share of the rows; every class gets at least one.
    rows : int, optional
        Condensed rows in all, instead of a ratio.
    allocation : {"hfils", "optimal", "ratio", "fipc"} or Allocator, default="hfils"
        How the budget is split over the classes.
    gamma : float or "auto", default=0.25
        Exponent of class sizes in the objective, from 0 (large classes dominate) to 1 (classes count alike). ``"auto"``
        is chosen on rows kept aside.
    representative : {"centroid", "medoid"}, default="centroid"
        Whether a condensed row is the mean of its cluster or the real row next to it.
    min_rows_per_condensed_row : int, default=1
        Minimum number of source rows behind every condensed row; 1 with ``"medoid"``, whose rows are real ones.
    column_weights : {"auto", "none"} or mapping of str to float, default="auto"
        How much columns count in distances: ``"auto"`` by their importance for the label, raised to a power that is
        chosen on rows kept aside; or weights of columns by name (``x0``, ``x1``, ... for an array), 1 for the others.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where k-means runs.
    engine : str, default="local"
        Where curves and clusters are computed: in this process, or on a Dask cluster by the address of its scheduler,
        such as ``"dask://host:8786"``. The result is the same.
    cache_dir : path, optional
        Where loss curves are kept, under the hash of what determines them.
    random_state : int, Generator, RandomState or None, default=0
        Determines everything random; the same integer gives the same rows.

    Attributes
    ----------
    sampling_strategy_ : dict
        Condensed rows of each class.
    allocation_ : Allocation
        Condensed rows per class, in the order of ``classes_``, with objective, bound and trace.
    weights_ : ndarray of int
        How many source rows stand behind each condensed row.
    training_weights_ : ndarray of float
        How much each condensed row should count in training; see :mod:`c2tc_pipeline.condensation.table`.
    membership_ : ndarray of int
        The condensed row of each source row.
    classes_ : ndarray
        The classes, sorted.
    curves_ : list of LossCurve
        The loss curve of each class.
    sample_indices_ : ndarray of int
        The source row next to each condensed row; with ``"medoid"`` it is the condensed row.
    column_weights_ : ColumnWeights or None
        Weights of the columns in distances, with importance and power.
    repeats_ : ndarray of bool
        Whether each condensed row equals a source row behind it.
    spread_ : Spread
        Deviations and correlations of the source rows behind the condensed rows; :meth:`expand` draws from them.

    See Also
    --------
    condense : Condense a table with strings, codes and missing values.
    HybridEncoder : Makes numbers of mixed columns, before the condenser in a pipeline.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(1000, weights=[0.9], random_state=0)
    >>> condenser = Condenser(ratio=0.02, random_state=0)
    >>> X_small, y_small = condenser.fit_resample(X, y)
    >>> X_small.shape, int(condenser.weights_.sum())
    ((20, 20), 1000)
    """

    def __init__(
        self,
        ratio: float = 0.01,
        *,
        rows: int | None = None,
        allocation: str | Allocator = "hfils",
        gamma: float | str = 0.25,
        representative: str = "centroid",
        min_rows_per_condensed_row: int = 1,
        column_weights: str | Mapping[str, float] = "auto",
        device: str = "auto",
        engine: str = "local",
        cache_dir: str | Path | None = None,
        random_state: RandomStateLike = 0,
    ) -> None:
        self.ratio = ratio
        self.rows = rows
        self.allocation = allocation
        self.gamma = gamma
        self.representative = representative
        self.min_rows_per_condensed_row = min_rows_per_condensed_row
        self.column_weights = column_weights
        self.device = device
        self.engine = engine
        self.cache_dir = cache_dir
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Condenser:
        """Condense rows and keep the fitted attributes only; see :meth:`fit_resample`."""
        self.fit_resample(X, y)
        return self

    def fit_resample(
        self, X: Any, y: Any, *, validation: tuple[Any, Any] | None = None, listener: Listener | None = None
    ) -> tuple[Any, Any]:
        """Condense rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n, d)
            Numbers without gaps.
        y : array or Series of shape (n,) or (n, classes)
            Classes, or a column of zeros and ones for each class.
        validation : tuple of (X, y), optional
            Rows on which ``gamma="auto"`` is chosen.
        listener : callable, optional
            Called with the stage, the steps done and the steps in all.

        Returns
        -------
        X_condensed, y_condensed
            Of the same types as ``X`` and ``y``.
        """
        rows, labels = numbers_and_classes(self, X, y, fitting=True)
        by_class = ClassOrder.of(labels)
        refuse_one_class(by_class)
        seeded = copy.copy(self)
        seeded.random_state = seed = seed_of(self.random_state)
        seeded.check_classes(by_class.classes, np.diff(by_class.edges))
        # Distances between rows far from the origin lose precision, so the mean is subtracted.
        middle = rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)
        centred = rows[by_class.order]
        centred -= middle
        held = None if validation is None else _known_classes(self, *validation, by_class.classes)
        if held is not None:
            held = held[0] - middle, held[1]
        clock = StageClock(listener)
        names = tuple(str(value) for value in by_class.classes)
        columns = [str(name) for name in getattr(self, "feature_names_in_", map("x{}".format, range(rows.shape[1])))]
        weights = choose_weights(
            RowSource.of(centred),
            by_class.edges,
            [[name] for name in columns],
            self.column_weights,
            validation=held,
            seed=seed,
        )
        encoded = EncodedRows(centred, by_class.edges, (), names, held, weights=weights)
        plan = seeded.plan(encoded, clock=clock)
        clusters = seeded.cluster(encoded, plan, clock=clock)
        self.plan_ = plan
        self.column_weights_ = weights
        self.allocation_ = clusters.allocation
        self.curves_ = plan.measured
        self.classes_ = by_class.classes
        self.sampling_strategy_ = dict(zip(by_class.classes.tolist(), clusters.allocation.counts, strict=True))
        self.weights_ = clusters.weights
        self.training_weights_ = training_weights(clusters.weights, clusters.codes)
        self.membership_ = np.empty(len(by_class.order), dtype=np.int32)
        self.membership_[by_class.order] = clusters.labels
        self.sample_indices_ = by_class.order[clusters.nearest]
        self.repeats_ = clusters.repeats(encoded.rows) | (self.representative == "medoid")
        least = self.min_rows_per_condensed_row
        spread = measure_spread(encoded.rows, by_class.edges, clusters.labels, clusters.centers, least)
        gaps = [own + shift for own, shift in zip(spread.gaps, middle, strict=True)]
        self.spread_ = replace(spread, gaps=gaps)
        centers = clusters.centers + middle
        self.means_, self.limits_ = centers, (rows.min(axis=0), rows.max(axis=0))
        self._like = X[:0], y[:0]
        condensed_labels = by_class.classes[clusters.codes]
        if clusters.singletons:
            warnings.warn(singleton_message(clusters.singletons, len(centers)), SingletonWarning, stacklevel=2)
        if self.representative == "medoid":
            centers = rows[self.sample_indices_]
        return like_rows(X, centers), like_labels(y, condensed_labels)

    def expand(
        self,
        rows: int | None = None,
        *,
        class_mix: str = "condensed",
        random_state: RandomStateLike = 0,
    ) -> tuple[Any, Any, np.ndarray]:
        """Draw training rows from the condensed rows and their spread, within the limits of the columns.

        Parameters
        ----------
        rows : int, optional
            How many rows to draw; by default 20,000, or ten for each condensed row if that is more, but not more
            than were condensed.
        class_mix : {"condensed", "source"}, default="condensed"
            Class shares: as in the condensed rows with their ``training_weights_``, or as in the source.
        random_state : int, Generator, RandomState or None, default=0
            The same integer gives the same rows.

        Returns
        -------
        X, y, weight
            Rows and labels of the types that were fitted, and how much each row counts, 1 on average.
        """
        check_is_fitted(self, "spread_")
        rows = default_rows(self.weights_) if rows is None else rows
        check_expansion(rows, "encoded", class_mix)
        random = generator_of(random_state)
        codes = np.repeat(np.arange(len(self.classes_)), self.allocation_.counts)
        weights = self.weights_ if class_mix == "source" else self.training_weights_
        drawn, weight = rows_to_draw(weights, codes, rows, random)
        X = draw_encoded(self.means_, self.spread_, codes, drawn, random, limits=self.limits_)
        like_X, like_y = self._like
        return like_rows(like_X, X), like_labels(like_y, self.classes_[codes[drawn]]), weight

    def plan(self, encoded: EncodedRows, *, clock: StageClock) -> AllocationPlan:
        """Decide how many condensed rows each class gets."""
        settings = self.check(len(encoded.X), len(encoded.classes))
        cache = None if self.cache_dir is None else ContentCache(self.cache_dir)
        (rows, origin), held = encoded.weighted_rows.centred(), encoded.weighted_validation
        held = None if held is None else (held[0] - origin, held[1])
        return plan_allocation(rows, encoded.edges, settings, validation=held, cache=cache, clock=clock)

    def cluster(self, encoded: EncodedRows, plan: AllocationPlan, *, clock: StageClock) -> Clusters:
        """Cluster each class as planned."""
        settings = self.check(len(encoded.X), len(encoded.classes))
        rows, origin = encoded.weighted_rows.centred()
        clusters = cluster_classes(rows, encoded.edges, plan, settings, clock=clock)
        if encoded.weights is None or encoded.weights.are_equal:
            return replace(clusters, centers=clusters.centers + origin)
        return clusters.with_means_of(encoded.rows)

    def check(self, n: int, n_classes: int) -> ClusterSettings:
        """Return the settings for this number of rows and classes; raise InputError if they can't be used."""
        check_choice("Representative", self.representative, REPRESENTATIVES)
        check_min_rows(self.min_rows_per_condensed_row, self.representative)
        check_column_weights(self.column_weights)
        return ClusterSettings(
            budget=checked_budget(self.ratio, self.rows, n, n_classes),
            allocation=self.allocation,
            gamma=self.gamma,
            device=self.device,
            engine=self.engine,
            seed=seed_of(self.random_state),
            min_rows=self.min_rows_per_condensed_row,
        )

    def __sklearn_tags__(self) -> TagsOfSampler:
        return TagsOfSampler.of(super().__sklearn_tags__())

    def check_classes(self, names: Iterable[Any], sizes: np.ndarray) -> None:
        """Refuse classes that are too small for what is asked for, by their names."""
        settings = self.check(int(np.sum(sizes)), len(sizes))
        check_room(sizes, settings.budget, settings.min_rows, names)


def _known_classes(condenser: Condenser, X: Any, y: Any, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, labels = numbers_and_classes(condenser, X, y, fitting=False)
    kept = np.isin(labels, classes)
    if not kept.any():
        raise InputError("No validation row has a class that the rows to condense have; give some that do.")
    return rows[kept], np.searchsorted(classes, labels[kept])
