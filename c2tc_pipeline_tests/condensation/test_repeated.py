"""Condensed rows that repeat a source row, against a comparison of all of them with all source rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline import CondensedTable, Condenser, condense
from c2tc_pipeline_tests.tools.made_tables import labelled_frames, mixed_table

pytestmark = pytest.mark.filterwarnings("ignore::c2tc_pipeline.condensation.clusters.SingletonWarning")


def spelled(values: Any) -> tuple[object, ...]:
    """A row for comparison: missing is missing, and numbers are those that a person would read."""
    return tuple(
        None if pd.isna(value) else f"{float(value):.11g}" if isinstance(value, float | np.floating) else str(value)
        for value in values
    )


def repeated(small: CondensedTable, frame: pd.DataFrame, rows: pd.DataFrame) -> np.ndarray:
    columns = small.original.columns.tolist()
    source = frame[columns].astype(small.original.dtypes.to_dict(), errors="ignore")
    records = {spelled(row) for row in source[frame[small.label_name].notna()].itertuples(index=False)}
    return np.array([spelled(row) in records for row in rows[columns].itertuples(index=False)])


@settings(max_examples=8)
@given(frame=labelled_frames(), ratio=st.sampled_from([0.05, 0.2, 0.5, 1.0]))
def test_any_table(frame: pd.DataFrame, ratio: float) -> None:
    small = condense(frame, "outcome", ratio)
    counts = small.summary["repeated_rows"]
    found = repeated(small, frame, small.original)
    weight = small.weight.to_numpy()
    assert counts["total"] == int(found.sum())
    assert counts["singletons"] == int((weight == 1).sum()) == int((found & (weight == 1)).sum())
    group = small.membership["condensed_row"].to_numpy()
    members = frame.loc[small.membership["source_row"]].groupby(group)
    alike = np.array([len(rows.drop_duplicates()) == 1 for _, rows in members])
    assert counts["equal_rows"] == int((alike & (weight > 1)).sum())
    assert counts["coincidences"] == int((found & ~alike).sum())
    assert counts["medoids"] == 0
    X, y, _ = small.expand()
    assert counts["drawn_rows"] == len(X)
    assert counts["drawn"] == int(repeated(small, frame, pd.concat([X, y], axis=1)).sum())


def table(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({name: list(values) for name, values in columns.items()})


def test_each_reason() -> None:
    # Class a: three equal rows; class b: two rows whose mean is nobody; class c: 1, 2 and 3, whose mean is one of them.
    frame = table(x=[0.1, 0.1, 0.1, 5.0, 6.5, 11.0, 12.0, 13.0], y="aaabbccc")
    small = condense(frame, "y", rows=3)
    expected = {"total": 2, "singletons": 0, "equal_rows": 1, "medoids": 0, "coincidences": 1, "encoded": 2}
    assert expected.items() <= small.summary["repeated_rows"].items()
    # Every row drawn from the three equal ones repeats them.
    assert small.summary["repeated_rows"]["drawn"] >= 3
    [notice] = [notice for notice in small.notices if notice.kind == "repeated_rows"]
    assert str(notice).startswith("2 of 3 condensed rows equal a source row in every column although they stand for")


def test_a_record_of_another_cluster_counts_but_not_one_of_another_class() -> None:
    frame = table(x=[1.0, 3.0, 2.0, 90.0, 92.0], y="aabbb")
    # Class a's mean is 2.0, which only a row of class b has.
    assert condense(frame, "y", rows=2).summary["repeated_rows"]["total"] == 0
    frame.loc[2, "y"] = "a"
    assert condense(frame, "y", rows=2).summary["repeated_rows"]["coincidences"] == 1


def test_missing_values_equal_each_other() -> None:
    frame = table(x=[1.5, 1.5, 7.0, 9.0], job=["cook", "cook", None, None], y="aabb")
    frame.loc[2:, "x"] = [np.nan, np.nan]
    assert condense(frame, "y", rows=2, roles={"x": "numeric", "job": "string"}).summary["repeated_rows"]["total"] == 2


def test_medoids_are_all_real_rows() -> None:
    frame = mixed_table(80)
    small = condense(frame, "outcome", 0.1, representative="medoid")
    counts = small.summary["repeated_rows"]
    assert counts["total"] == counts["encoded"] == len(small) == 8
    assert counts["medoids"] == 8 - int((small.weight == 1).sum())
    assert "All 8 condensed rows are source rows" in " ".join(map(str, small.notices))


def test_columns_of_every_kind() -> None:
    rows = 40
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "flag": rng.random(rows) < 0.5,
            "day": pd.Series(rng.integers(1, 4, rows)).astype("Int64").mask(rng.random(rows) < 0.2),
            "kind": pd.Categorical(rng.choice(["a", "b"], rows)),
            "mixed": pd.Series([[1, "one", 2.5][i] for i in rng.integers(0, 3, rows)], dtype=object),
            "since": pd.Timestamp("2020-01-01", tz="Europe/Rome") + pd.to_timedelta(rng.integers(0, 3, rows), unit="D"),
            "small": rng.integers(0, 3, rows).astype(np.float32) / 3,
            "y": rng.choice(["no", "yes"], rows),
        }
    )
    small = condense(frame, "y", 1.0)
    assert small.summary["repeated_rows"]["total"] == rows
    assert condense(frame, "y", 0.1).summary["repeated_rows"]["total"] <= 4


def test_the_sampler_says_which_rows_repeat_one() -> None:
    X = np.array([[0.1], [0.1], [0.1], [5.0], [6.5], [9.0], [11.0], [13.0]])
    condenser = Condenser(rows=3)
    X_small, _ = condenser.fit_resample(X, list("aaabbccc"))
    assert condenser.repeats_.tolist() == [True, False, True]
    assert condenser.repeats_.tolist() == [bool(np.isclose(X, row).any()) for row in X_small]
