"""Scaling of numbers against scikit-learn's scalers, and what happens to gaps, ties, outliers and infinities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.numeric import SCALINGS, NumericPart
from c2tc_pipeline.tables import statistics
from c2tc_pipeline.tables.statistics import TableStatistics

each_scaling = pytest.mark.parametrize("scaling", SCALINGS)
# Exact in binary, so that a difference is one of method and not of rounding.
numbers = st.integers(-(10**6), 10**6).map(lambda number: number / 64)


def scaled(train: Any, new: Any, scaling: str) -> np.ndarray:
    part = NumericPart.fit(TableStatistics.of(pd.DataFrame({"x": train})), ["x"], scaling)
    return part.encode(pd.DataFrame({"x": new}))


@given(train=st.lists(numbers, min_size=2), new=st.lists(numbers, min_size=1))
def test_minmax_is_scikit_learns_with_clipping(train: list[float], new: list[float]) -> None:
    scaler = MinMaxScaler(clip=True).fit(np.array(train)[:, None])
    expected = scaler.transform(np.array(new)[:, None])
    if min(train) == max(train):
        # scikit-learn shifts by a constant column's value; ours has nothing to say.
        expected = np.zeros_like(expected)
    np.testing.assert_allclose(scaled(train, new, "minmax"), expected, rtol=1e-5, atol=1e-6)


@each_scaling
@given(
    train=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2), new=st.lists(st.floats(), min_size=1)
)
def test_monotone_and_within_0_and_1_whatever_comes(train: list[float], new: list[float], scaling: str) -> None:
    new = sorted(value for value in new if not np.isnan(value)) or [0.0]
    encoded = scaled(train, new, scaling).ravel()
    assert encoded.dtype == np.float32
    assert 0 <= encoded.min() <= encoded.max() <= 1
    assert (np.diff(encoded) >= 0).all()


@pytest.mark.parametrize("rows", [200, 5_000])
@pytest.mark.parametrize("draw", ["normal", "exponential", "standard_cauchy"])
def test_quantiles_are_close_to_scikit_learns_on_continuous_data(draw: str, rows: int) -> None:
    rng = np.random.default_rng(0)
    train, new = getattr(rng, draw)(size=(2, rows))
    oracle = QuantileTransformer(n_quantiles=min(rows, 1_000), subsample=None).fit(train[:, None])
    np.testing.assert_allclose(scaled(train, new, "quantile"), oracle.transform(new[:, None]), atol=0.003)


@given(train=st.lists(st.integers(0, 5), min_size=2))
def test_tied_values_stand_at_the_middle_of_their_step(train: list[int]) -> None:
    values = np.array(train)
    low, high = values.min(), values.max()
    middle = np.array([(values < v).sum() + (values == v).sum() / 2 for v in values])
    first, last = (values == low).sum() / 2, len(values) - (values == high).sum() / 2
    expected = (middle - first) / (last - first) if low < high else np.zeros(len(values))
    np.testing.assert_allclose(scaled(train, train, "quantile").ravel(), expected, atol=1e-6)


def test_quantiles_are_linear_between_training_values_and_robust_to_outliers() -> None:
    np.testing.assert_allclose(scaled([0, 1, 11], [0.5, 6], "quantile").ravel(), [0.25, 0.75])
    train = [*np.linspace(0, 1, 99), 1e12]
    assert scaled(train, train, "minmax")[:-1].max() < 1e-6
    np.testing.assert_allclose(scaled(train, train, "quantile").ravel(), np.arange(100) / 99, atol=1e-6)


@each_scaling
def test_missing_values_get_the_median_and_a_mark(scaling: str) -> None:
    frame = pd.DataFrame({"x": [0.0, 1, None, 8], "y": [1.0, 2, 3, 4]})
    part = NumericPart.fit(TableStatistics.of(frame), ["x", "y"], scaling)
    assert part.names() == ["x", "y", "x__missing"]
    encoded = part.encode(pd.DataFrame({"x": [None, 1.0], "y": [None, 2.5]}))
    np.testing.assert_array_equal(encoded[0, :2], encoded[1, :2])
    np.testing.assert_array_equal(encoded[:, 2], [1, 0])


@each_scaling
@pytest.mark.parametrize("train", [[3.0, 3.0], [3.0, None], [None, None]])
def test_a_column_without_spread_is_zero(train: list[float | None], scaling: str) -> None:
    part = NumericPart.fit(TableStatistics.of(pd.DataFrame({"x": pd.Series(train, dtype=float)})), ["x"], scaling)
    encoded = part.encode(pd.DataFrame({"x": [3.0, -9, 9, np.inf, None]}))
    np.testing.assert_array_equal(encoded[:, 0], 0)
    assert part.marked == [None in train]


@each_scaling
def test_infinities_are_the_ends_in_new_rows_and_refused_in_training_rows(scaling: str) -> None:
    np.testing.assert_array_equal(scaled([1, 2, 3], [-np.inf, np.inf], scaling).ravel(), [0, 1])
    with pytest.raises(InputError, match=r"'x'.*\b2\b"):
        scaled([1.5, np.inf, -np.inf], [1], scaling)


def test_a_sample_of_many_rows_keeps_the_limits_and_the_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    train = pd.DataFrame({"x": np.random.default_rng(1).normal(size=50_000)})
    train.loc[123, "x"] = 1e6
    whole = HybridEncoder().fit_transform(train)
    monkeypatch.setattr(statistics, "SAMPLE_ROWS", 10_000)
    sampled, again, other = (HybridEncoder(random_state=seed).fit_transform(train) for seed in (0, 0, 1))
    assert sampled.argmin() == whole.argmin()
    assert sampled.argmax() == 123
    assert (float(sampled.min()), float(sampled.max())) == (0.0, 1.0)
    # The error of a distribution function from 10,000 rows is below 0.025 with all but certainty.
    assert 0 < np.abs(sampled - whole).max() < 0.025
    np.testing.assert_array_equal(sampled, again)
    assert not np.array_equal(sampled, other)


@pytest.mark.parametrize("dtype", ["float32", "int16", "Int64", "Float64", "double[pyarrow]", object, "str"])
def test_the_storage_of_a_column_does_not_matter(dtype: Any) -> None:
    whole = pd.DataFrame({"x": [1, 2, 5, 7] * 2})
    encoder = HybridEncoder(roles={"x": "numeric"}).fit(whole)
    stored = whole.astype(dtype)
    np.testing.assert_array_equal(encoder.transform(stored), encoder.transform(whole))
    np.testing.assert_array_equal(HybridEncoder(roles={"x": "numeric"}).fit_transform(stored), encoder.transform(whole))
