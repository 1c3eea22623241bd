"""Herding against the plain greedy definition."""

from __future__ import annotations

import numpy as np
import pytest

from c2tc_pipeline.bench.rivals.herding import Herding


def greedy_herding(X: np.ndarray, count: int) -> list[int]:
    """Try every row that is left at every pick, and measure."""
    mean = X.mean(axis=0)
    picked: list[int] = []
    for _ in range(count):
        left = [row for row in range(len(X)) if row not in picked]
        picked.append(min(left, key=lambda row: float(np.linalg.norm(X[[*picked, row]].mean(axis=0) - mean))))
    return picked


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_brute_force(seed: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    # Rows of very different length: without their squares, long rows would win every product.
    X = rng.normal(size=(60, 3)) * rng.exponential(size=(60, 1)) + offset
    herding = Herding(rows=40)
    herding.fit_resample(X, np.repeat([0, 1], 30))
    expected = [*greedy_herding(X[:30], 20), *(30 + row for row in greedy_herding(X[30:], 20))]
    assert herding.sample_indices_ is not None
    assert herding.sample_indices_.tolist() == expected


def test_the_mean_is_closer_than_that_of_random_rows() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((2000, 8)), np.repeat([0, 1], 1000)
    kept, labels = Herding(rows=40).fit_resample(X, y)
    for label in (0, 1):
        mean = X[y == label].mean(axis=0)
        ours = np.linalg.norm(kept[labels == label].mean(axis=0) - mean)
        random = [np.linalg.norm(rng.choice(X[y == label], 20).mean(axis=0) - mean) for _ in range(200)]
        assert ours < min(random) / 2


def test_huge_numbers_do_not_overflow() -> None:
    X = np.random.default_rng(0).random((60, 3))
    y = np.repeat([0, 1], 30)
    # A power of two changes no digit of the numbers.
    plain, huge = (Herding(rows=20).fit(X * scale, y).sample_indices_ for scale in (1.0, 2.0**100))
    np.testing.assert_array_equal(plain, huge)
