"""CCAP, the class-adaptive cluster allocation problem: how a budget of condensed rows is split over the classes.

The problem, its lower bound and its solvers, for losses that come from elsewhere; no k-means, no tables.
"""

from typing import Protocol

from c2tc_pipeline.allocation.hfils import HfilsAllocator
from c2tc_pipeline.allocation.optimal import OptimalAllocator
from c2tc_pipeline.allocation.problem import Allocation, AllocationProblem
from c2tc_pipeline.allocation.shares import FipcAllocator, RatioAllocator
from c2tc_pipeline.common.registry import Registry

ALLOCATION_VERSION = 5
"""Raise it when the same loss curves give another allocation."""


class Allocator(Protocol):
    """Solves an allocation problem."""

    name: str

    def allocate(self, problem: AllocationProblem, random_state: int = 0) -> Allocation:
        """Return an allocation that adds up to the problem's budget."""


ALLOCATORS = Registry(
    "allocation", {kind.name: kind for kind in (HfilsAllocator, OptimalAllocator, RatioAllocator, FipcAllocator)}
)


def make_allocator(allocation: "str | Allocator") -> Allocator:
    """Return the allocator of that name; an allocator object passes through."""
    allocator: Allocator = ALLOCATORS.make(allocation) if isinstance(allocation, str) else allocation
    return allocator
