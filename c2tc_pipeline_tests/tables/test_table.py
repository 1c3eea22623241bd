"""Imperfect tables are repaired with a notice; unusable ones are refused in one sentence."""

from __future__ import annotations

import re
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


def notices_of(found: Table) -> list[tuple[str, str | None]]:
    return [(notice.kind, notice.column) for notice in found.notices]


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
    assert notices_of(prepared) == [(kind, "useless")]
    assert "useless" not in prepared.statistics.sample
    assert prepared.roles["useless"].role == "drop"
    for role in ("string", "drop"):
        asked = learnt(frame, roles={"useless": role})
        assert ("useless" in asked.statistics.sample) == (role == "string")
        assert asked.notices == []


def test_mixed_types_are_read_as_strings() -> None:
    prepared = learnt(table(m=[1, "x", 2.5, None], y=[1, "x", 1, 1]))
    assert notices_of(prepared) == [("mixed_types", "y"), ("mixed_types", "m")]
    assert prepared.statistics.sample["m"].tolist()[:3] == ["1", "x", "2.5"]
    assert labels_of(prepared) == ["1", "x", "1", "1"]


def test_rows_without_a_label_are_left_out_and_counted() -> None:
    frame = pd.DataFrame({"a": [1.5, 2.5, 3.5, 4.5, 5.5], "y": [1, None, 2, None, 1]}, index=list("vwxyz"))
    prepared = learnt(frame)
    assert prepared.positions("train").tolist() == [0, 2, 4]
    assert labels_of(prepared) == [1, 2, 1]
    assert prepared.statistics.sample["a"].tolist() == [1.5, 3.5, 5.5]
    (notice,) = prepared.notices
    assert (notice.column, re.findall(r"\d+", str(notice))) == ("y", ["2"])


def test_column_names_become_text_and_the_source_is_not_changed() -> None:
    frame = pd.DataFrame({0: [1.5, 2.5, 3.5, 4.5], "b": np.arange(4, dtype=np.int16) * 3, "y": [0, 1] * 2})
    before = frame.copy()
    prepared = learnt(frame)
    assert prepared.statistics.sample.columns.tolist() == ["0", "b"]
    assert [notice.kind for notice in prepared.notices] == ["renamed_columns"]
    pd.testing.assert_frame_equal(frame, before)


def test_codes_with_gaps_are_nullable_integers_and_text_is_read_as_numbers_on_request() -> None:
    frame = table(weekday=[1.0, None, 3.0, 2.0], t=["1", "2.5", None, "3"])
    sample = learnt(frame, roles={"t": "numeric"}).statistics.sample
    assert str(sample["weekday"].dtype) == "Int64"
    assert sample["weekday"].isna().tolist() == [False, True, False, False]
    np.testing.assert_array_equal(sample["t"], [1, 2.5, np.nan, 3])


@pytest.mark.parametrize("values", [[True, False, True], pd.Categorical(["p", "q", "p"]), [0.5, 1.5, 0.5, 1.5]])
def test_label_values_stay_what_they_are(values: Any) -> None:
    frame = pd.DataFrame({"a": np.arange(len(values)) + 0.5, "y": values})
    assert labels_of(learnt(frame)) == list(values)


