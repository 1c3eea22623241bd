"""Small allocation problems for hypothesis, and their answers by trying everything."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from c2tc_pipeline.allocation import Allocator
from c2tc_pipeline.allocation.hfils import HfilsAllocator
from c2tc_pipeline.allocation.optimal import OptimalAllocator
from c2tc_pipeline.allocation.problem import AllocationProblem, CurveLosses
from c2tc_pipeline.allocation.shares import FipcAllocator, RatioAllocator


class TableLosses(CurveLosses):
    """Losses given as one table per class, over 1, 2, ... clusters."""

    def __init__(self, tables: Sequence[np.ndarray]) -> None:
        super().__init__([])
        self.tables = [np.asarray(table, dtype=np.float64) for table in tables]
        self.asked: set[tuple[int, int]] = set()

    @property
    def runs(self) -> int:
        return len(self.asked)

    def wcss(self, index: int, k: int) -> float:
        self.asked.add((index, k))
        return float(self.tables[index][k - 1])

    def table(self, index: int, largest: int) -> np.ndarray:
        return self.tables[index][:largest]


def table_problem(*tables: np.ndarray, budget: int, gamma: float = 0.0, min_rows: int = 1) -> AllocationProblem:
    """Return a problem with these losses, one row for each entry."""
    sizes = np.array([len(table) for table in tables])
    return AllocationProblem(sizes, budget, TableLosses(tables), gamma, min_rows)


def toy_problem(sizes: Sequence[int], budget: int, gamma: float = 0.25) -> AllocationProblem:
    """Return a problem whose class losses fall like ``n / k``."""
    return table_problem(*(n / np.arange(1, n + 1) for n in sizes), budget=budget, gamma=gamma)


HFILS_VARIANTS = [
    HfilsAllocator(soft_step=soft_step, soft_allocation=soft_allocation, scale_factor=scale_factor)
    for soft_step, soft_allocation, scale_factor in itertools.product([True, False], repeat=3)
]
ALL_ALLOCATORS: list[Allocator] = [*HFILS_VARIANTS, OptimalAllocator(), RatioAllocator(), FipcAllocator()]


def describe(allocator: Allocator) -> str:
    switches = [name for name, value in vars(allocator).items() if value is False]
    return " without ".join([allocator.name, *switches])


@st.composite
def problems(draw: st.DrawFn, *, classes: int = 4, rows: int = 7, rising: bool = True) -> AllocationProblem:
    """Draw class sizes, a budget and a table of losses; ``rising`` allows tables that a sane k-means never gives."""
    sizes = draw(st.lists(st.integers(1, rows), min_size=1, max_size=classes))
    budget = draw(st.integers(len(sizes), sum(sizes)))
    loss = st.floats(0, 100) | st.integers(1, 9).map(float)
    tables = [np.array(draw(st.lists(loss, min_size=n, max_size=n))) for n in sizes]
    if not rising or draw(st.booleans()):
        tables = [np.sort(table)[::-1] for table in tables]
    return table_problem(*tables, budget=budget, gamma=draw(st.sampled_from([0.0, 0.25, 1.0])))


def all_allocations(problem: AllocationProblem) -> list[tuple[int, ...]]:
    """Return every way to spend the budget."""
    choices = itertools.product(*(range(1, size + 1) for size in problem.sizes.tolist()))
    return [counts for counts in choices if sum(counts) == problem.budget]


def true_objective(problem: AllocationProblem, counts: tuple[int, ...]) -> float:
    """Return the objective as the paper writes it."""
    assert isinstance(problem.losses, TableLosses)
    tables = problem.losses.tables
    return sum(tables[i][k - 1] / problem.sizes[i] ** problem.gamma for i, k in enumerate(counts))


def best_objective(problem: AllocationProblem) -> float:
    return min(true_objective(problem, counts) for counts in all_allocations(problem))


def unscaled(problem: AllocationProblem) -> AllocationProblem:
    """Return the problem without the scale factor."""
    return AllocationProblem(problem.sizes, problem.budget, problem.losses, gamma=0.0)
