"""The optimal allocator and its bound against trying everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline.allocation import optimal
from c2tc_pipeline.allocation.hfils import HfilsAllocator
from c2tc_pipeline.allocation.optimal import OptimalAllocator, bound_of_tables
from c2tc_pipeline.allocation.problem import AllocationProblem
from c2tc_pipeline_tests.allocation.problems import best_objective, problems, table_problem, toy_problem

losses = st.lists(st.floats(0, 100) | st.integers(0, 5).map(float), min_size=1, max_size=12).map(np.array)


@given(problem=problems(), seed=st.integers(0, 99))
def test_nothing_is_better(problem: AllocationProblem, seed: int) -> None:
    best = best_objective(problem)
    assert OptimalAllocator().allocate(problem).objective == pytest.approx(best, rel=1e-8, abs=1e-12)
    assert HfilsAllocator().allocate(problem, random_state=seed).objective >= best * (1 - 1e-8) - 1e-12


@given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5), data=st.data())
def test_on_convex_curves_the_bound_is_reached(sizes: list[int], data: st.DataObject) -> None:
    problem = toy_problem(sizes, data.draw(st.integers(len(sizes), sum(sizes))))
    found = OptimalAllocator().allocate(problem)
    assert found.bound == pytest.approx(found.objective, rel=1e-9)


def test_large_problems_are_solved_greedily_with_a_true_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [np.array([10.0, 9.5, 9.0, 0.0]), np.array([10.0, 9.5, 9.0, 0.0])]
    problem = table_problem(*tables, budget=6)
    monkeypatch.setattr(optimal, "_MAX_STEPS", 0)
    found = OptimalAllocator().allocate(problem)
    assert found.counts.sum() == 6
    assert found.objective == problem.objective(found.counts)
    assert found.bound is not None
    assert found.bound <= best_objective(problem)


@given(tables=st.lists(losses, min_size=1, max_size=4), data=st.data())
def test_the_bound_is_the_best_of_all_prices(tables: list[np.ndarray], data: st.DataObject) -> None:
    budget = data.draw(st.integers(len(tables), sum(map(len, tables))))

    def dual(price: float) -> float:
        best = [(table + price * np.arange(1, len(table) + 1)).min() for table in tables]
        return float(sum(best) - price * budget)

    # The dual is piecewise linear in the price and bends only where two entries of a table cost the same.
    prices = {0.0} | {(t[a] - t[b]) / (b - a) for t in tables for b in range(len(t)) for a in range(b)}
    assert bound_of_tables(tables, budget) == pytest.approx(max(map(dual, prices)), abs=1e-7)