# Tables that are refused, and the column, value or number that is named.
REFUSED: list[tuple[pd.DataFrame, str]] = [
    (pd.DataFrame({"Y": [1, 2]}), "'Y'"),
    (pd.DataFrame({"a": [1, 2], "zzzzz": [1, 2]}), "'a', 'zzzzz'"),
    (pd.DataFrame({"a": [], "y": []}), ""),
    (pd.DataFrame({"y": [0, 1]}), ""),
    (pd.DataFrame({"a": [1, 1], "y": [0, 1]}), "'a'"),
    (pd.DataFrame({"a": [1, 2, 3], "y": ["no", None, "no"]}), "'no'"),
    (pd.DataFrame({"a": [1, 2], "y": [None, None]}), "'y'"),
    (pd.DataFrame([[1, 2, 0], [3, 4, 1]], columns=["a", "a", "y"]), "'a'"),
    (pd.DataFrame([[1, 2, 0], [3, 4, 1]], columns=[1, "1", "y"]), "'1'"),
    (pd.DataFrame({"a": [1, 2, 3, 4], "y": [0.5, np.inf, 0.5, 1.0]}), "row 2"),
    *(
        (pd.DataFrame({"a": pd.Series([0.5, 1.0, -np.inf, np.inf], dtype=dtype), "y": [None, 0, 1, 0]}), "row 3")
        for dtype in ("float32", "float64", "Float64")
    ),
]


@pytest.mark.parametrize(("frame", "named"), REFUSED, ids=range(len(REFUSED)))
def test_unusable_tables_are_refused(frame: pd.DataFrame, named: str) -> None:
    assert named in refusal(frame)


CONTINUOUS: list[Any] = [np.linspace(0, 1, 400), np.repeat(np.linspace(0, 1, 40), 10), np.arange(400) // 1.9]
CONTINUOUS += [np.repeat(np.arange(201), 3), [f"id{i}" for i in range(400)], [0.5, 1.5, 2.5, 3.5]]
CONTINUOUS += [pd.date_range("2020-01-01", periods=400)]
MANY: list[Any] = [np.repeat(np.arange(200), 3), np.arange(20), [0.5, 1.5, 2.5, 3.5] * 2]
MANY += [[f"c{i // 2}" for i in range(400)]]


@pytest.mark.parametrize(
    ("labels", "continuous"), [*((some, True) for some in CONTINUOUS), *((some, False) for some in MANY)]
)
def test_continuous_labels_are_refused_and_many_classes_are_still_classes(labels: Any, continuous: bool) -> None:
    frame = pd.DataFrame({"a": np.arange(len(labels)) % 7 + 0.5, "y": labels})
    if continuous:
        assert "'y'" in refusal(frame)
    else:
        assert len(learnt(frame).classes) == len(set(labels))


@pytest.mark.parametrize("role", ["numeric", "code"])
def test_role_that_the_values_do_not_fit(role: str) -> None:
    frame = pd.DataFrame({"airport": ["1", "2", "SFO", "3"], "y": [None, 0, 1, 0]})
    message = refusal(frame, roles={"airport": role})
    assert all(named in message for named in ("'airport'", f"'{role}'", "'SFO'", "row 3"))


@pytest.mark.parametrize("group_duplicates", [False, True])
def test_a_split_table_comes_back_from_files_as_it_was(tmp_path: Path, group_duplicates: bool) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=300),
            "n": pd.array(rng.integers(0, 9, 300), dtype="Int64"),
            "job": rng.choice(np.array(["cook", "nurse", None], dtype=object), 300),
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
        one, other = (
            (counts.keys, counts.cells.toarray().tolist())
            for counts in (table.statistics.categories(name) for table in (again, found))
        )
        assert one == other
    assert vars(again.statistics.numbers("x")) == vars(found.statistics.numbers("x"))
    twins = found.sides[100:150] == found.sides[300:]
    assert twins.all() == group_duplicates


def test_test_rows_change_nothing_that_condensing_reads() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=200), "job": rng.choice(["cook", "nurse"], 200), "y": [0, 1] * 100})
    before = learnt(frame, split=SplitSettings())
    poisoned = frame.copy()
    poisoned.loc[frame.index.isin(before.positions("test")), "x"] = 1e9
    poisoned.loc[frame.index.isin(before.positions("test")), "job"] = "spy"
    after = learnt(poisoned, split=SplitSettings())
    assert after.training_digest() == before.training_digest()
    assert after.digest() != before.digest()
    assert after.roles == before.roles
    assert after.statistics.numbers("x").high == before.statistics.numbers("x").high
