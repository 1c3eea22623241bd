"""Keys of categories, two-valued codes, and target encoding of codes against scikit-learn's TargetEncoder."""

from __future__ import annotations

import tracemalloc
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import TargetEncoder as ScikitTargetEncoder

from c2tc_pipeline import Condenser
from c2tc_pipeline.bench.encoders import TargetEncoder
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.numeric import BinaryPart
from c2tc_pipeline.encoding.target import ClassShares, TargetPart, estimated_smoothing
from c2tc_pipeline.tables.category_counts import folds_of
from c2tc_pipeline.tables.kinds import factorise
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
    middle, one_end, other_end = encoder.transform(X).ravel()[:3]
    assert (middle, {one_end, other_end}) == (0.5, {0, 1})


labelled_codes = st.lists(st.tuples(st.none() | st.integers(0, 5), st.integers(0, 2)), min_size=4, max_size=40)


def codes_and_labels(rows: list[tuple[int | None, int]]) -> tuple[pd.DataFrame, np.ndarray]:
    return pd.DataFrame({"c": pd.Series([code for code, _ in rows], dtype="Int64")}), np.array([y for _, y in rows])


@given(labelled_codes, st.sampled_from([0.0, 0.5, 10.0]))
def test_codes_are_at_scikit_learns_class_shares(rows: list[tuple[int | None, int]], smoothing: float) -> None:
    X, y = codes_and_labels(rows)
    assume(len(np.unique(y)) == y.max() + 1 > 1)
    part = TargetPart.fit(TableStatistics.of(X, y), ["c"], smoothing=smoothing)
    assert part.sources() == [["c"]] * len(part.names())
    new = pd.DataFrame({"c": pd.Series([*X["c"], 99], dtype="Int64")})
    text = new["c"].astype(object).map(lambda code: "missing" if pd.isna(code) else str(code)).to_frame()
    shares = np.column_stack(
        [
            ScikitTargetEncoder(target_type="continuous", smooth=smoothing)
            .fit(text.iloc[:-1], (y == label).astype(float))
            .transform(text)[:, 0]
            for label in range(y.max() + 1)
        ]
    )
    [scale] = part.scales
    along = shares @ scale.directions
    spread = np.ptp(along[:-1], axis=0)
    expected = np.clip((along - along[:-1].min(axis=0)) / np.where(spread > 1e-9, spread, 1), 0, 1)
    np.testing.assert_allclose(part.encode(new)[:, spread > 1e-9], expected[:, spread > 1e-9], atol=2e-5)
    # The directions lose nothing: categories are as far from each other as their shares.
    scaling = 2 if len(scale.directions) == 2 else 1
    ours, theirs = (np.square(values[:, None] - values[None]).sum(axis=2) for values in (along, shares))
    np.testing.assert_allclose(ours, scaling * theirs, atol=1e-6)


@given(labelled_codes, st.sampled_from([0.0, 3.0]))
def test_training_rows_are_at_the_shares_of_other_folds(rows: list[tuple[int | None, int]], smoothing: float) -> None:
    X, y = codes_and_labels(rows)
    assume(len(np.unique(y)) == y.max() + 1 > 1)
    encoder = TargetEncoder(smoothing=smoothing, roles={"c": "code"})
    encoded = encoder.fit_transform(X, y)
    [part] = (part for part in encoder.parts_ if isinstance(part, TargetPart))
    [scale] = part.scales
    codes, folds = X["c"].fillna(-1).to_numpy(dtype=int), folds_of(np.arange(len(X)))
    onehot = np.eye(y.max() + 1)[y]
    overall = onehot.mean(axis=0)
    for row in range(len(X)):
        others = onehot[(codes == codes[row]) & (folds != folds[row])]
        share = (others.sum(axis=0) + smoothing * overall) / max(len(others) + smoothing, 1e-300)
        along = (share - overall) @ scale.directions if len(others) + smoothing else np.zeros(len(scale.low))
        span = scale.high - scale.low
        expected = np.clip((along - scale.low) / np.where(span > 0, span, 1), 0, 1)
        np.testing.assert_allclose(encoded[row], expected, atol=1e-5)


