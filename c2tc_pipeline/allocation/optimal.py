"""The optimal allocation for given losses, and a lower bound on the objective of any: the Lagrangian dual of CCAP.

With a price per cluster every class chooses for itself; the sum of the best choices minus the price of the budget is a
lower bound for every price. On convex curves the best bound equals the optimum, and giving each cluster to the class
that gains most is optimal. Where a curve is not convex, the gap is closed by dynamic programming.
"""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.allocation.problem import Allocation, AllocationProblem, TraceStep

# Below this relative gap the greedy allocation is optimal up to rounding.
_CLOSED_GAP = 1e-9
# C * budget ** 2 steps; beyond this the greedy allocation is returned with its bound.
_MAX_STEPS = 2_000_000_000


class OptimalAllocator:
    """The best allocation for the given losses."""

    name = "optimal"

    def allocate(self, problem: AllocationProblem, random_state: int = 0) -> Allocation:
        """Return the best allocation with the dual bound; deterministic."""
        tables = [problem.loss_table(index) for index in range(len(problem.sizes))]
        bound = bound_of_tables(tables, problem.budget)
        counts = _greedy(tables, problem.budget)
        objective = _value(tables, counts)
        steps = len(tables) * problem.budget**2
        if objective - bound > _CLOSED_GAP * abs(objective) and steps <= _MAX_STEPS:
            counts = _dynamic_programme(tables, problem.budget)
            objective = _value(tables, counts)
        step = TraceStep(0, objective, objective, True, 0, tuple(counts.tolist()))
        # Rounding may put the bound slightly above the objective.
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


def dual_bound(problem: AllocationProblem, reached: float) -> float:
    """Return the bound, at most ``reached``."""
    tables = [problem.loss_table(index) for index in range(len(problem.sizes))]
    return min(bound_of_tables(tables, problem.budget), reached)


def bound_of_tables(tables: list[np.ndarray], budget: int) -> float:
    """Return the dual bound for losses given as tables over 1, 2, ... clusters."""
    hulls = [lower_hull(table) for table in tables]
    gains = np.concatenate([-np.diff(hull) for hull in hulls])
    extra = budget - len(hulls)
    # On hulls the best allocation takes the largest gains first; its value is the dual optimum.
    taken = np.sort(gains)[::-1][:extra].sum() if extra else 0.0
    return float(sum(hull[0] for hull in hulls) - taken)


def lower_hull(losses: np.ndarray) -> np.ndarray:
    """Return the largest convex function below ``losses`` given at 1, 2, ..."""
    kept: list[int] = []
    for k in range(len(losses)):
        # Drop the last point while it lies on or above the line from its predecessor to this one.
        while len(kept) >= 2:
            a, b = kept[-2], kept[-1]
            if (losses[b] - losses[a]) * (k - a) >= (losses[k] - losses[a]) * (b - a):
                kept.pop()
            else:
                break
        kept.append(k)
    return np.interp(np.arange(len(losses)), kept, losses[kept])
