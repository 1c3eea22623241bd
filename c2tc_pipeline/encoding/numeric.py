"""Numeric columns: scaled to [0, 1], missing values at the median and marked in a column of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from c2tc_pipeline.encoding.part import Part, PartState
from c2tc_pipeline.errors import InputError

SCALINGS = ("quantile", "minmax")
# Points of the distribution function that are kept; between them it is a straight line.
_KNOTS = 1_001
# Rows from which the distribution function is taken; its error at 100,000 rows is below half a percent.
_SAMPLE_ROWS = 100_000


class NumericPart(Part):
    """Numeric columns as their place in the training distribution, or between its limits.

    ``"minmax"`` is the paper's scaling. ``"quantile"`` maps a value to the share of training rows below it, so that a
    few outliers do not squash everything else into a corner.

    Examples
    --------
    >>> part = NumericPart.fit(pd.DataFrame({"x": [1.0, 2.0, 1000.0]}), ["x"], "quantile", seed=0)
    >>> part.encode(pd.DataFrame({"x": [1.0, 2.0, 1e9]})).ravel()
    array([0. , 0.5, 1. ], dtype=float32)
    """

    kind = "numeric"

    def __init__(
        self,
        columns: list[str],
        knots: list[np.ndarray],
        heights: list[np.ndarray],
        medians: list[float],
        marked: list[bool],
    ) -> None:
        self.columns = columns
        self.knots = knots
        self.heights = heights
        self.medians = medians
        self.marked = marked

    @classmethod
    def fit(cls, frame: pd.DataFrame, columns: Sequence[str], scaling: str, seed: int) -> NumericPart:
        """Learn the limits or the distribution of each column."""
        if scaling not in SCALINGS:
            raise InputError(f"Numeric scaling {scaling!r} is unknown; choose one of: {', '.join(SCALINGS)}.")
        part = cls(list(columns), [], [], [], [])
        rng = np.random.default_rng(seed)
        picked = np.sort(rng.choice(len(frame), _SAMPLE_ROWS, replace=False)) if len(frame) > _SAMPLE_ROWS else None
        for name in part.columns:
            values = _as_floats(frame[name])
            present = values[~np.isnan(values)]
            if np.isinf(present).any():
                raise InputError(
                    f"Column {name!r} holds {np.isinf(present).sum()} infinite values; "
                    "replace them by numbers or leave them empty."
                )
            part.marked.append(len(present) < len(values))
            part.medians.append(float(np.median(present)) if len(present) else 0.0)
            limits = np.array([present.min(), present.max()]) if len(present) else np.zeros(2)
            if scaling == "minmax" or limits[0] == limits[1]:
                knots, heights = limits, np.array([0.0, 1.0])
            else:
                # A sample may lack the limits.
                sample = values if picked is None else np.append(values[picked], limits)
                knots, heights = _distribution(sample[~np.isnan(sample)])
            part.knots.append(knots)
            part.heights.append(heights)
        return part

    def names(self) -> list[str]:
        marks = [f"{name}__missing" for name, marked in zip(self.columns, self.marked, strict=True) if marked]
        return [*self.columns, *marks]

    def sources(self) -> list[list[str]]:
        marked = [name for name, marked in zip(self.columns, self.marked, strict=True) if marked]
        return [[name] for name in (*self.columns, *marked)]

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        scaled, marks = [], []
        parts = zip(self.columns, self.knots, self.heights, self.medians, self.marked, strict=True)
        for name, knots, heights, median, marked in parts:
            values = _as_floats(frame[name])
            absent = np.isnan(values)
            values = np.where(absent, median, values)
            if knots[0] == knots[-1]:
                scaled.append(np.zeros(len(values), dtype=np.float32))
            else:
                # Between knots closer than 1e-308 the slope is infinite.
                scaled.append(np.clip(np.interp(values, knots, heights), 0, 1).astype(np.float32))
            if marked:
                marks.append(absent.astype(np.float32))
        return np.stack([*scaled, *marks], axis=1) if scaled else np.empty((len(frame), 0), np.float32)

    def state(self) -> PartState:
        arrays = {f"knots_{i}": knots for i, knots in enumerate(self.knots)}
        arrays |= {f"heights_{i}": heights for i, heights in enumerate(self.heights)}
        return PartState({"columns": self.columns, "medians": self.medians, "marked": self.marked}, arrays)

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        count = range(len(values["columns"]))
        knots, heights = [arrays[f"knots_{i}"] for i in count], [arrays[f"heights_{i}"] for i in count]
        return cls(list(values["columns"]), knots, heights, list(values["medians"]), list(values["marked"]))


def _as_floats(series: pd.Series[Any]) -> np.ndarray:
    return series.to_numpy(dtype=np.float64, na_value=np.nan)


def _distribution(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points of the distribution function, with tied values at the middle of their step, from 0 to 1."""
    distinct, counts = np.unique(values, return_counts=True)
    ranks = np.cumsum(counts) - counts / 2
    if len(distinct) > _KNOTS:
        # Evenly spaced in rank, first and last kept.
        kept = np.unique(np.searchsorted(ranks, np.linspace(ranks[0], ranks[-1], _KNOTS)))
        distinct, ranks = distinct[kept], ranks[kept]
    return distinct, (ranks - ranks[0]) / (ranks[-1] - ranks[0])
