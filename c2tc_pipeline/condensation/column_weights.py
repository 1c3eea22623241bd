"""Column weights: weigh columns in distances between encoded rows by their importance for the label.

Importance is that of extremely randomised trees on a sample of the rows, spread evenly over the encoded columns of a
source column. A power of it scales the columns before clustering. The power is chosen on rows kept aside: for each
candidate a small condensed table is made of the sample and judged by what trees learn from rows drawn from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import roc_auc_score

from c2tc_pipeline.allocation.shares import proportional_counts
from c2tc_pipeline.clustering.class_kmeans import ClassKMeans
from c2tc_pipeline.clustering.kernels import make_kernel
from c2tc_pipeline.clustering.rows import RowSource
from c2tc_pipeline.common.defaults import check_column_weights
from c2tc_pipeline.common.errors import InputError, closest
from c2tc_pipeline.common.optimisers import one_thread
from c2tc_pipeline.condensation.expand import draw_encoded
from c2tc_pipeline.condensation.spread import measure_spread
from c2tc_pipeline.tables.row_sample import sampled_numbers

POWERS = (0.0, 0.5, 1.0)
# Fewer rows, in all or on average per class, are too few to estimate the importance of columns.
_MIN_ROWS = 1_000
_MIN_ROWS_PER_CLASS = 10
_SAMPLE_ROWS = 20_000
_TRIAL_ROWS = 8_000
_TRIAL_CLUSTERS = 120
_DRAWS = 8_000
_VALIDATION_ROWS = 4_000
# The smallest weight in units of the largest, so that no column vanishes.
_MIN_WEIGHT = 1e-2
# Minimum gain in AUC over the next lower power.
_MIN_GAIN = 0.002


@dataclass(frozen=True)
class ColumnWeights:
    """Weights of encoded columns in distances, and where they come from.

    ``importance`` is that of the source columns, the largest being 1; ``scores`` are the AUCs of the candidate powers.
    """

    factors: tuple[float, ...]
    importance: dict[str, float]
    power: float | None = None
    scores: dict[str, float] | None = None

    @property
    def are_equal(self) -> bool:
        """Whether all columns weigh the same, so that distances do not change."""
        return len(set(self.factors)) == 1

    def scaled(self, rows: RowSource) -> RowSource:
        """Return rows in the space of weighted distances."""
        return rows if self.are_equal else rows.scaled(np.array(self.factors))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` returned."""
        return cls(**{**values, "factors": tuple(values["factors"])})


