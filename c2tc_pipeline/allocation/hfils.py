"""HFILS: heuristic first-improvement local search (Algorithms 1 to 3 of the paper).

Deviations from the printed text, each because it contradicts itself: the start gives every class at least one cluster;
proposals start from the best allocation so far; the patience counter compares with the best objective *before* the
proposal; leftover clusters are handed out in as many passes as it takes.

Two additions. Restarts: the step shrinks with every success, so that a search with many small classes ends too early;
it begins again from its best allocation with the step of a start. And a minimum gain: at
a budget of a few rows one row is a large step for a gain that may be smaller than the error of the curves.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from c2tc_pipeline.allocation.optimal import dual_bound
from c2tc_pipeline.allocation.problem import Allocation, AllocationProblem, TraceStep
from c2tc_pipeline.allocation.shares import proportional_counts


@dataclass(kw_only=True, eq=False, repr=False)
class HfilsAllocator:
    """Local search over allocations, with random steps that shrink as the search succeeds.

    Parameters
    ----------
    max_iter : int, default=1000
        Maximum number of proposals (T in the paper).
    tolerance : float, default=0.01
        A relative improvement above this resets the patience counter (epsilon).
    patience : int, default=10
        Proposals in a row without such an improvement that end a round of the search (p).
    decay : float, default=0.5
        Factor of the largest step after an accepted proposal (l).
    soft_step, soft_allocation, scale_factor : bool, default=True
        False for the paper's ablations: always take the largest step; give all clusters to one class; gamma = 0.
    restarts : int, default=10
        Rounds after the first, within ``max_iter``; 0 is the paper's search. Ignored where losses cost k-means runs.
    least_gain : float, default=1.6
        The classes keep their shares unless the objective falls by more than this share of it, divided by the square
        of the budget: by 10 % for four condensed rows, by 1.6 % for ten, by 0.1 % for forty. 0 is the paper's search.
    """

    name = "hfils"

    max_iter: int = 1000
    tolerance: float = 0.01
    patience: int = 10
    decay: float = 0.5
    soft_step: bool = True
    soft_allocation: bool = True
    scale_factor: bool = True
    restarts: int = 10
    least_gain: float = 1.6

    def allocate(self, problem: AllocationProblem, random_state: int = 0) -> Allocation:
        """Search for an allocation; the same ``random_state`` gives the same search."""
        if not self.scale_factor:
            problem = dataclasses.replace(problem, gamma=0.0)
        rng = np.random.default_rng(random_state)
        best_counts = proportional_counts(problem.sizes, problem.budget, problem.upper)
        best = problem.objective(best_counts)
        bar = best * (1 - self.least_gain / problem.budget**2)
        step_limit = _first_step_limit(best_counts)
        trace = [TraceStep(0, best, best, True, step_limit, tuple(best_counts.tolist()))]
        rounds_left = self.restarts
        failures = 0
        for iteration in range(1, self.max_iter + 1):
            if failures >= self.patience:
                if not rounds_left:
                    break
                rounds_left -= 1
                failures, step_limit = 0, _first_step_limit(best_counts)
            counts = self.propose(best_counts, problem.upper, step_limit, rng)
            if counts is None:
                break
            objective = problem.objective(counts)
            improvement = (best - objective) / best if best > 0 else 0.0
            limit = step_limit
            accepted = objective < min(best, bar)
            if accepted:
                best, best_counts = objective, counts
                step_limit = max(int(step_limit * self.decay), 1)
            trace.append(TraceStep(iteration, objective, best, accepted, limit, tuple(counts.tolist())))
            failures = 0 if accepted and improvement > self.tolerance else failures + 1
        runs = problem.losses.runs
        bound = dual_bound(problem, best)
        return Allocation(self.name, best_counts, best, runs, tuple(trace), bound, problem.gamma)

    def propose(
        self, counts: np.ndarray, upper: np.ndarray, step_limit: int, rng: np.random.Generator
    ) -> np.ndarray | None:
        """Move clusters from one class to others (Algorithm 3); None when no move exists."""
        sources = np.flatnonzero(counts > 1)
        # Another class must have room for what the source gives.
        room = upper - counts
        sources = sources[room.sum() - room[sources] > 0]
        if not len(sources):
            return None
        source = int(rng.choice(sources))
        room[source] = 0
        step = int(rng.integers(1, step_limit + 1)) if self.soft_step else step_limit
        step = min(step, int(counts[source]) - 1, int(room.sum()))
        if not self.soft_allocation:
            target = int(rng.choice(np.flatnonzero(room)))
            step = min(step, int(room[target]))
            gifts = np.zeros_like(counts)
            gifts[target] = step
        else:
            gifts = _by_capacity(step, room)
        proposal = counts + gifts
        proposal[source] -= step
        return proposal


def _first_step_limit(counts: np.ndarray) -> int:
    return max(int(np.std(counts)), 1)


def _by_capacity(step: int, room: np.ndarray) -> np.ndarray:
    """Hand out ``step`` clusters in proportion to the room left, the remainder to the classes with most room."""
    gifts = (step * room) // room.sum()
    order = np.argsort(-room, kind="stable")
    left = step - int(gifts.sum())
    while left > 0:
        for target in order:
            if left > 0 and gifts[target] < room[target]:
                gifts[target] += 1
                left -= 1
    return gifts
