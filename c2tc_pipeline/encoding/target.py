"""Smoothed target encoding: a category becomes the shares of the classes among its rows, drawn to the overall shares.

The paper averages the label. With more than two classes an average of class numbers depends on their arbitrary order,
and the paper's label is one-hot, so the mean is a vector: one column for each class but the first. The literal scalar
is kept for the ablation (``scalar``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.encoding.base import Progress, TableEncoder
from c2tc_pipeline.encoding.numeric import NumericPart
from c2tc_pipeline.encoding.part import Part, PartState, category_rows, check_at_least, unit_scale
from c2tc_pipeline.encoding.row_block import Rows
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline.tables.statistics import TableStatistics


@dataclass(eq=False)
class TargetPart(Part):
    """Categories as smoothed class shares; an unseen one gets the overall shares, a missing one is its own category.

    Each column's table has one row per category, then one for missing values, then one for unseen ones, in [0, 1].

    Examples
    --------
    >>> import pandas as pd
    >>> rows = TableStatistics.of(pd.DataFrame({"day": [1, 1, 2, 2]}), np.array([0, 1, 1, 1]))
    >>> part = TargetPart.fit(rows, ["day"], ["no", "yes"], smoothing=0.0)
    >>> part.encode(pd.DataFrame({"day": [1, 2, 7]})).ravel()
    array([0. , 1. , 0.5], dtype=float32)
    """

    kind = "target"

    columns: list[str]
    keys: list[list[str]]
    tables: list[np.ndarray]
    suffixes: list[str]

    @classmethod
    def fit(
        cls,
        statistics: TableStatistics,
        columns: Sequence[str],
        classes: Sequence[Any],
        *,
        smoothing: float,
        scalar: bool = False,
    ) -> TargetPart:
        """Learn the class shares of each category; ``scalar`` averages class numbers, as printed in the paper."""
        if columns and not statistics.is_labelled:
            raise InputError(f"Column {columns[0]!r} is encoded by the label's mean: pass the labels y to fit.")
        # What a row of each class adds to the sums that are averaged.
        targets = np.arange(len(classes), dtype=np.float64)[:, None]
        suffixes = [""]
        if not scalar and len(classes) > 2:
            targets = np.eye(len(classes))[:, 1:]
            suffixes = [f"__is_{name}" for name in classes[1:]]
        keys, tables = [], []
        for name in columns:
            counts = statistics.categories(name)
            rows = np.vstack([counts.table, counts.missing])
            means = smoothed_means(rows, targets, smoothing)
            seen = np.append(np.ones(len(counts.keys), dtype=bool), counts.missing.any())
            low, high = means[seen].min(axis=0), means[seen].max(axis=0)
            overall = rows.sum(axis=0) @ targets / rows.sum()
            keys.append(counts.keys)
            tables.append(unit_scale(np.vstack([means, overall]), low, high))
        return cls(list(columns), keys, tables, suffixes)

    def names(self) -> list[str]:
        return [f"{name}{suffix}" for name in self.columns for suffix in self.suffixes]

    def sources(self) -> list[list[str]]:
        return [[name] for name in self.columns for _ in self.suffixes]

    def encode(self, frame: Rows) -> np.ndarray:
        outputs = [np.empty((len(frame), 0), dtype=np.float32)]
        for name, known, table in zip(self.columns, self.keys, self.tables, strict=True):
            outputs.append(table[category_rows(frame[name], known, unseen=len(known) + 1)])
        return np.hstack(outputs)

    def state(self) -> PartState:
        values = {"columns": self.columns, "keys": self.keys, "suffixes": self.suffixes}
        return PartState(values, {f"table_{i}": table for i, table in enumerate(self.tables)})

    @classmethod
    def from_state(cls, state: PartState) -> Self:
        columns, suffixes = state.texts("columns"), state.texts("suffixes")
        keys = state.text_lists("keys", len(columns))
        tables = [state.array(f"table_{i}", len(known) + 2, len(suffixes)) for i, known in enumerate(keys)]
        return cls(columns, keys, tables, suffixes)

    def without_unused(self, present: Sequence[list[str]]) -> tuple[Part, int, int]:
        """Remove unused categories: they count as unseen then, and all others stay what they are."""
        keys, tables = [], []
        for known, table, here in zip(self.keys, self.tables, map(set, present), strict=True):
            places = [place for place, key in enumerate(known) if key in here]
            keys.append([known[place] for place in places])
            tables.append(table[[*places, len(known), len(known) + 1]])
        removed = sum(map(len, self.keys)) - sum(map(len, keys))
        return TargetPart(self.columns, keys, tables, self.suffixes), removed, 0


def smoothed_means(rows: np.ndarray, targets: np.ndarray, smoothing: float) -> np.ndarray:
    """Return ``(m mean + lambda overall) / (m + lambda)`` for each group; an empty group gets the overall mean.

    ``rows`` are the rows of each group by class, ``targets`` the values of a row of each class that are averaged.
    """
    sums = rows @ targets
    overall = rows.sum(axis=0) @ targets / rows.sum()
    weight = rows.sum(axis=1)[:, None] + smoothing
    return np.where(weight > 0, (sums + smoothing * overall) / np.where(weight > 0, weight, 1), overall)


class TargetEncoder(TableEncoder):
    """Smoothed target encoding of all categorical columns, with scaled numeric ones: one of the paper's ablations.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"job": ["nurse", "cook", "nurse"]})
    >>> TargetEncoder().fit_transform(rows, [1, 0, 1]).ravel()
    array([1., 0., 1.], dtype=float32)
    """

    scalar_target = False
    """Average class numbers, as printed in the paper; for experiments, set in Python and not stored."""

    def __init__(
        self,
        numeric: str = "minmax",
        *,
        smoothing: float = 10.0,
        roles: Mapping[str, Role | str] | None = None,
        random_state: int = 0,
    ) -> None:
        self.numeric = numeric
        self.smoothing = smoothing
        self.roles = roles
        self.random_state = random_state

    def _fit_parts(self, statistics: TableStatistics, columns: list[str], progress: Progress | None) -> list[Part]:
        check_at_least(0, smoothing=self.smoothing)
        numeric = [name for name in columns if self.roles_[name].role is Role.NUMERIC]
        parts: list[Part] = [NumericPart.fit(statistics, numeric, self.numeric)]
        if categorical := [name for name in columns if name not in numeric]:
            given: dict[str, Any] = {"smoothing": self.smoothing, "scalar": self.scalar_target}
            parts.append(TargetPart.fit(statistics, categorical, self.classes_, **given))
        return parts
