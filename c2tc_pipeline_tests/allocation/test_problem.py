"""The problem and where its losses come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from c2tc_pipeline.allocation import ALLOCATORS, make_allocator
from c2tc_pipeline.allocation.hfils import HfilsAllocator
from c2tc_pipeline.allocation.problem import AllocationProblem, CurveLosses
from c2tc_pipeline.clustering.loss_curves import LossCurve
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.allocation.problems import TableLosses, table_problem


def test_the_objective_is_the_papers() -> None:
    tables = [np.array([9.0, 4.0]), np.array([8.0, 6.0, 3.0])]
    problem = table_problem(*tables, budget=4, gamma=0.5)
    assert problem.objective([1, 3]) == pytest.approx(9 / 2**0.5 + 3 / 3**0.5)
    assert problem.upper.tolist() == [2, 3]
    np.testing.assert_allclose(problem.loss_table(1), tables[1] / 3**0.5)


IMPOSSIBLE: list[dict[str, Any]] = [{"sizes": np.array([3, 0])}, {"budget": 1}, {"budget": 8}]
IMPOSSIBLE += [{"gamma": gamma} for gamma in (-0.1, 1.5, float("nan"))] + [{"min_rows": 4}, {"min_rows": 2}]


@pytest.mark.parametrize("change", IMPOSSIBLE, ids=str)
def test_an_impossible_problem_is_refused(change: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"sizes": np.array([3, 4]), "budget": 5, "losses": TableLosses([]), "gamma": 0.25}
    with pytest.raises(InputError):
        AllocationProblem(**{**arguments, **change})


def test_curves_are_read_point_by_point_or_at_once() -> None:
    curves = [
        LossCurve(50, 50, np.array([1, 5, 20]), np.array([90.0, 30.0, 10.0]), 50),
        LossCurve(9, 4, np.array([1, 4]), np.array([7.0, 0.0]), 9),
    ]
    losses = CurveLosses(curves)
    assert losses.runs == 5
    for index, rows in enumerate((50, 9)):
        table = losses.table(index, rows)
        assert table == pytest.approx([losses.wcss(index, k) for k in range(1, rows + 1)], rel=1e-12)
        assert table[-1] == 0


@pytest.mark.parametrize(
    ("sizes", "budget", "min_rows", "upper"),
    [([100, 100, 2], 10, 1, [8, 8, 2]), ([100, 17, 5], 9, 5, [7, 3, 1])],
)
def test_every_class_has_an_upper_limit(sizes: list[int], budget: int, min_rows: int, upper: list[int]) -> None:
    problem = table_problem(*map(np.ones, sizes), budget=budget, min_rows=min_rows)
    assert problem.upper.tolist() == upper
    assert [len(problem.loss_table(index)) for index in range(3)] == upper


@pytest.mark.parametrize("allocator", [*ALLOCATORS, HfilsAllocator(scale_factor=False)], ids=[*ALLOCATORS, "unscaled"])
def test_allocators_respect_the_minimum_size(allocator: str | HfilsAllocator) -> None:
    sizes = np.array([60, 33, 12])
    losses = TableLosses([n**2 / np.arange(1, n + 1) for n in sizes])
    # All the room there is: every class ends at its limit.
    problem = AllocationProblem(sizes, 20, losses, min_rows=5)
    assert make_allocator(allocator).allocate(problem).counts.tolist() == [12, 6, 2]
    problem = AllocationProblem(sizes, 9, losses, min_rows=5)
    counts = make_allocator(allocator).allocate(problem).counts
    assert int(counts.sum()) == 9
    assert (5 * counts <= sizes).all()
