"""Split a budget over classes in proportion to shares, and the fixed allocations that the paper compares with."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from c2tc_pipeline.allocation.optimal import dual_bound
from c2tc_pipeline.allocation.problem import Allocation, AllocationProblem, TraceStep
from c2tc_pipeline.common.defaults import checked_ratio
from c2tc_pipeline.common.errors import InputError


def budget_for_ratio(ratio: float, rows: int, classes: int) -> int:
    """Return the number of condensed rows for a ratio: ``max(C, round(r N))``."""
    return min(max(classes, round(checked_ratio(ratio) * rows)), rows)


def checked_budget(ratio: float, rows: int | None, n: int, classes: int) -> int:
    """Return how many condensed rows there will be, and refuse what can't be."""
    if rows is None:
        return budget_for_ratio(ratio, n, classes)
    if not isinstance(rows, Integral) or not classes <= rows <= n:
        raise InputError(
            f"A budget of {rows} condensed rows does not fit: it must be an integer, at least "
            f"{classes}, the number of classes, and at most {n}, the number of rows."
        )
    return int(rows)


def proportional_counts(shares: np.ndarray, budget: int, upper: np.ndarray) -> np.ndarray:
    """Split ``budget`` in proportion to ``shares``: at least 1 and at most ``upper`` each, with the sum exact.

    The rest goes to the largest remainders; what a full class cannot take goes to the others in proportion.
    """
    shares = np.asarray(shares, dtype=np.float64)
    upper = np.asarray(upper, dtype=np.int64)
    if not len(upper) <= budget <= upper.sum():
        raise ValueError(f"A budget of {budget} does not fit limits {upper.tolist()}.")
    counts = np.ones(len(upper), dtype=np.int64)
    # A class whose fair share is below 1 or above its limit is settled there; the others share the rest.
    settled = np.zeros(len(upper), dtype=bool)
    while True:
        free = ~settled
        left = budget - counts[settled].sum()
        if not free.any():
            break
        fair = (
            left * shares[free] / shares[free].sum()
            if shares[free].sum() > 0
            else np.full(free.sum(), left / free.sum())
        )
        too_low, too_high = fair < 1, fair > upper[free]
        if not (too_low.any() or too_high.any()):
            counts[free] = largest_remainders(fair, int(left))
            break
        # Settle the side that is off by more, so that one pass cannot settle everything against the budget.
        missing = (1 - fair[too_low]).sum()
        excess = (fair - upper[free])[too_high].sum()
        positions = np.flatnonzero(free)
        if missing >= excess:
            settled[positions[too_low]] = True
            counts[positions[too_low]] = 1
        else:
            settled[positions[too_high]] = True
            counts[positions[too_high]] = upper[positions[too_high]]
    return counts


def largest_remainders(fair: np.ndarray, total: int) -> np.ndarray:
    """Round fair shares to integers with the given sum."""
    counts = np.floor(fair + 1e-9).astype(np.int64)
    odd = total - counts.sum()
    counts[np.argsort(counts - fair, kind="stable")[:odd]] += 1
    return counts


class RatioAllocator:
    """Clusters in proportion to class sizes, at least one each."""

    name = "ratio"

    def allocate(self, problem: AllocationProblem, random_state: int = 0) -> Allocation:
        """Return the allocation, which is deterministic."""
        return _fixed(self.name, problem, problem.sizes)


class FipcAllocator:
    """The same number of clusters for every class (fixed instances per class), as far as classes have rows."""

    name = "fipc"

    def allocate(self, problem: AllocationProblem, random_state: int = 0) -> Allocation:
        """Return the allocation, which is deterministic."""
        return _fixed(self.name, problem, np.ones(len(problem.sizes)))


def _fixed(name: str, problem: AllocationProblem, shares: np.ndarray) -> Allocation:
    counts = proportional_counts(shares, problem.budget, problem.upper)
    objective = problem.objective(counts)
    step = TraceStep(0, objective, objective, True, 0, tuple(counts.tolist()))
    bound = dual_bound(problem, objective)
    return Allocation(name, counts, objective, problem.losses.runs, (step,), bound, problem.gamma)
