"""A lower bound on the objective of any allocation: the Lagrangian dual of CCAP.

Pricing clusters at ``p`` each, every class can choose for itself. The sum of its best choices minus what the budget
costs is a lower bound for every ``p``; the best price gives the best bound. On convex curves it equals the optimum.
"""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.allocation.problem import AllocationProblem


def lower_hull(losses: np.ndarray) -> np.ndarray:
    """Return the largest convex function below ``losses`` given at 1, 2, ..., as an array.

    Examples
    --------
    >>> lower_hull(np.array([10.0, 9.0, 2.0, 1.0]))
    array([10.,  6.,  2.,  1.])
    """
    kept: list[int] = []
    for k in range(len(losses)):
        # Drop the last point while it lies on or above the line from the one before it to this one.
        while len(kept) >= 2:
            a, b = kept[-2], kept[-1]
            if (losses[b] - losses[a]) * (k - a) >= (losses[k] - losses[a]) * (b - a):
                kept.pop()
            else:
                break
        kept.append(k)
    return np.interp(np.arange(len(losses)), kept, losses[kept])


def dual_bound(problem: AllocationProblem, reached: float) -> float | None:
    """Return the bound when every loss is known at once, as on curves, and None when each costs a k-means run.

    Parameters
    ----------
    problem : AllocationProblem
        What is to be bounded.
    reached : float
        The objective of some allocation; rounding in the sums could otherwise put the bound a hair above it.

    Examples
    --------
    >>> from c2tc_pipeline.allocation.testing import toy_problem
    >>> problem = toy_problem([80, 20], budget=10)
    >>> reached = problem.objective([8, 2])
    >>> dual_bound(problem, reached) <= reached
    True
    """
    if not problem.losses.known_everywhere:
        return None
    tables = [problem.loss_table(i) for i in range(len(problem.sizes))]
    return min(bound_of_tables(tables, problem.budget), reached)


def bound_of_tables(tables: list[np.ndarray], budget: int) -> float:
    """Return the dual bound for losses given as tables over 1, 2, ... clusters."""
    hulls = [lower_hull(table) for table in tables]
    gains = np.concatenate([-np.diff(hull) for hull in hulls])
    extra = budget - len(hulls)
    # On hulls the best allocation takes the largest gains first: its value is the dual optimum.
    taken = np.sort(gains)[::-1][:extra].sum() if extra else 0.0
    return float(sum(hull[0] for hull in hulls) - taken)
