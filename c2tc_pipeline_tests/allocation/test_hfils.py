"""HFILS: its trace is replayed against the rules, ablations included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline.allocation.hfils import HfilsAllocator
from c2tc_pipeline.allocation.problem import Allocation, AllocationProblem
from c2tc_pipeline.allocation.shares import proportional_counts
from c2tc_pipeline_tests.allocation.problems import (
    HFILS_VARIANTS,
    describe,
    problems,
    table_problem,
    true_objective,
    unscaled,
)

NO_MOVE_PAYS = table_problem(*(np.ones(n) for n in (50, 30, 20)), budget=20)


@pytest.mark.parametrize("allocator", HFILS_VARIANTS, ids=describe)
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
    assert found.evaluations == len({(index, k) for step in found.trace for index, k in enumerate(step.counts)})


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
    room = np.delete(problem.upper - best_counts, source)
    assert change.sum() == 0
    assert ((counts >= 1) & (counts <= problem.upper)).all()
    assert 1 <= moved <= limit
    if not rules.soft_allocation:
        (taker,) = np.flatnonzero(change > 0)
        room = problem.upper[[taker]] - best_counts[[taker]]
    else:
        # Gifts follow the room that is left.
        assert (np.abs(np.delete(change, source) - moved * room / room.sum()) <= 1).all()
    if not rules.soft_step:
        assert moved == min(limit, best_counts[source] - 1, room.sum())


ENDS = [({"patience": 1, "restarts": 0}, 1), ({"patience": 10, "restarts": 0}, 10), ({"patience": 4, "restarts": 1}, 8)]
ENDS += [({"patience": 4, "restarts": 3}, 16), ({"patience": 100, "max_iter": 7}, 7)]


@pytest.mark.parametrize(("options", "proposals"), ENDS)
def test_patience_restarts_and_max_iter_end_the_search(options: dict[str, int], proposals: int) -> None:
    found = HfilsAllocator(**options).allocate(NO_MOVE_PAYS)  # type: ignore[arg-type]
    assert len(found.trace) == 1 + proposals
    assert not any(step.accepted for step in found.trace[1:])


@pytest.mark.parametrize(
    ("budget", "gain", "leaves"), [(4, 0.09, False), (4, 0.11, True), (40, 0.0009, False), (40, 0.0011, True)]
)
def test_shares_are_left_only_where_it_pays(budget: int, gain: float, leaves: bool) -> None:
    """One cluster less costs the large class nothing; one more lowers the objective by the gain."""
    share = budget // 4
    small = np.where(np.arange(1, 101) <= share, 1.0, 1 - gain)
    problem = table_problem(np.zeros(300), small, budget=budget)
    found = HfilsAllocator().allocate(problem)
    assert (found.counts[1] > share) == leaves
    assert HfilsAllocator(least_gain=0).allocate(problem).counts[1] > share
