"""Smoothed target encoding: a category becomes the shares of the classes among its rows, drawn to the overall shares.

The paper averages the label. With more than two classes an average of class numbers depends on their arbitrary order,
and the paper's label is one-hot, so the mean is a vector: one column for each class but the first. The literal scalar
is there for the ablation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from c2tc_pipeline.encoding.categories import factorise
from c2tc_pipeline.encoding.part import Part, PartState, unit_scale


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
    >>> frame = pd.DataFrame({"day": [1, 1, 2, 2]})
    >>> part = TargetPart.fit(frame, ["day"], np.array([0, 1, 1, 1]), ["no", "yes"], smoothing=0.0)
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
        frame: pd.DataFrame,
        columns: Sequence[str],
        y: np.ndarray,
        classes: Sequence[str],
        *,
        smoothing: float,
        scalar: bool = False,
    ) -> TargetPart:
        """Learn the class shares of each category.

        Parameters
        ----------
        frame : DataFrame
            Training rows.
        columns : sequence of str
            The columns to encode.
        y : ndarray of int
            The class of each row.
        classes : sequence of str
            Names of the classes, for the names of outputs.
        smoothing : float
            How many rows the overall shares count for (lambda in the paper).
        scalar : bool
            Average the class numbers themselves, as printed in the paper.
        """
        targets = y[:, None].astype(np.float64)
        suffixes = [""]
        if not scalar and len(classes) > 2:
            targets = (y[:, None] == np.arange(1, len(classes))).astype(np.float64)
            suffixes = [f"__is_{name}" for name in classes[1:]]
        overall = targets.mean(axis=0)
        keys, tables = [], []
        for name in columns:
            positions, column_keys = factorise(frame[name])
            means = smoothed_means(
                np.where(positions < 0, len(column_keys), positions), targets, smoothing, len(column_keys) + 1
            )
            seen = np.append(np.ones(len(column_keys), dtype=bool), (positions < 0).any())
            low, high = means[seen].min(axis=0), means[seen].max(axis=0)
            keys.append(column_keys)
            tables.append(unit_scale(np.vstack([means, overall]), low, high))
        return cls(list(columns), keys, tables, suffixes)

    def names(self) -> list[str]:
        return [f"{name}{suffix}" for name in self.columns for suffix in self.suffixes]

    def sources(self) -> list[list[str]]:
        return [[name] for name in self.columns for _ in self.suffixes]

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
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
        tables = [arrays[f"table_{i}"] for i in range(len(values["columns"]))]
        return cls(list(values["columns"]), list(values["keys"]), tables, list(values["suffixes"]))


def smoothed_means(groups: np.ndarray, targets: np.ndarray, smoothing: float, size: int) -> np.ndarray:
    """Return ``(m mean + lambda overall) / (m + lambda)`` for each group; an empty group gets the overall mean.

    Examples
    --------
    >>> smoothed_means(np.array([0, 0, 1]), np.array([[1.0], [1.0], [0.0]]), 1.0, 2).ravel().round(3)
    array([0.889, 0.333])
    """
    counts = np.bincount(groups, minlength=size)[:, None]
    sums = np.stack([np.bincount(groups, target, size) for target in targets.T], axis=1)
    overall = targets.mean(axis=0)
    weight = counts + smoothing
    return np.where(weight > 0, (sums + smoothing * overall) / np.where(weight > 0, weight, 1), overall)
