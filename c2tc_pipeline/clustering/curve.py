"""The loss curve of one class: WCSS against the number of clusters, known on a grid and read anywhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ClassCurve:
    """WCSS(k) of one class.

    Parameters
    ----------
    rows : int
        Source rows of the class.
    distinct : int
        Distinct rows among those the curve was measured on; from there on the loss is zero when every row was used.
    grid : ndarray of int
        The measured numbers of clusters, ascending, starting at 1.
    wcss : ndarray of float
        The within-cluster sum of squares over all rows of the class at each grid point, never rising.
    sampled_rows : int
        How many rows the curve was measured on; equal to ``rows`` when nothing was sampled.

    Examples
    --------
    >>> curve = ClassCurve(100, 100, np.array([1, 4, 16]), np.array([80.0, 20.0, 5.0]), 100)
    >>> curve.at(np.array([1, 2, 4, 64, 100])).round(2)
    array([80.  , 40.  , 20.  ,  1.25,  0.  ])
    """

    rows: int
    distinct: int
    grid: np.ndarray
    wcss: np.ndarray
    sampled_rows: int

    def at(self, k: np.ndarray) -> np.ndarray:
        """Read the curve: straight lines in log-log between grid points, the last slope carried on beyond them."""
        k = np.asarray(k, dtype=np.float64)
        exact_zero = k >= self.rows
        if self.sampled_rows == self.rows:
            exact_zero |= k >= self.distinct
        positive = self.wcss > 0
        if not positive.any():
            return np.zeros_like(k)
        if not positive.all():
            exact_zero |= k >= self.grid[~positive][0]
        log_grid, log_wcss = np.log(self.grid[positive]), np.log(self.wcss[positive])
        logs = np.interp(np.log(k), log_grid, log_wcss)
        beyond = np.log(k) > log_grid[-1]
        if beyond.any() and len(log_grid) > 1:
            slope = min((log_wcss[-1] - log_wcss[-2]) / (log_grid[-1] - log_grid[-2]), 0.0)
            logs[beyond] = log_wcss[-1] + slope * (np.log(k[beyond]) - log_grid[-1])
        return np.where(exact_zero, 0.0, np.exp(logs))

    def scaled(self, factor: float) -> ClassCurve:
        """Return the same shape at another height."""
        return replace(self, wcss=self.wcss * factor)

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as plain JSON values."""
        return {
            "rows": self.rows,
            "distinct": self.distinct,
            "grid": [int(k) for k in self.grid],
            "wcss": [float(loss) for loss in self.wcss],
            "sampled_rows": self.sampled_rows,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ClassCurve:
        """Rebuild a curve from :meth:`to_dict`; values that are no curve are a ``ValueError``."""
        grid, wcss = np.asarray(values["grid"], dtype=np.int64), np.asarray(values["wcss"], dtype=np.float64)
        rows, distinct, sampled = values["rows"], values["distinct"], values["sampled_rows"]
        if not all(type(number) is int and number > 0 for number in (rows, distinct, sampled)):
            raise ValueError("A curve has to tell positive numbers of rows.")
        if grid.ndim != 1 or grid.shape != wcss.shape or not len(grid) or grid[0] != 1 or (np.diff(grid) <= 0).any():
            raise ValueError("A curve needs a loss for each point of a grid that ascends from 1.")
        if not (np.isfinite(wcss).all() and (wcss >= 0).all()):
            raise ValueError("Losses of a curve are numbers, and not below zero.")
        return cls(rows, distinct, grid, wcss, sampled)