def choose_weights(
    rows: RowSource,
    edges: np.ndarray,
    sources: Sequence[Sequence[str]],
    wanted: str | Mapping[str, float],
    *,
    validation: tuple[np.ndarray, np.ndarray] | None = None,
    seed: int = 0,
) -> ColumnWeights | None:
    """Return the weights of encoded columns; None where none are wanted, for one column, and for very few rows.

    Parameters
    ----------
    rows : RowSource
        Encoded training rows, sorted by class.
    edges : ndarray of int of shape (classes + 1,)
        Where each class begins, and the end.
    sources : sequence of sequence of str
        The source columns behind each encoded column.
    wanted : {"auto", "none"} or mapping of str to float
        Weights of source columns, 1 for those that are not named, or how to find them.
    validation : tuple of (rows, class numbers), optional
        Rows on which the power is chosen; without them a part of the sample is kept aside.
    seed : int, default=0
        Determines the sample and the trees.
    """
    check_column_weights(wanted)
    if isinstance(wanted, Mapping):
        known = {name for names in sources for name in names}
        for name in wanted:
            if name not in known:
                raise InputError(f"column_weights names {name!r}, not an encoded column; {closest(name, known)}.")
        given = tuple(float(np.mean([wanted.get(name, 1.0) for name in names])) for names in sources)
        return ColumnWeights(given, {str(name): float(value) for name, value in wanted.items()})
    few = len(rows) < max(_MIN_ROWS, _MIN_ROWS_PER_CLASS * (len(edges) - 1))
    if wanted == "none" or len({tuple(names) for names in sources}) < 2 or few:
        return None
    places = sampled_numbers(len(rows), seed=seed, most=_SAMPLE_ROWS + _VALIDATION_ROWS)
    codes = np.searchsorted(edges, places, side="right") - 1
    X = rows.take(places)
    aside = np.zeros(len(X), dtype=bool)
    if validation is None:
        order = np.random.default_rng([seed, 0xC]).permutation(len(X))
        aside[order[: min(_VALIDATION_ROWS, len(X) // 5)]] = True
        validation = X[aside], codes[aside]
    else:
        picked = sampled_numbers(len(validation[0]), seed=seed, most=_VALIDATION_ROWS)
        validation = validation[0][picked], validation[1][picked]
    X, codes = X[~aside][:], codes[~aside]
    with one_thread():
        importance = _importance(X, codes, sources, seed)
        scores = {power: _score(X, codes, importance**power, validation, seed) for power in POWERS}
    best = 0.0
    for power in POWERS[1:]:
        if scores[power] > scores[best] + _MIN_GAIN:
            best = power
    by_source: dict[str, float] = {}
    for names, value in zip(sources, importance.tolist(), strict=True):
        for name in names:
            by_source[name] = max(by_source.get(name, 0.0), value)
    factors = tuple(np.round(importance**best, 6).tolist())
    return ColumnWeights(factors, by_source, best, {str(power): score for power, score in scores.items()})


def _importance(X: np.ndarray, codes: np.ndarray, sources: Sequence[Sequence[str]], seed: int) -> np.ndarray:
    """Return the importance of each encoded column: that of its source columns, shared evenly, the largest being 1."""
    trees = ExtraTreesClassifier(60, min_samples_leaf=5, random_state=seed).fit(X, codes)
    _, group, sizes = np.unique(["\0".join(names) for names in sources], return_inverse=True, return_counts=True)
    totals = np.bincount(group, trees.feature_importances_) / sizes
    return np.maximum(totals[group] / max(totals.max(), 1e-12), _MIN_WEIGHT)


def _score(
    X: np.ndarray, codes: np.ndarray, factors: np.ndarray, validation: tuple[np.ndarray, np.ndarray], seed: int
) -> float:
    """Return the AUC on validation rows of trees that are trained on rows drawn from a small condensed table."""
    some = np.sort(np.random.default_rng([seed, 0xD]).permutation(len(X))[:_TRIAL_ROWS])
    X, codes = X[some], codes[some]
    classes, numbers = np.unique(codes, return_inverse=True)
    sizes = np.bincount(numbers)
    edges = np.concatenate([[0], np.cumsum(sizes)])
    budget = int(np.clip(len(X) // 20, len(classes), max(_TRIAL_CLUSTERS, len(classes))))
    counts = proportional_counts(sizes, budget, sizes)
    kernel, scaled = make_kernel("cpu"), RowSource(X).scaled(factors)
    found = [
        ClassKMeans(scaled.part(first, last), kernel).cluster(k, seed=seed, relocate=0)
        for first, last, k in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
    ]
    starts = np.cumsum(counts) - counts
    labels = np.concatenate([result.labels + start for result, start in zip(found, starts, strict=True)])
    weights = np.bincount(labels)
    means = np.stack([np.bincount(labels, column, len(weights)) for column in X.T.astype(np.float64)], axis=1)
    means = (means / weights[:, None]).astype(X.dtype)
    spread = measure_spread(RowSource(X), edges, labels, means)
    limits = X.min(axis=0), X.max(axis=0)
    drawn = np.repeat(np.arange(len(weights)), np.maximum(np.round(weights * (_DRAWS / len(X))), 1).astype(np.int64))
    random = np.random.default_rng([seed, 0xE])
    owner = np.repeat(np.arange(len(classes)), counts)
    rows = draw_encoded(means, spread, owner, drawn, random, limits=limits)
    trees = ExtraTreesClassifier(40, min_samples_leaf=3, random_state=seed).fit(rows, classes[owner[drawn]])
    predicted = trees.predict_proba(validation[0])
    truths = [(validation[1] == code, predicted[:, place]) for place, code in enumerate(trees.classes_)]
    scores = [roc_auc_score(truth, found) for truth, found in truths if 0 < truth.sum() < len(truth)]
    return float(np.mean(scores)) if scores else 0.5
