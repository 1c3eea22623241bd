"""Lightweight coresets: chances, weights and what they add up to on average."""

from __future__ import annotations

import numpy as np
import pytest

from c2tc_pipeline.bench.rivals.lightweight import LightweightCoreset


def chances(rows: np.ndarray) -> np.ndarray:
    """The formula as it is printed, row by row."""
    mean = rows.mean(axis=0)
    squares = [float(((row - mean) ** 2).sum()) for row in rows]
    return np.array([1 / (2 * len(rows)) + square / (2 * sum(squares)) for square in squares])


def skewed_class() -> np.ndarray:
    return np.random.default_rng(0).exponential(size=(12, 2)) ** 2


def test_weights_are_the_inverse_of_chances_times_draws() -> None:
    X = np.vstack([skewed_class(), skewed_class() + 5])
    coreset = LightweightCoreset(rows=10).fit(X, np.repeat([0, 1], 12))
    expected = 1 / (5 * chances(skewed_class()))
    assert coreset.sample_indices_ is not None
    assert coreset.weights_ is not None
    np.testing.assert_allclose(coreset.weights_, expected[coreset.sample_indices_ % 12], rtol=1e-5)


@pytest.mark.parametrize("count", [1, 5])
def test_rows_come_as_often_as_their_chances_say_and_weighted_sums_are_right_on_average(count: int) -> None:
    X = skewed_class()
    rng = np.random.default_rng(count)
    drawn, sums = np.zeros(12), []
    draws = 1500
    for _ in range(draws):
        made = LightweightCoreset().condense_class(X, count, rng)
        assert made.chosen is not None
        assert made.weights is not None
        np.add.at(drawn, made.chosen, 1)
        sums.append([made.weights.sum(), *(made.weights @ X[made.chosen]), made.weights @ X[made.chosen, 0] ** 2])
    q = chances(X)
    spread = np.sqrt(draws * count * q * (1 - q))
    assert (np.abs(drawn - draws * count * q) < 5 * spread).all()
    truth = np.array([12, *X.sum(axis=0), (X[:, 0] ** 2).sum()])
    found = np.array(sums)
    error = found.std(axis=0) / np.sqrt(draws)
    assert (np.abs(found.mean(axis=0) - truth) < 5 * error).all()
    # The test can tell: unweighted sums are off by far more.
    assert np.abs(np.mean(X[:, 0]) * 12 - 12 * (q @ X[:, 0])) > 5 * error[1]


def test_equal_rows_have_equal_weights() -> None:
    X = np.vstack([np.ones((10, 2)), np.zeros((10, 2))])
    coreset = LightweightCoreset(rows=8).fit(X, np.repeat([0, 1], 10))
    assert coreset.weights_ is not None
    np.testing.assert_allclose(coreset.weights_, 10 / 4)
