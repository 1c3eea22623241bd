"""What every encoder promises about its output, on tables with gaps anywhere, and about the rows it takes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from c2tc_pipeline.bench.encoders import LabelEncoder, OneHotPcaEncoder, TargetEncoder
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.encoding import base
from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline_tests.encoding.mixed_tables import (
    ENCODERS,
    QUICK,
    each_encoder,
    encoder_name,
    labelled_tables,
    mixed_table,
    new_rows,
)

Table = tuple[pd.DataFrame, np.ndarray, dict[str, str]]


@pytest.fixture(scope="module", params=ENCODERS, ids=encoder_name)
def fitted(request: pytest.FixtureRequest) -> TableEncoder:
    """Each encoder, fitted once to the mixed table; tests only read it."""
    encoder: TableEncoder = clone(request.param).fit(*mixed_table())
    return encoder


def assert_promises_kept(encoder: TableEncoder, encoded: np.ndarray, rows: int) -> None:
    names = encoder.get_feature_names_out()
    assert len(set(names)) == len(names)
    assert encoded.shape == (rows, len(names))
    assert encoded.dtype == np.float32
    assert 0 <= encoded.min() <= encoded.max() <= 1


@each_encoder
@given(table=labelled_tables(), other=labelled_tables())
@settings(max_examples=15)
def test_any_table_becomes_float32_within_0_and_1(encoder: TableEncoder, table: Table, other: Table) -> None:
    X, y, roles = table
    before = X.copy(deep=True)
    encoder = clone(encoder).set_params(roles=roles)
    encoded = encoder.fit(X, y).transform(X)
    assert_promises_kept(encoder, encoded, len(X))
    pd.testing.assert_frame_equal(X, before)
    # Rows one by one are encoded as in the table.
    single = np.vstack([encoder.transform(X.iloc[[row]]) for row in range(len(X))])
    np.testing.assert_allclose(single, encoded, atol=1e-5)
    # Values of columns that the encoder has never seen, of any type, are encoded or refused in a sentence.
    strange = other[0].iloc[:, np.arange(X.shape[1]) % other[0].shape[1]].set_axis(X.columns, axis=1)
    with suppress(InputError):
        assert_promises_kept(encoder, encoder.transform(strange), len(strange))


def test_new_rows_other_orders_of_columns_further_columns_and_indexes(fitted: TableEncoder) -> None:
    X, y = mixed_table()
    expected = fitted.transform(X)
    assert_promises_kept(fitted, fitted.transform(new_rows()), 4)
    indexed = X.set_axis(np.arange(len(X)) % 7)
    for frame in (X[X.columns[::-1]], X.assign(further="x", height2=1.5), indexed):
        np.testing.assert_array_equal(fitted.transform(frame), expected)
    assert clone(fitted).fit(indexed, y).transform(X).tobytes() == expected.tobytes()


def test_a_missing_column_is_named(fitted: TableEncoder) -> None:
    X, _ = mixed_table()
    for absent in (["airport"], ["airport", "height", "odd"]):
        with pytest.raises(InputError, match=f"'{absent[-2:][0]}'"):
            fitted.transform(X.drop(columns=absent))


@each_encoder
def test_a_dropped_column_may_be_absent(encoder: TableEncoder) -> None:
    encoder = clone(encoder).set_params(roles={"airport": "drop"}).fit(*mixed_table())
    assert encoder.encoding_of("airport") == "dropped"
    X, _ = mixed_table()
    np.testing.assert_array_equal(encoder.transform(X.drop(columns="airport")), encoder.transform(X))


@pytest.mark.parametrize("block", [7, 1_000])
def test_blocks_of_rows(fitted: TableEncoder, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = mixed_table()
    expected, training = fitted.transform(X), fitted.encode_training(X, y)
    monkeypatch.setattr(base, "_BLOCK_ROWS", block)
    np.testing.assert_allclose(fitted.transform(X), expected, atol=1e-6)
    np.testing.assert_allclose(fitted.encode_training(X, y), training, atol=1e-6)
    assert fitted.transform(X.iloc[:0]).shape == (0, expected.shape[1])


@each_encoder
def test_an_array_is_a_table_with_numbered_columns(encoder: TableEncoder) -> None:
    X, y = mixed_table()
    array = X.drop(columns="born").to_numpy(dtype=object)
    named = X.drop(columns="born").set_axis([f"x{i}" for i in range(7)], axis=1).astype(object)
    one, other = clone(encoder).fit(array, y), clone(encoder).fit(named, y)
    assert one.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()
    np.testing.assert_array_equal(one.transform(array), other.transform(named))
    numbered = X.set_axis(range(8), axis=1)
    encoder = clone(encoder).fit(numbered, y)
    np.testing.assert_array_equal(encoder.transform(numbered), encoder.transform(numbered.rename(columns=str)))


CLASHES: dict[str, tuple[TableEncoder, dict[str, list[Any]], dict[str, str]]] = {
    "mark of gaps": (HybridEncoder(), {"a": [1.5, None], "a__missing": [0.5, 1.5], "a__missing_2": [0.25, 2.5]}, {}),
    "share of a class": (
        HybridEncoder(),
        {"day": [1, 2, 3, 4], "day__shares_1": [0.5, 1.5], "day__shares_2": [1, 2, 3]},
        {"day": "code", "day__shares_2": "code"},
    ),
    "component": (OneHotPcaEncoder(), {"onehot_pca_0": [0.5, 1.5], "job": ["nurse", "cook"]}, {}),
    "every kind": (
        HybridEncoder(**QUICK),
        {"x": [1.5, None], "x__missing": [True, False], "string_code_0": [1, 2, 3, 4], "s": ["nurse", "cook"]},
        {"string_code_0": "code"},
    ),
}


@pytest.mark.parametrize("clash", CLASHES)
def test_names_stay_unique_when_columns_are_called_like_outputs(clash: str) -> None:
    encoder, cells, roles = CLASHES[clash]
    X = pd.DataFrame({name: [values[i % len(values)] for i in range(24)] for name, values in cells.items()})
    y = np.array(["x", "y", "z", "y__is_y"])[np.arange(24) % 4]
    encoder = clone(encoder).set_params(roles=roles or None).set_output(transform="pandas").fit(X, y)
    assert_promises_kept(encoder, encoder.transform(X).to_numpy(), 24)
    raw = [name for part in encoder.parts_ for name in part.names()]
    assert len(set(raw)) < len(raw), "the case has no clash left to solve"
    names = encoder.get_feature_names_out().tolist()
    assert [n for n, r in zip(names, raw, strict=True) if n == r] == list(dict.fromkeys(raw))


def test_before_fit_everything_says_so() -> None:
    encoder = HybridEncoder()
    for call in (encoder.transform, encoder.encode_rows, lambda _: encoder.get_feature_names_out()):
        with pytest.raises(NotFittedError):
            call(mixed_table()[0])


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]),
        pd.DataFrame([[1, 2], [3, 4]], columns=["1", 1]),
        pd.DataFrame({"a": [1.5]}),
        pd.DataFrame({"a": [2.5, 2.5], "b": [None, None]}),
        pd.DataFrame(index=[0, 1]),
    ],
)
def test_tables_that_can_not_be_encoded(X: pd.DataFrame) -> None:
    with pytest.raises(InputError):
        HybridEncoder().fit(X)


def test_one_label_is_needed_for_each_row() -> None:
    X, y = mixed_table()
    with pytest.raises(ValueError, match="90"):
        HybridEncoder().fit(X, y[:-1])


@pytest.mark.parametrize(
    ("column", "cells", "said"),
    [
        ("height", [171.5, "tall", None, "small"], r"'height' holds 2 values .*'tall', in data row 2 "),
        ("height", [171.5, 2.0, -np.inf, np.inf], r"'height' holds 2 infinite values, the first in data row 3 "),
        ("visits", ["17", "inf", "3", None], r"'visits' holds 1 infinite values, the first in data row 2 "),
        ("born", ["1999-09-09", None, None, None], r"'born' holds 1 values .*data row 1 "),
        ("is_member", [True, "True", "False", 0], r"'is_member' holds 2 values .*'True', in data row 2 "),
        ("ward_code", [1, 2, 2.5, None], r"'ward_code' holds 1 values .*'2.5', in data row 3 "),
    ],
)
def test_values_that_do_not_fit_a_column_are_refused_and_counted(column: str, cells: list[Any], said: str) -> None:
    X, y = mixed_table()
    encoder = LabelEncoder().fit(X, y)
    rows = X.iloc[:4].assign(**{column: pd.Series(cells, dtype=object)})
    with pytest.raises(InputError, match=rf"^[^\n]*{said}[^\n]*\.$"):
        encoder.transform(rows)
    with pytest.raises(InputError, match="data row 10"):
        encoder.encode_rows(rows, row_ids=np.arange(100, 104))


WRONG: list[dict[str, Any]] = [{name: 0} for name in ("epochs", "hidden_dim", "latent_dim", "max_prototypes")]
WRONG += [{name: -0.1} for name in ("smoothing", "noise", "learning_rate")] + [{"batch_size": -1}]
WRONG += [
    {"smoothing": float("nan")},
    {"smoothing": "much"},
    {"ngram_range": (4, 2)},
    {"ngram_range": (0, 2)},
    {"device": "abacus"},
]
WRONG += [
    {"numeric": "log"},
    {"strings": "words"},
    {"roles": {"no such column": "code"}},
    {"roles": {"height": "tall"}},
]
WRONG += [{"roles": {"odd": "code"}}, {"roles": {"odd": "numeric"}}]
REFUSED = [TargetEncoder(smoothing=-1.0), OneHotPcaEncoder(max_categories=0), *(HybridEncoder(**one) for one in WRONG)]


@pytest.mark.parametrize("encoder", REFUSED, ids=repr)
def test_settings_out_of_range_and_roles_that_do_not_fit_are_refused_in_one_sentence(encoder: TableEncoder) -> None:
    with pytest.raises(InputError, match=r"^[^\n]*\.$"):
        encoder.fit(*mixed_table())


def test_dates_of_all_centuries_are_numbers() -> None:
    X = pd.DataFrame({"founded": pd.to_datetime(["1066-10-14", "1999-01-01", "2500-01-01"])})
    assert HybridEncoder(numeric="minmax").fit_transform(X).ravel()[1] == pytest.approx(0.65, abs=0.01)
