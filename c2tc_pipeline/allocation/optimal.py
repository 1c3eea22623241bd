"""The optimal allocation for given losses.

On convex curves, giving each cluster to the class that gains most is optimal, and the dual bound proves it. Where a
curve is not convex (k-means losses need not be), the gap is closed by dynamic programming.
"""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.allocation.bound import bound_of_tables, lower_hull
from c2tc_pipeline.allocation.problem import AllocationProblem
from c2tc_pipeline.allocation.result import Allocation, TraceStep

# Below this relative gap greedy is as good as proven optimal; above it dynamic programming is worth its square cost.
_CLOSED_GAP = 1e-9
# C * budget ** 2 steps; beyond this the greedy allocation is returned with its bound.
_MOST_STEPS = 2_000_000_000


class OptimalAllocator:
    """The best allocation there is, for the losses as given.

    Examples
    --------
    >>> from c2tc_pipeline.allocation.testing import toy_problem
    >>> best = OptimalAllocator().allocate(toy_problem([80, 20], budget=10))
    >>> int(best.counts.sum()), best.bound <= best.objective
    (10, True)
    """

    name = "optimal"

    def allocate(self, problem: AllocationProblem, random_state: int = 0) -> Allocation:
        """Return the best allocation, with the dual bound; nothing here is random."""
        tables = [problem.loss_table(index) for index in range(len(problem.sizes))]
        bound = bound_of_tables(tables, problem.budget)
        counts = _greedy(tables, problem.budget)
        objective = _value(tables, counts)
        steps = len(tables) * problem.budget**2
        if objective - bound > _CLOSED_GAP * abs(objective) and steps <= _MOST_STEPS:
            counts = _dynamic_programme(tables, problem.budget)
            objective = _value(tables, counts)
        step = TraceStep(0, objective, objective, True, 0, tuple(counts.tolist()))
        # Rounding in the sums could put the bound a hair above what it bounds.
        return Allocation(
            self.name, counts, objective, problem.losses.runs, (step,), min(bound, objective), problem.gamma
        )


def _value(tables: list[np.ndarray], counts: np.ndarray) -> float:
    return float(sum(table[k - 1] for table, k in zip(tables, counts, strict=True)))


def _greedy(tables: list[np.ndarray], budget: int) -> np.ndarray:
    """Give clusters by largest gain on the convex hulls; gains fall along a hull, so a sort does what a heap would."""
    gains = [-np.diff(lower_hull(table)) for table in tables]
    owner = np.repeat(np.arange(len(tables)), [len(gain) for gain in gains])
    order = np.argsort(-np.concatenate(gains), kind="stable")[: budget - len(tables)]
    return 1 + np.bincount(owner[order], minlength=len(tables))


def _dynamic_programme(tables: list[np.ndarray], budget: int) -> np.ndarray:
    """Solve the multiple-choice knapsack exactly: best[b] over classes so far, for every b clusters spent."""
    best = np.full(budget + 1, np.inf)
    best[0] = 0.0
    choices = []
    for table in tables:
        following = np.full(budget + 1, np.inf)
        choice = np.zeros(budget + 1, dtype=np.int64)
        for k, loss in enumerate(table, start=1):
            candidate = best[: budget + 1 - k] + loss
            better = candidate < following[k:]
            following[k:][better] = candidate[better]
            choice[k:][better] = k
        best = following
        choices.append(choice)
    counts = np.empty(len(tables), dtype=np.int64)
    left = budget
    for index in range(len(tables) - 1, -1, -1):
        counts[index] = choices[index][left]
        left -= counts[index]
    return counts
