"""The cheapest assignment with a least size, against scipy's solver of assignment problems."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from c2tc_pipeline.clustering import least_assignment
from c2tc_pipeline.clustering.least_assignment import assign_at_least


def squared_gaps(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return ((X[:, None] - centers[None]) ** 2).sum(axis=2)


def cheapest(gaps: np.ndarray, least: int) -> float:
    """Solve it as an assignment problem: ``least`` places at each centre, and free places at the nearest one."""
    n, k = gaps.shape
    free = np.repeat(gaps.min(axis=1)[:, None], n - k * least, axis=1)
    costs = np.hstack([np.repeat(gaps, least, axis=1), free])
    rows, places = linear_sum_assignment(costs)
    return float(costs[rows, places].sum())


@settings(deadline=None, max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(1, 7),
    least=st.integers(1, 5),
    spare=st.integers(0, 15),
    columns=st.integers(1, 3),
    digits=st.integers(0, 3),
)
def test_it_is_the_cheapest(seed: int, k: int, least: int, spare: int, columns: int, digits: int) -> None:
    rng = np.random.default_rng(seed)
    # Few digits make equal rows, equal centres and ties.
    X = rng.normal(size=(k * least + spare, columns)).round(digits)
    centers = 3 * rng.normal(size=(k, columns)).round(digits)
    gaps = squared_gaps(X, centers)
    labels = assign_at_least(X, centers, gaps.argmin(axis=1), least)
    assert np.bincount(labels, minlength=k).min() >= least
    assert gaps[np.arange(len(X)), labels].sum() == pytest.approx(cheapest(gaps, least), abs=1e-9)


def test_a_chain_of_moves_beats_the_direct_one() -> None:
    # The third centre lacks a row; taking one from the second, which takes one from the first, costs less than
    # carrying a row of the first all the way.
    X = np.array([[0.0], [0.0], [0.4], [1.0], [1.4], [2.0]])
    centers = np.array([[0.0], [1.0], [2.0]])
    labels = assign_at_least(X, centers, np.array([0, 0, 0, 1, 1, 2]), 2)
    assert labels.tolist() == [0, 0, 1, 1, 2, 2]


def test_an_assignment_that_will_do_stays() -> None:
    X = np.arange(6.0)[:, None]
    nearest = np.array([0, 0, 0, 1, 1, 1])
    assert assign_at_least(X, np.array([[1.0], [4.0]]), nearest, 3).tolist() == nearest.tolist()


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(5, 30), least=st.integers(1, 4), spare=st.integers(0, 20))
def test_many_centres_are_divided(seed: int, k: int, least: int, spare: int) -> None:
    rng = np.random.default_rng(seed)
    X, centers = rng.random((k * least + spare, 2)), rng.random((k, 2)) ** 3
    gaps = squared_gaps(X, centers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(least_assignment, "_MOST_CENTERS", 4)
        labels = assign_at_least(X, centers, gaps.argmin(axis=1), least)
    assert np.bincount(labels, minlength=k).min() >= least
    assert gaps[np.arange(len(X)), labels].sum() >= cheapest(gaps, least) - 1e-9


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="5 rows are too few for 2 clusters of 3 rows"):
        assign_at_least(np.zeros((5, 1)), np.zeros((2, 1)), np.zeros(5, dtype=int), 3)
