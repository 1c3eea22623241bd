"""Smoothed target encoding: a category becomes the shares of the classes among its rows, drawn to the overall shares.

The paper averages the label. With more than two classes an average of class numbers depends on their arbitrary order,
and the paper's label is one-hot, so the mean is a vector: one column for each class but the first. The literal scalar
is there for the ablation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from c2tc_pipeline.encoding.part import Part, PartState, unit_scale
from c2tc_pipeline.encoding.row_block import Rows
from c2tc_pipeline.encoding.stored_state import array, text_lists, texts
from c2tc_pipeline.tables.categories import factorise
from c2tc_pipeline.tables.statistics import TableStatistics


class TargetPart(Part):
    """Categories as smoothed class shares.

    An unseen category gets the overall shares; a missing value is a category of its own.

    Parameters
    ----------
    columns : list of str
        The input columns.
    keys : list of list of str
        The categories of each column seen in training.
    tables : list of ndarray
        For each column one row per category, then one for missing values, then one for unseen ones; already in [0, 1].
    suffixes : list of str
        What is appended to a column's name for each of its outputs.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = TableStatistics.of(pd.DataFrame({"day": [1, 1, 2, 2]}), np.array([0, 1, 1, 1]))
    >>> part = TargetPart.fit(rows, ["day"], ["no", "yes"], smoothing=0.0)
    >>> part.encode(pd.DataFrame({"day": [1, 2, 7]})).ravel()
    array([0. , 1. , 0.5], dtype=float32)
    """

    kind = "target"

    def __init__(
        self, columns: list[str], keys: list[list[str]], tables: list[np.ndarray], suffixes: list[str]
    ) -> None:
        self.columns = columns
        self.keys = keys
        self.tables = tables
        self.suffixes = suffixes
        self._places = [{key: place for place, key in enumerate(column_keys)} for column_keys in keys]

    @classmethod
    def fit(
        cls,
        statistics: TableStatistics,
        columns: Sequence[str],
        classes: Sequence[str],
        *,
        smoothing: float,
        scalar: bool = False,
    ) -> TargetPart:
        """Learn the class shares of each category.

        Parameters
        ----------
        statistics : TableStatistics
            Of the training rows, with labels.
        columns : sequence of str
            The columns to encode.
        classes : sequence of str
            Names of the classes, for the names of outputs.
        smoothing : float
            How many rows the overall shares count for (lambda in the paper).
        scalar : bool
            Average the class numbers themselves, as printed in the paper.
        """
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
        for name, table, places in zip(self.columns, self.tables, self._places, strict=True):
            positions, keys = factorise(frame[name])
            unseen = len(table) - 1
            rows = np.array([*(places.get(key, unseen) for key in keys), unseen - 1], dtype=np.int64)
            outputs.append(table[rows[positions]])
        return np.hstack(outputs)

    def state(self) -> PartState:
        values = {"columns": self.columns, "keys": self.keys, "suffixes": self.suffixes}
        return PartState(values, {f"table_{i}": table for i, table in enumerate(self.tables)})

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        columns, suffixes = texts(values["columns"]), texts(values["suffixes"])
        keys = text_lists(values["keys"], len(columns))
        tables = [array(arrays, f"table_{i}", len(known) + 2, len(suffixes)) for i, known in enumerate(keys)]
        return cls(columns, keys, tables, suffixes)


def smoothed_means(rows: np.ndarray, targets: np.ndarray, smoothing: float) -> np.ndarray:
    """Return ``(m mean + lambda overall) / (m + lambda)`` for each group; an empty group gets the overall mean.

    Parameters
    ----------
    rows : ndarray of int of shape (groups, classes)
        Rows of each group by class.
    targets : ndarray of shape (classes, outputs)
        What is averaged: the value of a row of each class.
    smoothing : float
        How many rows the overall mean counts for.

    Examples
    --------
    >>> smoothed_means(np.array([[0, 2], [1, 0]]), np.array([[0.0], [1.0]]), 1.0).ravel().round(3)
    array([0.889, 0.333])
    """
    counts = rows.sum(axis=1)[:, None]
    sums = rows @ targets
    overall = rows.sum(axis=0) @ targets / rows.sum()
    weight = counts + smoothing
    return np.where(weight > 0, (sums + smoothing * overall) / np.where(weight > 0, weight, 1), overall)
