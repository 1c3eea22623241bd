"""The two fixed allocations that the paper compares with: in proportion to class sizes, and the same for each class."""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.allocation.bound import dual_bound
from c2tc_pipeline.allocation.problem import AllocationProblem
from c2tc_pipeline.allocation.result import Allocation, TraceStep
from c2tc_pipeline.allocation.shares import proportional_counts


class RatioAllocator:
    """Clusters in proportion to class sizes, at least one each.

    Examples
    --------
    >>> from c2tc_pipeline.allocation.testing import toy_problem
    >>> RatioAllocator().allocate(toy_problem([80, 20], budget=10)).counts
    array([8, 2])
    """

    name = "ratio"

    def allocate(self, problem: AllocationProblem, random_state: int = 0) -> Allocation:
        """Return the allocation; nothing here is random."""
        return _fixed(self.name, problem, proportional_counts(problem.sizes, problem.budget, problem.upper))


class FipcAllocator:
    """The same number of clusters for every class (fixed instances per class), as far as classes have rows.

    Examples
    --------
    >>> from c2tc_pipeline.allocation.testing import toy_problem
    >>> FipcAllocator().allocate(toy_problem([80, 20], budget=10)).counts
    array([5, 5])
    """

    name = "fipc"

    def allocate(self, problem: AllocationProblem, random_state: int = 0) -> Allocation:
        """Return the allocation; nothing here is random."""
        return _fixed(
            self.name, problem, proportional_counts(np.ones(len(problem.sizes)), problem.budget, problem.upper)
        )


def _fixed(name: str, problem: AllocationProblem, counts: np.ndarray) -> Allocation:
    objective = problem.objective(counts)
    step = TraceStep(0, objective, objective, True, 0, tuple(counts.tolist()))
    bound = dual_bound(problem, objective)
    return Allocation(name, counts, objective, problem.losses.runs, (step,), bound, problem.gamma)
