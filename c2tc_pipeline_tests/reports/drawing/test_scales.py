"""Scales name round values within their ends, and never too many of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from c2tc_pipeline.reports.drawing.scales import linear_scale, logarithmic_scale

numbers = st.floats(-1e9, 1e9, allow_subnormal=False)
positive = st.floats(1e-9, 1e12)


@given(numbers, st.floats(1e-6, 1e9))
def test_a_linear_scale_names_two_to_nine_values_in_between(low: float, span: float) -> None:
    assume(low + span > low + 1e-9 * abs(low))
    scale = linear_scale(low, low + span)
    assert 2 <= len(scale.ticks) <= 9
    room = 1e-6 * (scale.high - scale.low)
    assert all(scale.low - room <= tick <= scale.high + room for tick in scale.ticks)
    assert scale.share([scale.low, scale.high]).tolist() == [0, 1]


@given(positive, st.floats(1.01, 1e15))
def test_a_logarithmic_scale_names_values_in_between(low: float, ratio: float) -> None:
    scale = logarithmic_scale(low, low * ratio)
    assert len(scale.ticks) <= 9
    if ratio >= 10:
        assert len(scale.ticks) >= 2 or ratio < 1000
    assert all(-1e-6 <= place <= 1 + 1e-6 for place in scale.share(scale.ticks))


@given(st.lists(positive, min_size=2, max_size=20, unique=True))
def test_larger_values_are_farther_along(values: list[float]) -> None:
    ordered = sorted(values)
    assume(ordered[-1] > ordered[0] * 1.01)
    for make in (linear_scale, logarithmic_scale):
        assert (np.diff(make(ordered[0], ordered[-1]).share(ordered)) >= 0).all()


@pytest.mark.parametrize("value", [0.0, 5.0, -3.0])
def test_a_single_value_is_in_the_middle(value: float) -> None:
    assert math.isclose(float(linear_scale(value, value).share(value)), 0.5)


def test_whole_numbers_are_named_where_only_they_are_wanted() -> None:
    assert linear_scale(-0.2, 1.2, whole=True).ticks == (0.0, 1.0)
    assert linear_scale(0, 1.1).ticks == (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
