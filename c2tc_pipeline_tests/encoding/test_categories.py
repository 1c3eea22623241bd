"""Keys of categories, two-valued codes, and target encoding of codes against scikit-learn's TargetEncoder."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.preprocessing import TargetEncoder as ScikitTargetEncoder

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.label import BinaryPart
from c2tc_pipeline.encoding.target import TargetEncoder, TargetPart
from c2tc_pipeline.tables.categories import factorise
from c2tc_pipeline.tables.statistics import TableStatistics

DTYPES = ["int64", "float32", "str", "bool", "Int8", "boolean", "int64[pyarrow]", "category", object]


@pytest.mark.parametrize("dtype", [*DTYPES, Decimal])
def test_one_key_for_one_value_whatever_its_type(dtype: Any) -> None:
    ones = pd.Series([1, 0])
    positions, keys = factorise(ones.map(Decimal) if dtype is Decimal else ones.astype(dtype))
    assert keys == ["1", "0"]
    assert positions.tolist() == [0, 1]


def test_values_of_several_types_share_a_key_and_gaps_have_none() -> None:
    mixed = pd.Series([1, "1", None, 2.5, 1.0, np.nan, "x", True, pd.NA], dtype=object)
    assert factorise(pd.Series([1.0, -0.0]))[1] == ["1", "0"]
    positions, keys = factorise(mixed)
    assert keys == ["1", "2.5", "x"]
    assert positions.tolist() == [0, 0, -1, 1, 0, -1, 2, 0, -1]


@given(st.lists(st.none() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3) | st.booleans()))
def test_positions_lead_back_to_keys(cells: list[Any]) -> None:
    positions, keys = factorise(pd.Series(cells, dtype=object))
    assert len(set(keys)) == len(keys)
    assert [cell is None for cell in cells] == (positions == -1).tolist()
    assert all(keys[p] == cell for cell, p in zip(cells, positions, strict=True) if isinstance(cell, str))


@pytest.mark.parametrize(
    ("train", "new", "expected"),
    [
        ([0, 1, 1, 1], [0, 1, "1", True, 0.0], [0, 1, 1, 1, 0]),
        ([2, 1, 2, 2], [1, 2, 7, None], [0, 1, 0.75, 0.75]),
        ([10, 9], [9, 10], [0, 1]),
        ([-1, 1], [-1, 1], [0, 1]),
        ([True, False, False, False], [True, False, None], [1, 0, 0.25]),
        ([7, 7], [7, 8, None], [0, 0, 0]),
    ],
)
def test_two_values_become_0_and_1_and_anything_else_their_mean(
    train: list[Any], new: list[Any], expected: list[float]
) -> None:
    part = BinaryPart.fit(TableStatistics.of(pd.DataFrame({"b": train})), ["b"])
    assert part.encode(pd.DataFrame({"b": pd.Series(new, dtype=object)})).ravel().tolist() == expected


def test_binary_columns_pass_through_without_labels_unless_they_have_gaps() -> None:
    X = pd.DataFrame({"flag": [0, 1, 1, 0], "sex": [1, 2, 1, 2]})
    encoder = HybridEncoder().fit(X)
    np.testing.assert_array_equal(encoder.transform(X), [[0, 0], [1, 1], [1, 0], [0, 1]])
    assert encoder.encoding_of("sex") == "binary"
    X = pd.DataFrame({"flag": [0, 1, None, 0, 1, None]})
    encoder = HybridEncoder(smoothing=0.0).fit(X, [0, 0, 1, 1, 0, 1])
    assert encoder.encoding_of("flag") == "target"
    np.testing.assert_array_equal(encoder.transform(X).ravel(), [0.5, 0, 1, 0.5, 0, 1])


def unit(values: np.ndarray) -> np.ndarray:
    low, high = values.min(axis=0), values.max(axis=0)
    return (values - low) / np.where(high > low, high - low, 1)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=4, max_size=40), st.sampled_from([0.0, 0.5, 10])
)
def test_each_class_but_the_first_has_scikit_learns_target_scaled_to_0_and_1(
    rows: list[tuple[int, int]], smoothing: float
) -> None:
    X, y = pd.DataFrame({"c": [code for code, _ in rows]}), np.array([label for _, label in rows])
    classes = ["a", "b", "c"][: y.max() + 1]
    assume(len(classes) > 1)
    part = TargetPart.fit(TableStatistics.of(X, y), ["c"], classes, smoothing=smoothing)
    assert part.names() == (["c"] if len(classes) == 2 else ["c__is_b", "c__is_c"])
    assert part.sources() == [["c"]] * (len(classes) - 1)
    unseen = pd.DataFrame({"c": [99]})
    for column in range(len(classes) - 1):
        target = (y == column + 1).astype(float)
        assume(np.ptp(target))
        oracle = ScikitTargetEncoder(target_type="continuous", smooth=smoothing).fit(X, target)
        expected = oracle.transform(X)
        if np.ptp(expected) > 1e-9:
            np.testing.assert_allclose(part.encode(X)[:, column], unit(expected).ravel(), atol=1e-6)
            scaled = (oracle.transform(unseen) - expected.min()) / np.ptp(expected)
            np.testing.assert_allclose(part.encode(unseen)[:, column], scaled.ravel(), atol=1e-6)


def three_class_table(rows: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 7, rows)
    shares = rng.dirichlet([1, 1, 1], 7)
    return pd.DataFrame({"c": codes}), np.array([rng.choice(3, p=shares[code]) for code in codes])


@pytest.mark.parametrize("kind", [HybridEncoder, TargetEncoder])
def test_the_scalar_target_is_the_mean_class_number_and_depends_on_the_order(kind: Any) -> None:
    X, y = three_class_table()
    oracle = ScikitTargetEncoder(target_type="continuous", smooth=10.0).fit(X, y.astype(float))
    encoder = kind(roles={"c": "code"}, smoothing=10.0)
    encoder.scalar_target = True
    encoded = encoder.fit_transform(X, y)
    np.testing.assert_allclose(encoded, unit(oracle.transform(X)), atol=1e-6)
    turned = encoder.fit_transform(X, (y + 1) % 3)
    assert abs(np.corrcoef(encoded.ravel(), turned.ravel())[0, 1]) < 0.99


@pytest.mark.parametrize("encoder", [HybridEncoder(strings="target", smoothing=2.0), TargetEncoder(smoothing=2.0)])
def test_unseen_codes_get_the_overall_shares_and_gaps_their_own(encoder: HybridEncoder | TargetEncoder) -> None:
    codes = [1, 1, 2, 2, 3, 3, None, None]
    y = np.array([0, 0, 0, 1, 1, 1, 1, 1])
    X = pd.DataFrame({"word": pd.Series(codes, dtype=object).map(lambda c: c if c is None else f"W{c}")})
    encoder.fit(X, y)
    new = pd.DataFrame({"word": ["W1", "W2", "W3", None, "W9"]})
    smoothed = np.array([(ones + 2 * y.mean()) / 4 for ones in (0, 1, 2, 2)] + [y.mean()])
    expected = (smoothed - smoothed.min()) / np.ptp(smoothed)
    np.testing.assert_allclose(encoder.transform(new).ravel(), expected, atol=1e-6)
    # Gaps that training never saw get the overall shares, too.
    encoder.fit(X.iloc[:6], y[:6])
    gap, unseen = encoder.transform(new.iloc[3:]).ravel()
    assert gap == unseen


@pytest.mark.parametrize("encoder", [HybridEncoder(strings="target"), TargetEncoder()])
def test_without_labels_the_column_that_needs_them_is_named(encoder: HybridEncoder | TargetEncoder) -> None:
    with pytest.raises(InputError, match="'word'"):
        encoder.fit(pd.DataFrame({"x": [1.5, 2.5, 3.5], "word": ["a", "b", "a"]}))


@pytest.mark.parametrize(
    "y", [[0.0, np.nan, 1.0], ["a", None, "b"], pd.Series(["a", None, "b"], dtype="str"), [0, pd.NA, 1]]
)
def test_a_missing_label_is_refused_by_row(y: Any) -> None:
    with pytest.raises(InputError, match="Row 1 "):
        HybridEncoder().fit(pd.DataFrame({"x": [1.5, 2.5, 3.5]}), y)
