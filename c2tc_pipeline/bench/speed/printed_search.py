"""HFILS as the authors run it: a cold k-means for every new (class, k), nothing shared.

Written for faithfulness, not speed. Defects of the printed search are kept: it walks on from proposals that were worse,
and its patience counter never resets, so it ends after ``patience`` proposals.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans

from c2tc_pipeline.allocation.hfils import HfilsAllocator
from c2tc_pipeline.allocation.shares import proportional_counts

POINTS_A_CENTROID = 256
"""How many training rows a centroid the authors' k-means library takes by default; it draws them at random."""


@dataclass(frozen=True)
class SearchResult:
    """How a search ended.

    Parameters
    ----------
    objective : float or None
        The best objective found; None when the time ended before the first one was known.
    counts : ndarray of int
        Its allocation.
    runs : int
        K-means runs made.
    proposals : int
        Proposals whose objective became known.
    finished : bool
        Whether the search came to its end.
    """

    objective: float | None
    counts: np.ndarray
    runs: int
    proposals: int
    finished: bool


class _TimeIsUp(Exception):
    """The search may not begin another k-means run."""


def printed_search(
    classes: Sequence[np.ndarray],
    budget: int,
    gamma: float,
    *,
    points: int | None = None,
    patience: int = 10,
    seed: int = 0,
    time_limit: float = float("inf"),
    clock: Callable[[], float] = time.perf_counter,
) -> SearchResult:
    """Search for an allocation as printed, with up to 100 iterations of k-means for each question.

    Parameters
    ----------
    classes : sequence of ndarray
        The rows of each class.
    budget : int
        Clusters in all.
    gamma : float
        Exponent of class sizes in the objective.
    points : int, optional
        Most rows a centroid that k-means is trained on, drawn at random; the loss is over all rows either way.
    patience : int
        Proposals in all.
    seed : int
        Determines the search.
    time_limit : float
        Seconds after which no other k-means run begins.
    clock : callable
        Returns seconds.

    Examples
    --------
    >>> classes = [np.random.default_rng(c).random((30, 2)) for c in range(2)]
    >>> found = printed_search(classes, 6, 0.25)
    >>> int(found.counts.sum()), found.proposals, found.finished
    (6, 10, True)
    """
    rng = np.random.default_rng(seed)
    end = clock() + time_limit
    sizes = np.array([len(rows) for rows in classes])
    upper = np.minimum(budget - (len(sizes) - 1), sizes)
    known: dict[tuple[int, int], float] = {}

    def objective(counts: np.ndarray) -> float:
        for index, k in enumerate(counts.tolist()):
            if (index, k) not in known:
                if clock() > end:
                    raise _TimeIsUp
                known[index, k] = cold_loss(classes[index], k, points, seed) / float(sizes[index]) ** gamma
        return sum(known[index, k] for index, k in enumerate(counts.tolist()))

    counts = proportional_counts(sizes, budget, upper)
    best: float | None = None
    best_counts, proposals = counts, 0
    step_limit = max(int(np.std(counts)), 1)
    moves = HfilsAllocator()
    try:
        best = objective(counts)
        while proposals < patience:
            proposal = moves.propose(counts, upper, step_limit, rng)
            if proposal is None:
                break
            counts = proposal
            found = objective(counts)
            proposals += 1
            if found < best:
                best, best_counts = found, counts
                step_limit = max(int(step_limit * 0.5), 1)
    except _TimeIsUp:
        return SearchResult(best, best_counts, len(known), proposals, finished=False)
    return SearchResult(best, best_counts, len(known), proposals, finished=True)


def cold_loss(rows: np.ndarray, k: int, points: int | None, seed: int) -> float:
    """Return the loss over all rows of a k-means that begins from nothing, on all of them or on a sample.

    Examples
    --------
    >>> rows = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> cold_loss(rows, 2, None, 0)
    0.0
    """
    model = KMeans(k, n_init=1, max_iter=100, random_state=seed)
    if points is None or points * k >= len(rows):
        return float(model.fit(rows).inertia_)
    drawn = np.random.default_rng(seed).choice(len(rows), points * k, replace=False)
    return -float(model.fit(rows[drawn]).score(rows))
