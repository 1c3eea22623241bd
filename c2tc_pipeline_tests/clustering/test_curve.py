"""Reading a curve: exact where it was measured, never rising, and the same after a trip through JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline.clustering.loss_curves import LossCurve


@st.composite
def curves(draw: st.DrawFn) -> LossCurve:
    grid = np.array([1, *sorted(draw(st.sets(st.integers(2, 200), max_size=8)))])
    falls = draw(st.lists(st.floats(0.05, 1), min_size=len(grid), max_size=len(grid)))
    wcss = draw(st.floats(1e-3, 1e6)) * np.cumprod(falls)
    wcss[draw(st.integers(0, len(grid))) :] = 0.0
    distinct = int(grid[-1]) + draw(st.integers(0, 50))
    sampled = distinct + draw(st.integers(0, 50))
    return LossCurve(sampled + draw(st.integers(0, 100)), distinct, grid, wcss, sampled)


@given(curves())
def test_exact_at_the_grid(curve: LossCurve) -> None:
    expected = curve.wcss.copy()
    if curve.sampled_rows == curve.rows:
        expected[curve.grid >= curve.distinct] = 0
    expected[curve.grid >= curve.rows] = 0
    np.testing.assert_allclose(curve.at(curve.grid), expected, rtol=1e-9, atol=0)


@given(curves())
def test_never_rises_and_never_below_zero(curve: LossCurve) -> None:
    losses = curve.at(np.arange(1, curve.rows + 10))
    assert (np.diff(losses) <= 1e-12 * losses[:-1]).all()
    assert (losses >= 0).all()
    assert np.isfinite(losses).all()
    assert not losses[curve.rows - 1 :].any()


@given(curves())
def test_zero_from_the_distinct_rows_on_unless_sampled(curve: LossCurve) -> None:
    whole = LossCurve(curve.rows, curve.distinct, curve.grid, curve.wcss, curve.rows)
    assert not whole.at(np.arange(curve.distinct, curve.rows + 1)).any()


def test_a_sampled_curve_does_not_end_at_the_samples_distinct_rows() -> None:
    curve = LossCurve(10_000, 64, np.array([1, 8, 64]), np.array([64.0, 8.0, 1.0]), 100)
    np.testing.assert_allclose(curve.at(np.array([64, 128, 9_999])), [1, 1 / 2, 64 / 9_999])


def test_the_last_slope_is_carried_on() -> None:
    curve = LossCurve(10_000, 10_000, np.array([1, 10, 100]), np.array([1_000.0, 100.0, 1.0]), 10_000)
    np.testing.assert_allclose(curve.at(np.array([3, 200, 1_000])), [1_000 / 3, 1 / 4, 1 / 100])


def test_a_flat_end_stays_flat() -> None:
    curve = LossCurve(100, 100, np.array([1, 2, 4]), np.array([3.0, 2.0, 2.0]), 100)
    np.testing.assert_allclose(curve.at(np.array([5, 99])), [2, 2])


@pytest.mark.parametrize("wcss", [[0.0], [0.0, 0.0]])
def test_a_class_of_equal_rows_costs_nothing(wcss: list[float]) -> None:
    curve = LossCurve(9, 1, np.arange(1, len(wcss) + 1), np.array(wcss), 9)
    assert not curve.at(np.arange(1, 10)).any()


@given(curves(), st.floats(0.1, 10))
def test_a_scaled_curve_has_the_same_shape(curve: LossCurve, factor: float) -> None:
    k = np.arange(1, curve.rows + 1)
    np.testing.assert_allclose(curve.scaled(factor).at(k), factor * curve.at(k), rtol=1e-9)


@given(curves())
def test_json_keeps_every_bit(curve: LossCurve) -> None:
    back = LossCurve.from_dict(json.loads(json.dumps(curve.to_dict())))
    assert (back.rows, back.distinct, back.sampled_rows) == (curve.rows, curve.distinct, curve.sampled_rows)
    assert back.grid.tolist() == curve.grid.tolist()
    assert back.wcss.tobytes() == curve.wcss.tobytes()
