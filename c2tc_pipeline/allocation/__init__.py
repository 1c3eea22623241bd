"""CCAP, the class-adaptive cluster allocation problem: how a budget of condensed rows is split over the classes.

The problem, its lower bound and its solvers, for losses that come from elsewhere; no k-means, no tables.
"""

from typing import Protocol

from c2tc_pipeline.allocation.hfils import HfilsAllocator
from c2tc_pipeline.allocation.optimal import OptimalAllocator
from c2tc_pipeline.allocation.problem import Allocation, AllocationProblem, CurveLosses, TraceStep
from c2tc_pipeline.allocation.shares import FipcAllocator, RatioAllocator, budget_for_ratio, proportional_counts
from c2tc_pipeline.common.errors import InputError

ALLOCATION_VERSION = 5
"""Raise it when the same loss curves give another allocation."""


class Allocator(Protocol):
    """Solves an allocation problem."""

    name: str

    def allocate(self, problem: AllocationProblem, random_state: int = 0) -> Allocation:
        """Return an allocation that adds up to the problem's budget."""


ALLOCATORS: dict[str, type] = {
    kind.name: kind for kind in (HfilsAllocator, OptimalAllocator, RatioAllocator, FipcAllocator)
}


def make_allocator(allocation: "str | Allocator") -> Allocator:
    """Return the allocator of that name; an allocator object passes through."""
    if not isinstance(allocation, str):
        return allocation
    if allocation not in ALLOCATORS:
        raise InputError(f"Allocation {allocation!r} is unknown; choose one of: {', '.join(ALLOCATORS)}.")
    allocator: Allocator = ALLOCATORS[allocation]()
    return allocator


__all__ = [
    "ALLOCATORS",
    "Allocation",
    "AllocationProblem",
    "Allocator",
    "CurveLosses",
    "FipcAllocator",
    "HfilsAllocator",
    "OptimalAllocator",
    "RatioAllocator",
    "TraceStep",
    "budget_for_ratio",
    "make_allocator",
    "proportional_counts",
]
