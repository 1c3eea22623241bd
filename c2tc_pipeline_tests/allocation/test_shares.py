"""Splitting a budget: the sum is exact, limits hold, and nobody is further than one from the fair share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline.allocation.shares import budget_for_ratio, proportional_counts
from c2tc_pipeline.common.errors import InputError


def fair_split(shares: np.ndarray, budget: int, upper: np.ndarray) -> np.ndarray:
    """Return the split in fractions, ``clip(rate * share, 1, upper)``, with the rate found by bisection."""
    low, high = 0.0, (budget + 1) * (upper.max() + 1) / shares.min()
    for _ in range(300):
        rate = (low + high) / 2
        if np.clip(rate * shares, 1, upper).sum() < budget:
            low = rate
        else:
            high = rate
    return np.clip(high * shares, 1, upper)


@st.composite
def splits(draw: st.DrawFn, largest: int = 60) -> tuple[np.ndarray, int, np.ndarray]:
    upper = draw(st.lists(st.integers(1, largest), min_size=1, max_size=8))
    share = st.integers(1, 10_000) | st.floats(1e-3, 1e3)
    shares = draw(st.lists(share, min_size=len(upper), max_size=len(upper)))
    return np.array(shares), draw(st.integers(len(upper), sum(upper))), np.array(upper)


@given(splits() | splits(largest=10**9))
def test_within_one_of_the_fair_split_and_within_limits(split: tuple[np.ndarray, int, np.ndarray]) -> None:
    shares, budget, upper = split
    counts = proportional_counts(shares, budget, upper)
    assert counts.sum() == budget
    assert (counts >= 1).all()
    assert (counts <= upper).all()
    if upper.max() <= 60:
        assert (np.abs(counts - fair_split(shares, budget, upper)) < 1 + 1e-6).all()


def test_classes_without_shares_split_evenly_and_a_budget_that_does_not_fit_is_refused() -> None:
    assert proportional_counts(np.zeros(3), 7, np.full(3, 9)).tolist() == [3, 2, 2]
    for budget in (1, 8):
        with pytest.raises(ValueError, match=f"{budget}"):
            proportional_counts(np.ones(2), budget, np.array([3, 4]))


@pytest.mark.parametrize("ratio", [0.0, -0.1, 1.0000001, 2.0, float("nan"), float("inf"), float("-inf")])
def test_a_ratio_outside_its_range_is_refused(ratio: float) -> None:
    with pytest.raises(InputError):
        budget_for_ratio(ratio, 100, 2)


@given(ratio=st.just(1.0) | st.just(1e-300) | st.floats(1e-9, 1), classes=st.integers(1, 20), data=st.data())
def test_every_budget_is_feasible(ratio: float, classes: int, data: st.DataObject) -> None:
    rows = data.draw(st.integers(classes, 10**8))
    budget = budget_for_ratio(ratio, rows, classes)
    assert classes <= budget <= rows
    assert budget == rows or ratio < 1
    assert budget == classes or abs(budget - ratio * rows) <= 0.5
