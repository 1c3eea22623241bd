"""Imperfect tables are mended with a notice; impossible ones are refused in one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.preparation import prepare_table


def table(**columns: Any) -> pd.DataFrame:
    rows = len(next(iter(columns.values()), [None] * 4))
    base = {"a": [1.5, 2.5] * (rows // 2), "y": ["no", "yes"] * (rows // 2)}
    return pd.DataFrame({**base, **columns})


def notices_of(frame: pd.DataFrame, **options: Any) -> list[tuple[str, str | None]]:
    return [(notice.kind, notice.column) for notice in prepare_table(frame, label="y", **options).notices]


def refusal(frame: pd.DataFrame, label: str = "y", **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        prepare_table(frame, label=label, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def test_a_clean_table_has_no_notices_and_keeps_order() -> None:
    prepared = prepare_table(table(s=["u", "v", "u", None], b=[True, False, True, True]), label="y")
    assert prepared.notices == []
    assert prepared.X.columns.tolist() == ["a", "s", "b"]
    assert prepared.row_ids.dtype == np.int64
    assert prepared.X.dtypes.astype(str).tolist() == ["float64", "str", "bool"]
    assert prepared.X["s"].isna().tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([3] * 60, "constant_column"),
        ([None] * 60, "all_missing_column"),
        ([f"A{i}" for i in range(60)], "identifier_column"),
    ],
)
def test_useless_columns_are_dropped_with_a_notice(values: list[Any], kind: str) -> None:
    frame = table(useless=values)
    prepared = prepare_table(frame, label="y")
    assert [(notice.kind, notice.column) for notice in prepared.notices] == [(kind, "useless")]
    assert "useless" not in prepared.X
    assert prepared.roles["useless"].role == "drop"
    kept = prepare_table(frame, label="y", roles={"useless": "string"})
    assert "useless" in kept.X
    assert kept.notices == []


def test_a_column_dropped_on_request_needs_no_notice() -> None:
    assert notices_of(table(s=["u", "v", "u", "v"]), roles={"s": "drop"}) == []


def test_mixed_types_are_read_as_strings() -> None:
    frame = table(m=[1, "x", 2.5, None])
    assert notices_of(frame) == [("mixed_types", "m")]
    assert prepare_table(frame, label="y").X["m"].tolist()[:3] == ["1", "x", "2.5"]


def test_rows_without_a_label_are_left_out_and_counted() -> None:
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5, 4.5, 5.5], "y": [1, None, 2, None, 1]}, index=list("vwxyz"))
    prepared = prepare_table(frame, label="y")
    assert prepared.row_ids.tolist() == [0, 2, 4]
    assert prepared.y.tolist() == [1, 2, 1]
    assert prepared.y.dtype == np.int64
    assert prepared.X["a"].tolist() == [1.5, 3.5, 5.5]
    assert prepared.X.index.tolist() == [0, 1, 2]
    (notice,) = prepared.notices
    assert str(notice) == "Column 'y': 2 rows without a label were left out"


def test_column_names_become_text() -> None:
    frame = pd.DataFrame({0: [1.5, 2.5], "y": [0, 1]})
    prepared = prepare_table(frame, label="y")
    assert prepared.X.columns.tolist() == ["0"]
    assert [notice.kind for notice in prepared.notices] == ["renamed_columns"]
    assert frame.columns.tolist() == [0, "y"]


def test_the_source_is_neither_copied_nor_changed() -> None:
    frame = pd.DataFrame({"a": np.arange(6.0) + 0.5, "b": np.arange(6, dtype=np.int16) * 3, "y": [0, 1] * 3})
    before = frame.copy()
    prepared = prepare_table(frame, label="y")
    assert np.shares_memory(prepared.X["a"].to_numpy(), frame["a"].to_numpy())
    assert np.shares_memory(prepared.X["b"].to_numpy(), frame["b"].to_numpy())
    prepared.X.loc[0, "a"] = -1.0
    pd.testing.assert_frame_equal(frame, before)


def test_codes_with_missing_values_are_nullable_integers() -> None:
    prepared = prepare_table(table(weekday=[1.0, None, 3.0, 2.0]), label="y")
    assert str(prepared.X["weekday"].dtype) == "Int64"
    assert prepared.X["weekday"].isna().tolist() == [False, True, False, False]


def test_text_can_be_read_as_numbers_on_request() -> None:
    prepared = prepare_table(table(t=["1", "2.5", None, "3"]), label="y", roles={"t": "numeric"})
    np.testing.assert_array_equal(prepared.X["t"], [1, 2.5, np.nan, 3])


@pytest.mark.parametrize("values", [[True, False, True], pd.Categorical(["p", "q", "p"]), [0.5, 1.5, 0.5, 1.5]])
def test_label_values_stay_what_they_are(values: Any) -> None:
    frame = pd.DataFrame({"a": np.arange(len(values)) + 0.5, "y": values})
    assert prepare_table(frame, label="y").y.tolist() == list(values)


def test_mixed_labels_are_read_as_strings() -> None:
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5], "y": [1, "x", 1]})
    prepared = prepare_table(frame, label="y")
    assert prepared.y.tolist() == ["1", "x", "1"]
    assert [notice.kind for notice in prepared.notices] == ["mixed_types"]


def test_to_frame_puts_the_label_last() -> None:
    frame = prepare_table(table(), label="y").to_frame()
    assert frame.columns.tolist() == ["a", "y"]


def test_label_missing() -> None:
    assert "no label column 'incom' in the table; did you mean 'Income'" in refusal(
        pd.DataFrame({"Income": [1, 2]}), label="incom"
    )
    assert "choose one of: 'a', 'y'" in refusal(table(), label="zzzzz")


def test_empty_table() -> None:
    assert "no rows" in refusal(pd.DataFrame({"a": [], "y": []}))


def test_no_features_left() -> None:
    assert "no column besides the label" in refusal(pd.DataFrame({"y": [0, 1]}))
    assert "'a' (the same value in every row)" in refusal(pd.DataFrame({"a": [1, 1], "y": [0, 1]}))


def test_one_class_only() -> None:
    assert "'y' has one class only ('no')" in refusal(pd.DataFrame({"a": [1, 2, 3], "y": ["no", None, "no"]}))
    assert "'y' is empty in every row" in refusal(pd.DataFrame({"a": [1, 2], "y": [None, None]}))


@pytest.mark.parametrize(
    "labels",
    [
        np.linspace(0, 1, 400),
        np.repeat(np.linspace(0, 1, 40), 10),
        np.arange(400) // 1.9,
        np.repeat(np.arange(201), 3),
        [f"id{i}" for i in range(400)],
        pd.date_range("2020-01-01", periods=400),
        [0.5, 1.5, 2.5, 3.5],
    ],
)
def test_continuous_label(labels: Any) -> None:
    frame = pd.DataFrame({"a": np.arange(len(labels)) % 7 + 0.5, "y": labels})
    assert "'y' looks continuous, with " in refusal(frame)


@pytest.mark.parametrize(
    "labels",
    [
        np.repeat(np.arange(200), 3),
        np.arange(20),
        [0.5, 1.5, 2.5, 3.5] * 2,
        [f"c{i // 2}" for i in range(400)],
    ],
)
def test_many_classes_are_still_classes(labels: Any) -> None:
    frame = pd.DataFrame({"a": np.arange(len(labels)) % 7 + 0.5, "y": labels})
    assert prepare_table(frame, label="y").y.nunique() == len(set(labels))


def test_duplicate_names() -> None:
    frame = pd.DataFrame([[1, 2, 0], [3, 4, 1]], columns=["a", "a", "y"])
    assert "share a name ('a')" in refusal(frame)
    assert "share a name ('1')" in refusal(pd.DataFrame([[1, 2, 0], [3, 4, 1]], columns=[1, "1", "y"]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "Float64"])
def test_infinities(dtype: str) -> None:
    frame = pd.DataFrame({"a": pd.Series([0.5, 1.0, -np.inf, np.inf], dtype=dtype), "y": [None, 0, 1, 0]})
    assert "Column 'a' holds 2 infinite values, the first in data row 3 (the first is 1)" in refusal(frame)


def test_infinite_label() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "y": [0.5, np.inf, 0.5, 1.0]})
    assert "'y' holds an infinite value in data row 2" in refusal(frame)


@pytest.mark.parametrize(("role", "wanted"), [("numeric", "a number"), ("code", "a whole number")])
def test_role_that_the_values_do_not_fit(role: str, wanted: str) -> None:
    frame = pd.DataFrame({"airport": ["1", "2", "SFO", "3"], "y": [None, 0, 1, 0]})
    message = refusal(frame, roles={"airport": role})
    assert f"'airport' can't have the role {role!r}: 'SFO' in data row 3 (the first is 1) is not {wanted}" in message
