"""What holds for every allocator, the ablations included."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.allocation import ALLOCATORS, Allocator, make_allocator
from c2tc_pipeline.allocation.hfils import HfilsAllocator
from c2tc_pipeline.allocation.problem import Allocation, AllocationProblem
from c2tc_pipeline.allocation.shares import RatioAllocator
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.allocation.problems import (
    ALL_ALLOCATORS,
    best_objective,
    describe,
    problems,
    toy_problem,
    true_objective,
    unscaled,
)

each_allocator = pytest.mark.parametrize("allocator", ALL_ALLOCATORS, ids=describe)


def as_seen_by(allocator: Allocator, problem: AllocationProblem) -> AllocationProblem:
    scaled = getattr(allocator, "scale_factor", True)
    return problem if scaled else unscaled(problem)


@each_allocator
@settings(max_examples=30)
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_results_are_feasible_true_reproducible_and_stored_as_json(
    allocator: Allocator, problem: AllocationProblem, seed: int
) -> None:
    found = allocator.allocate(problem, random_state=seed)
    seen = as_seen_by(allocator, problem)
    assert found.counts.sum() == problem.budget
    assert ((found.counts >= 1) & (found.counts <= problem.sizes)).all()
    assert found.gamma == seen.gamma
    assert found.objective == pytest.approx(true_objective(seen, tuple(found.counts)), rel=1e-12)
    assert found.bound is not None
    assert found.bound <= min(found.objective, best_objective(seen) * (1 + 1e-9) + 1e-12)
    assert found.gap is not None
    assert found.gap >= 0
    assert found.trace[-1].best == found.objective
    assert allocator.allocate(problem, random_state=seed).trace == found.trace
    back = Allocation.from_dict(json.loads(json.dumps(found.to_dict())))
    assert back.counts.dtype == np.int64
    assert back.to_dict() == found.to_dict()
    assert back.trace == found.trace


@each_allocator
@pytest.mark.parametrize(
    ("sizes", "budget"),
    [([5], 1), ([5], 5), ([1, 1, 1], 3), ([10**6, 1, 1], 3), ([400, 1], 401), ([3, 2, 400], 405)],
)
def test_the_ends_of_the_range(allocator: Allocator, sizes: list[int], budget: int) -> None:
    found = allocator.allocate(toy_problem(sizes, budget))
    expected = [1] * len(sizes) if budget == len(sizes) else sizes
    assert found.counts.tolist() == expected


def test_names_make_allocators_and_allocators_pass_through() -> None:
    assert list(ALLOCATORS) == ["hfils", "optimal", "ratio", "fipc"]
    for name, kind in ALLOCATORS.items():
        made = make_allocator(name)
        assert type(made) is kind
        assert made.name == name == made.allocate(toy_problem([4, 3], 4)).method
    own = HfilsAllocator(patience=3)
    assert make_allocator(own) is own
    with pytest.raises(InputError, match="greedy"):
        make_allocator("greedy")


def test_fixed_allocations_do_as_their_names_say() -> None:
    problem = toy_problem([600, 300, 90, 10], budget=100)
    assert RatioAllocator().allocate(problem).counts.tolist() == [60, 30, 9, 1]
    assert make_allocator("fipc").allocate(problem).counts.tolist() == [30, 30, 30, 10]
    # Without a bound there is no gap.
    assert Allocation("ratio", np.array([1]), 2.0, 1, (), None, 0.25).gap is None
    assert Allocation("ratio", np.array([1]), 0.0, 1, (), 0.0, 0.25).gap == 0
