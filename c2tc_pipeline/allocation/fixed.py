"""The fixed allocations that the paper compares with: in proportion to class sizes, and the same for each class."""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.allocation.optimal import dual_bound
from c2tc_pipeline.allocation.problem import AllocationProblem
from c2tc_pipeline.allocation.result import Allocation, TraceStep
from c2tc_pipeline.allocation.shares import proportional_counts


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
