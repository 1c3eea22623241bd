"""Imperfect tables are repaired with a notice; unusable ones are refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.spec import SplitSettings
from c2tc_pipeline.tables.table import Table, learn_table


def table(**columns: Any) -> pd.DataFrame:
    rows = len(next(iter(columns.values()), [None] * 4))
    base = {"a": [1.5, 2.5] * (rows // 2), "y": ["no", "yes"] * (rows // 2)}
    return pd.DataFrame({**base, **columns})


def learnt(frame: pd.DataFrame, label: str = "y", **options: Any) -> Table:
    return learn_table(Blocks.of_frame(frame), label=label, **options)


def labels_of(found: Table) -> list[Any]:
    return found.labels(found.codes[found.codes >= 0]).tolist()


def notices_of(frame: pd.DataFrame, **options: Any) -> list[tuple[str, str | None]]:
    return [(notice.kind, notice.column) for notice in learnt(frame, **options).notices]


def refusal(frame: pd.DataFrame, label: str = "y", **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        learnt(frame, label, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def test_a_clean_table_has_no_notices_and_keeps_order() -> None:
    prepared = learnt(table(s=["u", "v", "u", None], b=[True, False, True, True]))
    assert prepared.notices == []
    assert prepared.statistics.sample.columns.tolist() == ["a", "s", "b"]
    assert prepared.statistics.sample.dtypes.astype(str).tolist() == ["float64", "str", "bool"]
    assert prepared.statistics.sample["s"].isna().tolist() == [False, False, False, True]


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
    prepared = learnt(frame)
    assert [(notice.kind, notice.column) for notice in prepared.notices] == [(kind, "useless")]
    assert "useless" not in prepared.statistics.sample
    assert prepared.roles["useless"].role == "drop"
    kept = learnt(frame, roles={"useless": "string"})
    assert "useless" in kept.statistics.sample
    assert kept.notices == []


def test_a_column_dropped_on_request_needs_no_notice() -> None:
    assert notices_of(table(s=["u", "v", "u", "v"]), roles={"s": "drop"}) == []


def test_mixed_types_are_read_as_strings() -> None:
    frame = table(m=[1, "x", 2.5, None])
    assert notices_of(frame) == [("mixed_types", "m")]
    assert learnt(frame).statistics.sample["m"].tolist()[:3] == ["1", "x", "2.5"]


def test_rows_without_a_label_are_left_out_and_counted() -> None:
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5, 4.5, 5.5], "y": [1, None, 2, None, 1]}, index=list("vwxyz"))
    prepared = learnt(frame)
    assert prepared.positions("train").tolist() == [0, 2, 4]
    assert labels_of(prepared) == [1, 2, 1]
    assert prepared.statistics.sample["a"].tolist() == [1.5, 3.5, 5.5]
    (notice,) = prepared.notices
    assert str(notice) == "Column 'y': 2 rows without a label were left out"


def test_column_names_become_text() -> None:
    frame = pd.DataFrame({0: [1.5, 2.5], "y": [0, 1]})
    prepared = learnt(frame)
    assert prepared.statistics.sample.columns.tolist() == ["0"]
    assert [notice.kind for notice in prepared.notices] == ["renamed_columns"]
    assert frame.columns.tolist() == [0, "y"]


def test_the_source_is_not_changed() -> None:
    frame = pd.DataFrame({"a": np.arange(6.0) + 0.5, "b": np.arange(6, dtype=np.int16) * 3, "y": [0, 1] * 3})
    before = frame.copy()
    learnt(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_codes_with_missing_values_are_nullable_integers() -> None:
    prepared = learnt(table(weekday=[1.0, None, 3.0, 2.0]))
    assert str(prepared.statistics.sample["weekday"].dtype) == "Int64"
    assert prepared.statistics.sample["weekday"].isna().tolist() == [False, True, False, False]


def test_text_can_be_read_as_numbers_on_request() -> None:
    prepared = learnt(table(t=["1", "2.5", None, "3"]), roles={"t": "numeric"})
    np.testing.assert_array_equal(prepared.statistics.sample["t"], [1, 2.5, np.nan, 3])


@pytest.mark.parametrize("values", [[True, False, True], pd.Categorical(["p", "q", "p"]), [0.5, 1.5, 0.5, 1.5]])
def test_label_values_stay_what_they_are(values: Any) -> None:
    frame = pd.DataFrame({"a": np.arange(len(values)) + 0.5, "y": values})
    assert labels_of(learnt(frame)) == list(values)


def test_mixed_labels_are_read_as_strings() -> None:
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5], "y": [1, "x", 1]})
    prepared = learnt(frame)
    assert labels_of(prepared) == ["1", "x", "1"]
    assert [notice.kind for notice in prepared.notices] == ["mixed_types"]


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
    assert len(learnt(frame).classes) == len(set(labels))


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


@pytest.mark.parametrize(("role", "wanted"), [("numeric", "a number"), ("code", "an integer")])
def test_role_that_the_values_do_not_fit(role: str, wanted: str) -> None:
    frame = pd.DataFrame({"airport": ["1", "2", "SFO", "3"], "y": [None, 0, 1, 0]})
    message = refusal(frame, roles={"airport": role})
    assert f"'airport' can't have the role {role!r}: 'SFO' in data row 3 (the first is 1) is not {wanted}" in message


@pytest.mark.parametrize("group_duplicates", [False, True])
def test_a_split_table_comes_back_from_files_as_it_was(tmp_path: Path, group_duplicates: bool) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=300),
            "n": pd.array(rng.integers(0, 9, 300), dtype="Int64"),
            "job": rng.choice(["cook", "nurse", None], 300),
            "day": rng.integers(1, 8, 300),
            "y": pd.array(rng.choice([True, False], 300), dtype="boolean"),
        }
    )
    frame.loc[:20, ["n", "y"]] = None
    frame = pd.concat([frame, frame.iloc[100:150]], ignore_index=True)
    found = learnt(frame, split=SplitSettings(group_duplicates=group_duplicates))
    found.write_files(tmp_path)
    again = Table.read_files(tmp_path)
    assert (again.digest(), again.training_digest()) == (found.digest(), found.training_digest())
    pd.testing.assert_frame_equal(again.statistics.sample, found.statistics.sample)
    pd.testing.assert_frame_equal(again.statistics.example, found.statistics.example)
    assert again.classes.tolist() == found.classes.tolist()
    assert again.label_dtype == found.label_dtype
    for name in ("job", "day"):
        one, other = again.statistics.categories(name), found.statistics.categories(name)
        assert (one.keys, one.table.tolist(), one.missing.tolist()) == (
            other.keys,
            other.table.tolist(),
            other.missing.tolist(),
        )
    assert vars(again.statistics.numbers("x")) == vars(found.statistics.numbers("x"))
    twins = found.sides[100:150] == found.sides[300:]
    assert twins.all() == group_duplicates


def test_test_rows_change_nothing_that_condensing_reads() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "job": rng.choice(["cook", "nurse"], 200), "y": [0, 1] * 100})
    before = learnt(frame, split=SplitSettings())
    poisoned = frame.copy()
    poisoned.loc[before.positions("test"), ["x", "job"]] = [1e9, "spy"]
    after = learnt(poisoned, split=SplitSettings())
    assert after.training_digest() == before.training_digest()
    assert after.digest() != before.digest()
    assert after.roles == before.roles
    assert after.statistics.numbers("x").high == before.statistics.numbers("x").high
