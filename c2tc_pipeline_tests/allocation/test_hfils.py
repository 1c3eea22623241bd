"""HFILS step by step: its trace is replayed against the rules, ablations included."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.allocation.bound import dual_bound
from c2tc_pipeline.allocation.hfils import HfilsAllocator, _by_capacity
from c2tc_pipeline.allocation.problem import AllocationProblem
from c2tc_pipeline.allocation.result import Allocation
from c2tc_pipeline.allocation.shares import proportional_counts
from c2tc_pipeline.allocation.testing import TableLosses, toy_problem
from c2tc_pipeline_tests.allocation.problems import HFILS_VARIANTS, describe, problems, true_objective, unscaled


def constant_problem(sizes: list[int], budget: int) -> AllocationProblem:
    """Return a problem in which no move ever pays."""
    return AllocationProblem(np.array(sizes), budget, TableLosses([np.ones(n) for n in sizes]))


@pytest.mark.parametrize("allocator", HFILS_VARIANTS, ids=describe)
@settings(deadline=None, max_examples=40)
@given(
    problem=problems(rows=12),
    seed=st.integers(0, 2**32),
    patience=st.integers(1, 12),
    restarts=st.integers(0, 3),
    least_gain=st.sampled_from([0.0, 0.1, 1.6]),
)
def test_every_step_follows_the_rules(
    allocator: HfilsAllocator, problem: AllocationProblem, seed: int, patience: int, restarts: int, least_gain: float
) -> None:
    options = {**vars(allocator), "patience": patience, "restarts": restarts, "max_iter": 60, "least_gain": least_gain}
    found = HfilsAllocator(**options).allocate(problem, random_state=seed)
    replay(found, problem, HfilsAllocator(**options))


def replay(found: Allocation, problem: AllocationProblem, rules: HfilsAllocator) -> None:
    """Check a trace against Algorithms 1 to 3 as this project reads them."""
    seen = problem if rules.scale_factor else unscaled(problem)
    start, *steps = found.trace
    best_counts = np.array(start.counts)
    assert start.counts == tuple(proportional_counts(seen.sizes, seen.budget, seen.upper))
    assert start.accepted
    assert start.best == start.proposed == pytest.approx(true_objective(seen, start.counts), rel=1e-12)
    best, failures, restarts = start.best, 0, rules.restarts
    bar = start.best * (1 - rules.least_gain / seen.budget**2)
    limit = max(int(np.std(best_counts)), 1)
    assert start.step_limit == limit
    for number, step in enumerate(steps, start=1):
        if failures == rules.patience:
            assert restarts > 0
            restarts, failures = restarts - 1, 0
            limit = max(int(np.std(best_counts)), 1)
        assert step.iteration == number
        assert step.step_limit == limit >= 1
        check_move(np.array(step.counts), best_counts, seen, limit, rules)
        assert step.proposed == pytest.approx(true_objective(seen, step.counts), rel=1e-12)
        assert step.accepted == (step.proposed < best and step.proposed < bar)
        failures = 0 if step.accepted and best - step.proposed > rules.tolerance * best else failures + 1
        if step.accepted:
            best, best_counts = step.proposed, np.array(step.counts)
            limit = max(int(limit * rules.decay), 1)
        assert step.best == best
    assert found.objective == best
    assert tuple(found.counts) == tuple(best_counts)
    movable = any(
        best_counts[source] > 1 and (np.delete(seen.upper - best_counts, source) > 0).any()
        for source in range(len(best_counts))
    )
    assert (failures == rules.patience and not restarts) or len(steps) == rules.max_iter or not movable
    assert movable or not steps


def check_move(
    counts: np.ndarray, best_counts: np.ndarray, problem: AllocationProblem, limit: int, rules: HfilsAllocator
) -> None:
    """Check that one class gave to others, no more than it may, from the best allocation so far."""
    change = counts - best_counts
    (source,) = np.flatnonzero(change < 0)
    moved = -change[source]
    takers = np.flatnonzero(change > 0)
    room = np.delete(problem.upper - best_counts, source)
    assert change.sum() == 0
    assert ((counts >= 1) & (counts <= problem.upper)).all()
    assert 1 <= moved <= limit
    if not rules.soft_allocation:
        (taker,) = takers
        room = problem.upper[[taker]] - best_counts[[taker]]
    if not rules.soft_step:
        assert moved == min(limit, best_counts[source] - 1, room.sum())


@settings(deadline=None, max_examples=50)
@given(problem=problems(rising=False), seed=st.integers(0, 2**32))
def test_the_best_objective_never_rises(problem: AllocationProblem, seed: int) -> None:
    trace = HfilsAllocator().allocate(problem, random_state=seed).trace
    assert all(later.best <= earlier.best for earlier, later in itertools.pairwise(trace))


@settings(deadline=None, max_examples=40)
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_evaluations_are_the_losses_asked_for(problem: AllocationProblem, seed: int) -> None:
    found = HfilsAllocator().allocate(problem, random_state=seed)
    asked = {(index, k) for step in found.trace for index, k in enumerate(step.counts)}
    assert found.evaluations == len(asked)


@pytest.mark.parametrize("patience", [1, 4, 10])
def test_it_stops_after_that_many_failures_in_a_row(patience: int) -> None:
    found = HfilsAllocator(patience=patience, restarts=0).allocate(constant_problem([50, 30, 20], 20))
    assert len(found.trace) == 1 + patience
    assert not any(step.accepted for step in found.trace[1:])


@pytest.mark.parametrize("restarts", [1, 3])
def test_each_restart_gives_the_search_its_patience_back(restarts: int) -> None:
    found = HfilsAllocator(patience=4, restarts=restarts).allocate(constant_problem([50, 30, 20], 20))
    assert len(found.trace) == 1 + 4 * (1 + restarts)


def test_no_restarts_where_every_loss_costs_a_run() -> None:
    problem = constant_problem([50, 30, 20], 20)
    problem.losses.known_everywhere = False
    assert len(HfilsAllocator(patience=4).allocate(problem).trace) == 1 + 4


def test_restarts_close_most_of_the_gap_where_many_small_classes_wait() -> None:
    problem = toy_problem([20_000, 28_000, 3_500, 270, 950, 1_700, 2_000], budget=465, gamma=0.5)
    bound = dual_bound(problem, np.inf)
    assert bound is not None
    for seed in range(5):
        once = HfilsAllocator(restarts=0).allocate(problem, random_state=seed).objective
        again = HfilsAllocator().allocate(problem, random_state=seed).objective
        assert again - bound < 0.25 * (once - bound)


def test_improvements_reset_the_counter() -> None:
    # Each cluster moved from the large class to the small one halves the objective, and there are many to move.
    small = 2.0 ** -np.arange(60)
    problem = AllocationProblem(np.array([600, 60]), 66, TableLosses([np.zeros(600), small]), gamma=0.0)
    found = HfilsAllocator(patience=8, decay=0.01).allocate(problem, random_state=1)
    assert len(found.trace) > 25
    assert found.trace[-1].best < found.trace[0].best / 2**10


def test_small_improvements_are_taken_but_do_not_reset_the_counter() -> None:
    gentle = 1000.0 - np.arange(60)
    problem = AllocationProblem(np.array([600, 60]), 66, TableLosses([np.zeros(600), gentle]), gamma=0.0)
    found = HfilsAllocator(patience=5, decay=0.01, tolerance=0.1, restarts=0).allocate(problem)
    assert len(found.trace) == 6
    assert any(step.accepted for step in found.trace[1:])


@pytest.mark.parametrize(
    ("budget", "gain", "leaves"), [(4, 0.09, False), (4, 0.11, True), (40, 0.0009, False), (40, 0.0011, True)]
)
def test_shares_are_left_only_where_it_pays(budget: int, gain: float, leaves: bool) -> None:
    """One cluster less costs the large class nothing; one more lowers the objective by the gain."""
    share = budget // 4
    small = np.where(np.arange(1, 101) <= share, 1.0, 1 - gain)
    problem = AllocationProblem(np.array([300, 100]), budget, TableLosses([np.zeros(300), small]), gamma=0.0)
    found = HfilsAllocator().allocate(problem)
    assert (found.counts[1] > share) == leaves
    assert HfilsAllocator(least_gain=0).allocate(problem).counts[1] > share


def test_the_number_of_proposals_is_bounded() -> None:
    found = HfilsAllocator(max_iter=7, patience=100).allocate(constant_problem([50, 30, 20], 20))
    assert len(found.trace) == 8


def test_balanced_classes_still_move() -> None:
    flat, steep = np.full(20, 5.0), 100.0 / np.arange(1, 21)
    problem = AllocationProblem(np.array([20, 20]), 20, TableLosses([flat, steep]), gamma=0.0)
    found = HfilsAllocator(restarts=0).allocate(problem)
    assert all(step.step_limit == 1 for step in found.trace)
    assert found.counts[1] > 10


@pytest.mark.parametrize(
    ("sizes", "budget"),
    [([9], 4), ([9, 9, 9], 3), ([3, 4, 5], 12), ([1, 1], 2)],
    ids=["one class", "least", "most", "rare"],
)
def test_where_no_move_exists_the_search_ends_at_once(sizes: list[int], budget: int) -> None:
    found = HfilsAllocator().allocate(toy_problem(sizes, budget))
    assert len(found.trace) == 1


def test_without_soft_steps_the_first_step_is_the_largest() -> None:
    problem = constant_problem([800, 100, 100], 100)
    hard = HfilsAllocator(soft_step=False).allocate(problem)
    soft = HfilsAllocator().allocate(problem)
    start = np.array(hard.trace[0].counts)
    limit = hard.trace[0].step_limit
    assert limit == int(np.std(start)) > 9

    def moved(found: Allocation) -> set[int]:
        return {int(np.abs(np.array(step.counts) - start).sum() // 2) for step in found.trace[1:]}

    assert moved(hard) <= {limit, 9}
    assert len(moved(soft)) > 3


def test_the_scale_factor_can_be_switched_off() -> None:
    problem = toy_problem([900, 80, 20], 50, gamma=1.0)
    without = HfilsAllocator(scale_factor=False).allocate(problem)
    plain = HfilsAllocator().allocate(toy_problem([900, 80, 20], 50, gamma=0.0))
    assert without.to_dict() == plain.to_dict()
    assert without.counts.tolist() != HfilsAllocator().allocate(problem).counts.tolist()


def test_another_seed_searches_elsewhere() -> None:
    problem = toy_problem([900, 80, 20], 50)
    traces = {HfilsAllocator().allocate(problem, random_state=seed).trace for seed in range(5)}
    assert len(traces) == 5


@given(room=st.lists(st.integers(0, 50), min_size=1, max_size=8).filter(any), data=st.data())
def test_gifts_follow_the_room_that_is_left(room: list[int], data: st.DataObject) -> None:
    step = data.draw(st.integers(1, sum(room)))
    gifts = _by_capacity(step, np.array(room))
    assert gifts.sum() == step
    assert ((gifts >= 0) & (gifts <= room)).all()
    assert (np.abs(gifts - step * np.array(room) / sum(room)) <= 1).all()