def noise_column(rows: int = 4_000) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a number that says something about the label, and a string of two rows a value that says nothing."""
    rng = np.random.default_rng(1)
    amount = rng.normal(size=rows)
    y = (amount + rng.normal(size=rows) > 0).astype(int)
    return pd.DataFrame({"amount": amount, "noise": [f"Z{n}" for n in rng.integers(0, rows // 2, rows)]}), y


def test_a_column_of_noise_does_not_leak_the_label() -> None:
    X, y = noise_column()
    leaking = HybridEncoder(smoothing=0.0).fit(X, y).transform(X)[:, 1]
    assert abs(np.corrcoef(leaking, y)[0, 1]) > 0.5
    assert abs(np.corrcoef(HybridEncoder(smoothing=0.0).fit_transform(X, y)[:, 1], y)[0, 1]) < 0.1


def test_condensed_rows_teach_as_much_with_a_column_of_noise_as_without() -> None:
    X, y = noise_column()
    train, test = slice(0, 3_000), slice(3_000, None)
    scores = []
    for frame in (X[["amount"]], X):
        encoder = HybridEncoder()
        rows, labels = Condenser(0.01).fit_resample(encoder.fit_transform(frame[train], y[train]), y[train])
        model = LogisticRegression(C=100).fit(rows, labels)
        scores.append(model.score(encoder.transform(frame[test]), y[test]))
    assert scores[1] > scores[0] - 0.01
    assert [(notice.kind, notice.column) for notice in encoder.notices_] == [("high_cardinality", "noise")]


@pytest.mark.parametrize("rows_per_category", [3, 40])
@pytest.mark.parametrize("total", [3, 15])
def test_smoothing_is_the_ratio_of_the_variances_that_the_shares_were_drawn_with(
    rows_per_category: int, total: int
) -> None:
    rng = np.random.default_rng(0)
    shares = rng.beta(0.3 * total, 0.7 * total, 40_000)
    ones = rng.binomial(rows_per_category, shares)
    cells = sparse.csr_array(np.column_stack([rows_per_category - ones, ones]))
    found = estimated_smoothing(ClassShares(cells, np.asarray(cells.sum(axis=0)) / cells.sum()))
    # The posterior mean of a beta distribution is smoothed by the sum of its parameters.
    assert found == pytest.approx(total, rel=0.2)


@pytest.mark.parametrize("classes", [2, 3, 6, 40, 300])
def test_names_and_order_of_classes_do_not_matter(classes: int) -> None:
    rng = np.random.default_rng(0)
    rows = max(3_000, 20 * classes)
    X = pd.DataFrame({"c": rng.integers(0, 30, rows)})
    shares = rng.dirichlet(np.full(classes, 0.3) * np.arange(1, classes + 1), 30)
    y = np.array([rng.choice(classes, p=shares[code]) for code in X["c"]])
    y[:classes] = np.arange(classes)
    encoder = TargetEncoder(roles={"c": "code"})
    encoded, turned = (encoder.fit_transform(X, labels) for labels in (y, rng.permutation(classes)[y]))
    assert encoded.shape[1] == min(classes - 1, 8)
    np.testing.assert_allclose(turned, encoded, atol=1e-3)


def test_many_classes_take_few_columns_and_little_memory() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 300, (20_000, 4)), columns=[f"{name}_code" for name in "abcd"])
    y = rng.permutation(np.arange(20_000) % 1_000)
    tracemalloc.start()
    try:
        encoded = HybridEncoder().fit_transform(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert encoded.shape[1] <= 4 * 8
    # The counts of one column by class and fold would take 12 MB, its shares by class another 160 MB when encoded.
    assert peak < 40_000_000


@pytest.mark.parametrize("encoder", [HybridEncoder(strings="target", smoothing=2.0), TargetEncoder(smoothing=2.0)])
def test_unseen_codes_get_the_overall_shares_and_gaps_their_own(encoder: HybridEncoder | TargetEncoder) -> None:
    codes = [1, 1, 2, 2, 3, 3, None, None]
    y = np.array([0, 0, 0, 1, 1, 1, 1, 1])
    X = pd.DataFrame({"word": pd.Series(codes, dtype=object).map(lambda c: c if c is None else f"W{c}")})
    encoder.fit(X, y)
    new = pd.DataFrame({"word": ["W1", "W2", "W3", None, "W9"]})
    # Of both classes the rarer one is counted.
    smoothed = np.array([(rare + 2 * 3 / 8) / 4 for rare in (2, 1, 0, 0)] + [3 / 8])
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
