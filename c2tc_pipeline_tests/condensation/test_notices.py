"""Imperfect tables: each imperfection is handled, and a notice names the column and what was done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline import HybridEncoder, condense
from c2tc_pipeline_tests.tools.made_tables import mixed_table

ROWS = 300
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "constant_column": ({"extra": 7}, "holds the same value in every row and was dropped"),
    "all_missing_column": ({"extra": None}, "holds no value at all and was dropped"),
    "identifier_column": ({"extra": [f"{n:x}-{n}" for n in range(ROWS)]}, "looks like an identifier (300 distinct"),
    "mixed_types": ({"extra": [1, "one", 2.5] * 100}, "holds values of several types and was read as strings"),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_notice_names_the_column(kind: str) -> None:
    columns, message = CASES[kind]
    small = condense(mixed_table(ROWS).assign(**columns), "outcome", rows=3)
    notices = [notice for notice in small.notices if notice.column is not None]
    assert [(notice.kind, notice.column) for notice in notices] == [(kind, "extra")]
    assert message in notices[0].message


@pytest.mark.parametrize("role", ["string", "code", "numeric"])
@pytest.mark.parametrize("column", [range(10_000, 10_000 + ROWS), [7] * ROWS], ids=["identifier", "constant"])
def test_a_role_overrides_the_drop(role: str, column: Any) -> None:
    small = condense(mixed_table(ROWS).assign(extra=column), "outcome", rows=3, roles={"extra": role})
    assert small.notices == []
    assert small.encoder.encoding_of("extra") != "dropped"
    assert small.roles.set_index("column")["role"]["extra"] == role


def test_many_distinct_strings() -> None:
    # Each twice, or they would be taken for an identifier.
    words = [
        f"{shade} {noun} {number}" for number in range(15) for shade in ("dark", "pale") for noun in ("oak", "elm")
    ]
    frame = pd.DataFrame({"tree": words * 2, "x": np.arange(120) % 11 / 3, "y": ["a", "b"] * 60})
    encoder = HybridEncoder(strings="similarity", max_prototypes=20, epochs=1)
    small = condense(frame, "y", rows=4, encoder=encoder)
    notices = [notice for notice in small.notices if notice.kind == "many_strings"]
    assert [notice.column for notice in notices] == ["tree"]
    assert "60 distinct strings" in notices[0].message
    assert "20 most frequent" in notices[0].message


def test_a_clean_table_has_no_notice() -> None:
    assert condense(mixed_table(ROWS), "outcome", rows=3).notices == []


def test_missing_values_everywhere_but_in_the_label() -> None:
    frame = mixed_table(ROWS)
    rng = np.random.default_rng(1)
    for name in frame.columns.drop("outcome"):
        frame[name] = frame[name].astype("object").mask(rng.random(ROWS) < 0.4)
    small = condense(frame, "outcome", 0.05)
    assert not small.X.isna().any(axis=None)
    assert small.X.to_numpy().min() >= 0
    assert small.X.to_numpy().max() <= 1


def test_a_ratio_below_one_row_a_class_is_raised_and_said_so() -> None:
    small = condense(mixed_table(200), "outcome", 0.005)
    raised = [str(notice) for notice in small.notices if notice.kind == "rows_raised"]
    assert raised == [f"The ratio asks for 1 rows, but {len(small)} classes need one each: there are that many."]
