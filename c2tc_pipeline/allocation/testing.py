"""Small allocation problems with known losses, for examples and tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from c2tc_pipeline.allocation.problem import AllocationProblem


class TableLosses:
    """Losses given as one table per class, over 1, 2, ... clusters."""

    known_everywhere = True

    def __init__(self, tables: Sequence[np.ndarray]) -> None:
        self.tables = [np.asarray(table, dtype=np.float64) for table in tables]
        self.asked: set[tuple[int, int]] = set()

    @property
    def runs(self) -> int:
        """Distinct entries asked for."""
        return len(self.asked)

    def wcss(self, index: int, k: int) -> float:
        """Look one entry up."""
        self.asked.add((index, k))
        return float(self.tables[index][k - 1])

    def table(self, index: int, largest: int) -> np.ndarray:
        """Look entries up from 1 to ``largest``."""
        return self.tables[index][:largest]


def toy_problem(sizes: Sequence[int], budget: int, gamma: float = 0.25) -> AllocationProblem:
    """Return a problem whose class losses fall like ``n / k``.

    Examples
    --------
    >>> toy_problem([4, 2], budget=3, gamma=0.0).objective([2, 1])
    4.0
    """
    return AllocationProblem(
        np.asarray(sizes), budget, TableLosses([n / np.arange(1, n + 1) for n in sizes]), gamma=gamma
    )
