"""K-center against the plain definition and against the best possible centres."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from c2tc_pipeline.bench.rivals.k_center import KCenter
from c2tc_pipeline.common.errors import InputError


def farthest_first(X: np.ndarray, first: int, count: int) -> list[int]:
    """Measure every row against every pick."""
    picked = [first]
    while len(picked) < count:
        distances = cdist(X, X[picked]).min(axis=1)
        distances[picked] = -1
        picked.append(int(distances.argmax()))
    return picked


def two_classes(seed: int, rows: int = 30) -> tuple[np.ndarray, np.ndarray]:
    return np.random.default_rng(seed).normal(size=(2 * rows, 3)), np.repeat([0, 1], rows)


@pytest.mark.parametrize("start", ["mean", "random"])
@pytest.mark.parametrize("seed", range(5))
def test_brute_force(seed: int, start: str) -> None:
    X, y = two_classes(seed)
    sampler = KCenter(rows=40, start=start, random_state=seed).fit(X, y)
    chosen = sampler.sample_indices_
    assert chosen is not None
    for offset, picks in ((0, chosen[:20]), (30, chosen[20:] - 30)):
        rows = X[offset : offset + 30]
        if start == "mean":
            assert picks[0] == np.linalg.norm(rows - rows.mean(axis=0), axis=1).argmin()
        assert picks.tolist() == farthest_first(rows, int(picks[0]), 20)


def test_a_random_start_goes_by_the_seed() -> None:
    X, y = two_classes(0)
    starts = {
        int(KCenter(rows=4, start="random", random_state=seed).fit(X, y).sample_indices_[0])  # type: ignore[index]
        for seed in range(10)
    }
    assert len(starts) > 3


@pytest.mark.parametrize("seed", range(10))
def test_the_radius_is_at_most_twice_the_smallest_possible(seed: int) -> None:
    X, y = two_classes(seed, rows=12)
    kept, _ = KCenter(rows=6).fit_resample(X, y)
    for rows, centres in ((X[:12], kept[:3]), (X[12:], kept[3:])):
        between = cdist(rows, rows)
        best = min(between[:, list(three)].min(axis=1).max() for three in combinations(range(12), 3))
        radius = cdist(rows, centres).min(axis=1).max()
        assert best - 1e-6 <= radius <= 2 * best + 1e-6


def test_distinct_rows_come_before_equal_ones() -> None:
    rng = np.random.default_rng(0)
    distinct = rng.random((8, 3)).astype(np.float32) + 100
    X = np.vstack([np.repeat(distinct, 5, axis=0), rng.random((40, 3))])
    kept, labels = KCenter(rows=20).fit_resample(X, np.repeat([0, 1], 40))
    first = kept[labels == 0]
    assert len(first) == 10
    assert len(np.unique(first[:8], axis=0)) == 8


def test_an_unknown_start_is_refused() -> None:
    X, y = two_classes(0)
    with pytest.raises(InputError, match=r"^Start 'end' is unknown; choose one of: mean, random\.$"):
        KCenter(start="end").fit_resample(X, y)
