"""Target encoding: a category becomes the shares of the classes among its rows, shrunk towards the overall shares.

The paper averages the label. With more than two classes an average of class numbers depends on their arbitrary order,
and the paper's label is one-hot, so the mean is a vector.

Training rows are encoded out of fold: by the class shares of the other folds, so that no row's own label is in its
encoding. New rows are encoded by the shares of all training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pandas as pd
from scipy import sparse, special
from scipy.sparse import linalg

from c2tc_pipeline.common.errors import InputError, Notice
from c2tc_pipeline.encoding.part import Part, PartState, category_rows, check_at_least, unit_scale
from c2tc_pipeline.tables.category_counts import FOLDS, CategoryCounts, folds_of, mixed_bits
from c2tc_pipeline.tables.statistics import TableStatistics

# Max number of output columns of a code.
MAX_COLUMNS = 8
# Classes from which on their covariance is not computed as a whole.
_DENSE_CLASSES = 256
# Variance along a direction, relative to the largest, that counts as rounding error.
_MIN_VARIANCE = 1e-10
# Difference of class shares that counts as rounding error.
_ROUNDING = 1e-11
# Categories from which on, and reliability and rows per category below which a column is worth a notice.
_MANY_CATEGORIES = 50
_TRUSTED = 0.1
_FEW_ROWS = 20
# Relative difference up to which two numbers count as equal when signs are chosen.
_TIED = 1e-6
_NOISE_SEED = np.uint64(0xA0761D6478BD642F)


@dataclass(frozen=True)
class ClassShares:
    """Class shares of categories as sums over their rows."""

    cells: sparse.csr_array  # rows of each category by class
    overall: np.ndarray  # the share of each class in all training rows

    @property
    def rows(self) -> np.ndarray:
        """Rows of each category."""
        return np.asarray(self.cells.sum(axis=1), dtype=np.float64)

    def without(self, cells: sparse.csr_array) -> ClassShares:
        """Return the shares without some of the rows; the overall ones stay."""
        return ClassShares(self.cells - cells, self.overall)

    def means(self, directions: np.ndarray, smoothing: float) -> np.ndarray:
        """Return ``(m mean + lambda overall) / (m + lambda)`` of each category less the overall mean, along directions.

        A category without rows has the overall mean.
        """
        rows = self.rows
        excess = self.cells @ directions - np.outer(rows, self.overall @ directions)
        # Differences of equal shares are rounding errors, which would be stretched to the whole range.
        excess[np.abs(excess) < _ROUNDING * rows[:, None]] = 0
        weight = rows + smoothing
        return np.asarray(excess / np.where(weight > 0, weight, 1.0)[:, None])


def estimated_smoothing(shares: ClassShares) -> float:
    """Return the variance of labels within categories over that of class shares between them (empirical Bayes).

    The variances are those of a random-effects model, estimated by the method of moments and summed over the classes.
    At most the number of rows: there is no variance between categories that chance does not explain.

    Examples
    --------
    >>> alike = sparse.csr_array([[50, 50], [50, 50], [50, 50]])
    >>> estimated_smoothing(ClassShares(alike, np.array([0.5, 0.5])))
    300.0
    """
    rows = shares.rows[shares.rows > 0]
    total, categories = rows.sum(), len(rows)
    if categories < 2 or categories == total:
        return float(total)
    squares = np.asarray(shares.cells.power(2).sum(axis=1), dtype=np.float64)
    explained = float((squares / np.maximum(shares.rows, 1)).sum())
    within = (total - explained) / (total - categories)
    between = (explained - total * float(shares.overall @ shares.overall)) / (categories - 1)
    # What of the variance between categories is not that within them, by the rows of a typical category.
    excess = (between - within) / ((total - float(rows @ rows) / total) / (categories - 1))
    return float(min(within / excess, total)) if excess > 0 else float(total)


def reliability(rows: np.ndarray, smoothing: float) -> float:
    """Return how much of the class shares of a row's category is its own rows' on average, from 0 to 1."""
    weight = rows + smoothing
    return float((rows * rows / np.where(weight > 0, weight, 1.0)).sum() / rows.sum())


def leading_directions(shares: ClassShares, smoothing: float) -> np.ndarray:
    """Return the directions along which the class shares of categories differ most, one column each.

    They are the principal components of the smoothed shares, weighted by rows. Neither they nor their signs depend on
    the names or the order of the classes.
    """
    classes = len(shares.overall)
    if classes == 2:
        directions = np.array([[-1.0], [1.0]])
    else:
        rows = shares.rows
        weight = np.sqrt(rows) / np.maximum(rows + smoothing, np.finfo(np.float64).tiny)
        weighted = sparse.diags_array(weight) @ shares.cells.astype(np.float64)

        def applied(vector: np.ndarray) -> np.ndarray:
            differences = weighted @ vector - weight * rows * (shares.overall @ vector)
            return np.asarray(weighted.T @ differences - shares.overall * float((weight * rows) @ differences))

        wanted = max(min(classes, int(np.count_nonzero(rows)), MAX_COLUMNS + 1) - 1, 1)
        if classes <= _DENSE_CLASSES:
            values, vectors = np.linalg.eigh(np.stack([applied(unit) for unit in np.eye(classes)]))
        else:
            operator = linalg.LinearOperator((classes, classes), matvec=applied, dtype=np.float64)
            # In the span of the shares, so that it is the same vector for any order of the classes.
            start = applied(shares.overall) + applied(weighted.T @ np.random.default_rng(0).normal(size=len(rows)))
            if np.abs(start).max() < _ROUNDING:
                return np.zeros((classes, 1))
            values, vectors = linalg.eigsh(operator, wanted, v0=start)
        order = np.argsort(-values)[:wanted]
        order = order[values[order] > _MIN_VARIANCE * max(values.max(), 0)]
        directions = vectors[:, order] if len(order) else np.zeros((classes, 1))
    return directions * _signs(shares, directions, smoothing)


def _signs(shares: ClassShares, directions: np.ndarray, smoothing: float) -> np.ndarray:
    """Return signs that put rare classes above frequent ones; where these balance, one category above the others."""
    along = shares.overall @ directions
    means = shares.means(directions, smoothing)
    size = np.abs(means)
    # Of several far ones the first, in spite of rounding.
    far = (size >= (1 - _TIED) * size.max(axis=0)).argmax(axis=0)
    balanced = np.abs(along) < _TIED * np.linalg.norm(directions, axis=0)
    signs = np.where(balanced, np.sign(means[far, np.arange(means.shape[1])]), -np.sign(along))
    return np.where(signs == 0, 1.0, signs)


@dataclass(frozen=True)
class TargetScale:
    """How the class shares of one column become its encoded columns."""

    directions: np.ndarray  # of shape (classes, outputs): what the shares are multiplied with
    smoothing: float  # how many rows the overall shares count for
    low: np.ndarray  # what becomes 0, relative to the overall shares
    high: np.ndarray  # what becomes 1

    def table(self, shares: ClassShares) -> np.ndarray:
        """Return the encoding of each category, of missing values and of unseen ones."""
        means = shares.means(self.directions, self.smoothing)
        return unit_scale(np.vstack([means, np.zeros(means.shape[1])]), self.low, self.high)


@dataclass(eq=False)
class TargetPart(Part):
    """Categories as smoothed class shares; an unseen one gets the overall shares, a missing one is its own category.

    Each column's table has one row per category, then one for missing values, then one for unseen ones, in [0, 1].

    Examples
    --------
    >>> import pandas as pd
    >>> rows = TableStatistics.of(pd.DataFrame({"day": [1, 1, 2, 2]}), np.array([0, 1, 1, 1]))
    >>> part = TargetPart.fit(rows, ["day"], smoothing=0.0)
    >>> part.encode(pd.DataFrame({"day": [1, 2, 7]})).ravel()
    array([1. , 0. , 0.5], dtype=float32)
    """

    kind = "target"
    directions = staticmethod(leading_directions)

    columns: list[str]
    keys: list[list[str]]
    tables: list[np.ndarray]
    scales: list[TargetScale]

    @classmethod
    def fit(
        cls,
        statistics: TableStatistics,
        columns: Sequence[str],
        *,
        smoothing: float | str,
    ) -> TargetPart:
        """Learn the class shares of each category."""
        if columns and not statistics.is_labelled:
            raise InputError(f"Column {columns[0]!r} is encoded by the label's mean: pass the labels y to fit.")
        part = cls(list(columns), [], [], [])
        for name in columns:
            counts = statistics.categories(name)
            shares = class_shares(counts)
            chosen = estimated_smoothing(shares) if isinstance(smoothing, str) else float(smoothing)
            directions = cls.directions(shares, chosen)
            means = shares.means(directions, chosen)[shares.rows > 0]
            # Differences that are mostly chance get a narrower range than others.
            trusted = reliability(shares.rows, chosen) if isinstance(smoothing, str) else 1.0
            scale = TargetScale(directions, chosen, means.min(axis=0) / trusted, means.max(axis=0) / trusted)
            part.keys.append(counts.keys)
            part.tables.append(scale.table(shares))
            part.scales.append(scale)
        return part

    def names(self) -> list[str]:
        return [
            name if width == 1 else f"{name}__shares_{number}"
            for name, width in zip(self.columns, self._widths(), strict=True)
            for number in range(1, width + 1)
        ]

    def sources(self) -> list[list[str]]:
        return [[name] for name, width in zip(self.columns, self._widths(), strict=True) for _ in range(width)]

    def _widths(self) -> list[int]:
        return [len(scale.low) for scale in self.scales]

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        outputs = [np.empty((len(frame), 0), dtype=np.float32)]
        for name, known, table in zip(self.columns, self.keys, self.tables, strict=True):
            outputs.append(table[category_rows(frame[name], known, unseen=len(known) + 1)])
        return np.hstack(outputs)

    def for_training(self, statistics: TableStatistics, classes: np.ndarray) -> CrossFittedTargetPart:
        """Return the part for the training rows, given their statistics: one table per fold, from the other folds."""
        keys, tables = [], []
        for name, scale in zip(self.columns, self.scales, strict=True):
            counts = statistics.categories(name)
            shares, scale = class_shares(counts), replace(scale, directions=scale.directions[classes])
            keys.append(counts.keys)
            tables.append(np.concatenate([scale.table(shares.without(counts.of_fold(fold))) for fold in range(FOLDS)]))
        return CrossFittedTargetPart(self.columns, keys, tables, self.scales)

    def state(self) -> PartState:
        values = {
            "columns": self.columns,
            "keys": self.keys,
            "smoothing": [scale.smoothing for scale in self.scales],
        }
        arrays = {f"table_{i}": table for i, table in enumerate(self.tables)}
        for i, scale in enumerate(self.scales):
            arrays |= {f"directions_{i}": scale.directions, f"low_{i}": scale.low, f"high_{i}": scale.high}
        return PartState(values, arrays)

    @classmethod
    def from_state(cls, state: PartState) -> Self:
        columns = state.texts("columns")
        count = len(columns)
        keys, tables, scales = state.text_lists("keys", count), [], []
        for i, smoothing in enumerate(state.numbers("smoothing", count)):
            directions = state.array(f"directions_{i}", None, None)
            width = directions.shape[1]
            limits = state.array(f"low_{i}", width), state.array(f"high_{i}", width)
            tables.append(state.array(f"table_{i}", len(keys[i]) + 2, width))
            scales.append(TargetScale(directions, smoothing, *limits))
        return cls(columns, keys, tables, scales)

    def without_unused(self, present: Sequence[list[str]]) -> tuple[Part, int, int]:
        """Remove unused categories, which then count as unseen; the encoding of all others does not change."""
        keys, tables = [], []
        for known, table, here in zip(self.keys, self.tables, map(set, present), strict=True):
            places = [place for place, key in enumerate(known) if key in here]
            keys.append([known[place] for place in places])
            tables.append(table[[*places, len(known), len(known) + 1]])
        removed = sum(map(len, self.keys)) - sum(map(len, keys))
        return TargetPart(self.columns, keys, tables, self.scales), removed, 0


@dataclass(eq=False)
class CrossFittedTargetPart(TargetPart):
    """Target encoding of training rows by the class shares of the other folds, with the paper's noise if there is any.

    The tables of the folds are one above the other. The noise of a row depends on its position in the source, so that
    any division into blocks gives the same rows.
    """

    noise: float = 0.0
    seed: int = 0

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        row_ids = frame.index.to_numpy()
        folds = folds_of(row_ids)
        outputs = [np.empty((len(frame), 0), dtype=np.float32)]
        for name, known, table in zip(self.columns, self.keys, self.tables, strict=True):
            places = category_rows(frame[name], known, unseen=len(known) + 1)
            outputs.append(table[folds * (len(known) + 2) + places])
        encoded = np.hstack(outputs)
        return encoded if not self.noise else np.clip(encoded + self._drawn(row_ids, encoded.shape[1]), 0, 1)

    def _drawn(self, row_ids: np.ndarray, columns: int) -> np.ndarray:
        start = mixed_bits(np.array([self.seed], dtype=np.uint64) + _NOISE_SEED)
        words = mixed_bits(
            row_ids.astype(np.uint64)[:, None] * np.uint64(columns) + np.arange(columns, dtype=np.uint64)
        )
        uniform = ((mixed_bits(words + start) >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
        return (self.noise * special.ndtri(uniform)).astype(np.float32)


def class_shares(counts: CategoryCounts) -> ClassShares:
    """Return the class shares of categories, missing values last."""
    cells = counts.by_class()
    return ClassShares(cells, np.asarray(cells.sum(axis=0), dtype=np.float64) / cells.sum())


def untrusted_columns(part: TargetPart, statistics: TableStatistics) -> list[Notice]:
    """Return notices about columns of so many categories that their class shares are mostly chance."""
    notices = []
    for name, scale in zip(part.columns, part.scales, strict=True):
        rows = statistics.categories(name).rows
        if len(rows) < _MANY_CATEGORIES:
            continue
        trusted = reliability(rows, scale.smoothing)
        if trusted < _TRUSTED and rows.mean() < _FEW_ROWS:
            scaled = "less than 0.1 %" if trusted < 0.001 else f"{100 * trusted:.1f} %"
            message = (
                f"has {len(rows):,} values with {rows.mean():.1f} rows each on average, too few to learn how each "
                f"value relates to the label: its encoding was scaled down to {scaled} of its usual size and hardly "
                "counts"
            )
            notices.append(Notice("high_cardinality", message, name))
    return notices


def check_smoothing(smoothing: float | str) -> None:
    """Raise InputError for a smoothing that is neither ``"auto"`` nor a number from 0 up."""
    if isinstance(smoothing, str) and smoothing != "auto":
        raise InputError(f"Parameter 'smoothing' is {smoothing!r}, but must be 'auto' or a number.")
    if not isinstance(smoothing, str):
        check_at_least(0, smoothing=smoothing)
