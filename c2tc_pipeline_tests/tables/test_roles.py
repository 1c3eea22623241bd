"""Role inference: one rule at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline_tests.tools.made_tables import inferred_roles

ROWS = 200


def role_of(values: Any, name: str = "x", overrides: Any = None) -> Role:
    table = pd.DataFrame({name: values})
    table["y"] = 0
    return inferred_roles(table, "y", overrides)[name].role


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("married", [True, False] * 100, Role.CODE),
        ("sex", [1, 2] * 100, Role.CODE),
        ("sex", [1.0, None] * 50 + [2.0, 1.0] * 50, Role.CODE),
        ("price", [0.5, 1.5] * 100, Role.NUMERIC),
        ("price", np.linspace(0, 1, ROWS), Role.NUMERIC),
        ("DayOfWeek", [1, 2, 3, 4, 5] * 40, Role.CODE),
        ("zip5", [10001, 90210, 60601, 33101] * 50, Role.CODE),
        ("education-num", list(range(1, 11)) * 20, Role.NUMERIC),
        ("number_of_type", list(range(1, 11)) * 20, Role.NUMERIC),
        ("age_group", [1, 2, 3, 4] * 50, Role.NUMERIC),
        ("type", [i // 2 for i in range(ROWS)], Role.NUMERIC),
        ("size", pd.Categorical([1, 2, 3, 4] * 50), Role.CODE),
        ("job", ["cook", "nurse"] * 100, Role.STRING),
        ("job", pd.Categorical(["cook", "nurse"] * 100), Role.STRING),
        ("mixed", [1, "a", 2.5, None] * 50, Role.STRING),
        ("when", pd.date_range("2020-01-01", periods=ROWS), Role.NUMERIC),
        ("how_long", pd.to_timedelta(np.arange(ROWS), unit="s"), Role.NUMERIC),
        ("version", [3] * ROWS, Role.DROP),
        ("nothing", [None] * ROWS, Role.DROP),
        ("answered", [1.0, None] * 100, Role.CODE),
    ],
)
def test_rule(name: str, values: Any, role: Role) -> None:
    assert role_of(values, name) is role


@pytest.mark.parametrize(
    ("name", "values", "dropped"),
    [
        ("serial", [f"A{i:05d}" for i in range(ROWS)], True),
        ("serial", [f"A{max(i, 1)}" for i in range(ROWS)], True),
        ("serial", [f"A{max(i, 5)}" for i in range(ROWS)], False),
        ("serial", [f"A{i}" for i in range(40)], False),
        ("customer_id", [f"A{i}" for i in range(40)], True),
        ("row", np.arange(ROWS) + 1000, True),
        ("row", np.random.default_rng(0).permutation(ROWS), True),
        ("row", np.arange(40), False),
        ("income", np.arange(ROWS) * 37, False),
        ("customer_id", np.arange(ROWS) * 37, True),
        ("customer_id", np.arange(ROWS).astype(float) * 37, True),
        ("id", np.linspace(0, 1, ROWS), False),
        ("row", pd.date_range("2020-01-01", periods=ROWS), False),
    ],
)
def test_identifiers_are_dropped(name: str, values: Any, dropped: bool) -> None:
    assert (role_of(values, name) is Role.DROP) == dropped


@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 9), st.none()), min_size=2, max_size=80), st.randoms())
def test_row_order_never_matters(values: list[int | None], random: Any) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)
    assert role_of(values, "type") is role_of(shuffled, "type")


def test_reports_distinct_missing_and_reason() -> None:
    table = pd.DataFrame({"y": [0, 1, 0, 1], "weekday": [1.0, 2.0, 3.0, None]})
    (found,) = inferred_roles(table, "y").values()
    assert (found.name, found.distinct, found.missing) == ("weekday", 3, 1)
    assert "'weekday'" in found.reason


def test_override_wins_over_every_rule() -> None:
    assert role_of([3] * ROWS, overrides={"x": "numeric"}) is Role.NUMERIC
    assert role_of(["a", "b"] * 100, overrides={"x": Role.DROP}) is Role.DROP


@pytest.mark.parametrize(
    ("overrides", "named"), [({"ag": "numeric"}, "'ag'.*'age'"), ({"age": "number"}, "'age'"), ({"y": "code"}, "'y'")]
)
def test_wrong_overrides(overrides: dict[str, str], named: str) -> None:
    table = pd.DataFrame({"age": [1, 2], "y": [0, 1]})
    with pytest.raises(InputError, match=named):
        inferred_roles(table, "y", overrides)
