"""The authors' search against a second reading of its rules, and its cap and its limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans

from c2tc_pipeline.allocation.hfils import HfilsAllocator
from c2tc_pipeline.allocation.shares import proportional_counts
from c2tc_pipeline.bench.speed import printed_search as module
from c2tc_pipeline.bench.speed.printed_search import cold_loss, printed_search


@pytest.fixture
def classes() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.random((n, 3)) for n in (120, 40, 9)]


def squared_distances(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return ((rows[:, None] - centres[None]) ** 2).sum(axis=2)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_follows_the_printed_rules(classes: list[np.ndarray], seed: int) -> None:
    sizes, budget, gamma = np.array([120, 40, 9]), 14, 0.25

    def objective(counts: np.ndarray) -> float:
        total = 0.0
        for rows, k in zip(classes, counts, strict=True):
            fitted = KMeans(int(k), n_init=1, max_iter=100, random_state=seed).fit(rows)
            total += squared_distances(rows, fitted.cluster_centers_).min(axis=1).sum() / len(rows) ** gamma
        return total

    upper = np.minimum(budget - 2, sizes)
    rng = np.random.default_rng(seed)
    visited = [proportional_counts(sizes, budget, upper)]
    values = [objective(visited[0])]
    limit = max(int(np.std(visited[0])), 1)
    for _ in range(10):
        # From wherever the search stands, better or worse; the step shrinks when a proposal is the best so far.
        following = HfilsAllocator().propose(visited[-1], upper, limit, rng)
        assert following is not None
        value = objective(following)
        if value < min(values):
            limit = max(limit // 2, 1)
        visited.append(following)
        values.append(value)
    found = printed_search(classes, budget, gamma, seed=seed)
    assert found.objective == pytest.approx(min(values))
    assert found.counts.tolist() == visited[int(np.argmin(values))].tolist()
    assert found.proposals == 10
    assert found.finished
    assert found.runs == len({(c, k) for counts in visited for c, k in enumerate(counts.tolist())})


def test_the_capped_search_trains_on_few_rows_and_is_judged_on_all(
    classes: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[tuple[int, int, Any]] = []

    class Watched(KMeans):
        def fit(self, X: np.ndarray, y: Any = None, sample_weight: Any = None) -> Any:
            fits.append((self.n_clusters, len(X), self))
            return super().fit(X, y, sample_weight)

    monkeypatch.setattr(module, "KMeans", Watched)
    assert printed_search(classes, 12, 0.25, points=4).finished
    assert all(rows <= 4 * k for k, rows, _ in fits)
    # The class of nine rows is never sampled, that of 120 always is.
    assert {rows == 4 * k for k, rows, _ in fits} == {True, False}
    fits.clear()
    loss = cold_loss(classes[0], 5, 4, 0)
    [(k, rows, model)] = fits
    assert (k, rows) == (5, 20)
    assert loss == pytest.approx(squared_distances(classes[0], model.cluster_centers_).min(axis=1).sum())


def test_a_cap_that_nothing_reaches_changes_nothing(classes: list[np.ndarray]) -> None:
    free, capped = (printed_search(classes, 12, 0.25, points=points) for points in (None, 256))
    assert free.objective == capped.objective
    assert free.counts.tolist() == capped.counts.tolist()


@pytest.mark.parametrize(("limit", "runs"), [(1.5, 1), (4.5, 4)])
def test_the_time_ends_it_between_two_runs(classes: list[np.ndarray], limit: float, runs: int) -> None:
    ticks = iter(range(1000))
    found = printed_search(classes, 12, 0.25, time_limit=limit, clock=lambda: next(ticks))
    assert not found.finished
    assert found.runs == runs
    # Three classes: less than three runs are no objective, and three are that of the start.
    assert (found.objective is None) == (runs < 3)
    if found.objective is not None:
        start = printed_search(classes, 12, 0.25, patience=0)
        assert found.objective == start.objective
        assert found.proposals == 0
