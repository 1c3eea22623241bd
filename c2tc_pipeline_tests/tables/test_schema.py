"""The schema: the table it came from fits, every kind of drift is named."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline.tables.schema import check_schema, derive_schema, schema_from_json, schema_to_json
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline.tables.table import learn_table

SPEC = TableSpec(
    name="t", source="t.csv", label="y", roles={"number_as_text": Role.STRING, "text_as_number": Role.NUMERIC}
)


def good() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "amount": [1.5, 2.0, 3.5, 4.0],
            "gaps": [1.5, None, 3.5, 4.0],
            "weekday": [1, 2, 3, 2],
            "job": ["cook", "nurse", None, "cook"],
            "number_as_text": [1, 2, 3, 1],
            "text_as_number": ["1", "2.5", "3", "1"],
            "when": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"]),
            "same": [1, 1, 1, 1],
            "y": ["no", "yes", "no", "yes"],
        }
    )


def derived(frame: pd.DataFrame) -> Any:
    return derive_schema(learn_table(Blocks.of_frame(frame), label="y", roles=SPEC.roles))


def failures_of(frame: pd.DataFrame, schema: Any) -> Any:
    return check_schema(Blocks.of_frame(frame), schema)


def found(frame: pd.DataFrame) -> list[tuple[str, str, int]]:
    schema = schema_from_json(schema_to_json(derived(good())))
    return [(failure.column, failure.check, failure.count) for failure in failures_of(frame, schema)]


def test_failures_of_all_blocks_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("c2tc_pipeline.tables.blocks.FRAME_BLOCK_ROWS", 3)
    frame = pd.concat([good()] * 3, ignore_index=True).assign(amount=[np.nan, 1.0] * 6).drop(columns="gaps")
    missing, absent = failures_of(frame, derived(good()))
    assert (missing.column, missing.check, missing.count) == ("amount", "not_missing", 6)
    assert [re.findall(r"\d+", case)[0] for case in missing.first_cases] == ["1", "3", "5", "7", "9"]
    assert (absent.column, absent.check, absent.count) == ("gaps", "present", 1)
    (unknown,) = failures_of(pd.concat([good()] * 5).assign(y="unknown"), derived(good()))
    assert (unknown.count, unknown.first_cases) == (20, ("unknown",) * 5)


@pytest.mark.parametrize(
    ("column", "values", "failure"),
    [
        ("amount", [1.5, None, None, 4.0], ("amount", "not_missing", 2)),
        ("amount", [1.5, np.inf, 2.0, -np.inf], ("amount", "finite", 2)),
        ("amount", ["a", 1.0, 2.0, "b"], ("amount", "number", 2)),
        ("weekday", [1, 2.5, 3, 4], ("weekday", "integer", 1)),
        ("weekday", ["mon", "tue", "1", "2"], ("weekday", "integer", 2)),
        ("job", [1, 2, 3, 4], ("job", "text", 4)),
        ("number_as_text", [1, None, 3, 4], ("number_as_text", "not_missing", 1)),
        ("text_as_number", ["1", "x", "3", "4"], ("text_as_number", "number", 1)),
        ("y", ["no", "maybe", "no", "never"], ("y", "known_class", 2)),
    ],
)
def test_drift_is_named(column: str, values: list[Any], failure: tuple[str, str, int]) -> None:
    assert found(good().assign(**{column: values})) == [failure]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("a further column", [1, 2, 3, 4]),
        ("same", [1, 2, 3, 4]),
        ("gaps", [None, None, None, None]),
        ("amount", [7, 8, 9, 10]),
        ("weekday", [8, 9, 10, 11]),
        ("job", ["pilot", None, None, "cook"]),
        ("y", ["no", "no", "no", "no"]),
    ],
)
def test_what_may_change(column: str, values: list[Any]) -> None:
    assert found(good()) == found(good().drop(columns="same").assign(**{column: values})) == []


def test_everything_wrong_is_reported_at_once_in_column_order() -> None:
    frame = good().drop(columns=["gaps", "y"]).assign(amount=np.inf, weekday=0.5)
    assert found(frame) == [
        ("amount", "finite", 4),
        ("gaps", "present", 1),
        ("weekday", "integer", 4),
        ("y", "present", 1),
    ]


@pytest.mark.parametrize(
    "labels", [[1, 2, 1, 2], [True, False] * 2, [0.5, 1.5] * 2, [1, "x", 1, "x"], pd.Categorical(list("abab"))]
)
def test_labels_of_every_type_fit_their_own_schema(labels: Any) -> None:
    frame = good().assign(y=labels)
    assert failures_of(frame, schema_from_json(schema_to_json(derived(frame)))) == []


def test_json_is_plain_and_complete() -> None:
    document = json.loads(schema_to_json(derived(good())))
    assert document["version"] == 1
    assert document["classes"] == ["no", "yes"]
    assert [column["name"] for column in document["columns"] if column["nullable"]] == ["gaps", "job"]


@pytest.mark.parametrize("text", ["", "[]", '{"version": 2}', '{"version": 1, "label": "y"}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        schema_from_json(text)
