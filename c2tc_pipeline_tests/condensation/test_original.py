"""Condensed rows in the original schema: types, means, modes, gaps, and real rows in medoid mode."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline import CondensedTable, condense
from c2tc_pipeline.condensation.members import ColumnSummary
from c2tc_pipeline.tables.kinds import column_kind
from c2tc_pipeline.tables.roles import ColumnRole, Role
from c2tc_pipeline_tests.tools.made_tables import mixed_table

pytestmark = pytest.mark.filterwarnings("ignore::c2tc_pipeline.condensation.clusters.SingletonWarning")

ROWS = 120


def condensed_column(
    values: Sequence[Any] | Any, *, rows: int = 12, **settings: Any
) -> tuple[pd.Series, CondensedTable]:
    """Condense a table that has one column beside a number and the label."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=ROWS), "column": values})
    frame["y"] = np.where(np.arange(ROWS) % 3 == 0, "rare", "usual")
    small = condense(frame, "y", rows=rows, strings="target", **settings)
    return small.original["column"], small


def summarise_members(series: pd.Series, role: Role, membership: np.ndarray, size: int) -> pd.Series:
    summary = ColumnSummary(ColumnRole("column", role, "", 0, 0), column_kind(series), size)
    summary.add(series, membership)
    return summary.values(series)


def grouped(values: Any, small: CondensedTable) -> Any:
    return pd.Series(values).groupby(small.membership["condensed_row"].to_numpy())


COUNTING = np.arange(ROWS) * 7 % 97


def moments(zone: str | None) -> pd.Series:
    """Return hours on both sides of a change to summer time."""
    return pd.Series(pd.date_range("2024-03-29", periods=ROWS, freq="h", tz=zone))


ZONES: dict[str | None, Any] = {None: "s", "UTC": "ms", "Europe/Paris": "us", "America/St_Johns": "ns"}
NUMBERS: dict[str, tuple[pd.Series, float]] = {
    **{dtype: (pd.Series(COUNTING).astype(dtype), 0.5) for dtype in ("int8", "uint64", "Int16", "UInt8")},
    **{dtype: (pd.Series(COUNTING / 8).astype(dtype), 1e-4) for dtype in ("float32", "float64", "Float64")},
    **{f"moments in {unit}, {zone}": (moments(zone).dt.as_unit(unit), 1) for zone, unit in ZONES.items()},
    **{
        f"durations in {unit}": (pd.Series(pd.to_timedelta(COUNTING, unit="min")).dt.as_unit(unit), 1)
        for unit in ("s", "us", "ns")
    },
}


@pytest.mark.parametrize("name", NUMBERS)
def test_means_keep_type_unit_and_zone(name: str) -> None:
    values, tolerance = NUMBERS[name]
    column, small = condensed_column(values)
    assert column.dtype == values.dtype
    is_time = values.dtype.kind in "mM"
    expected = (grouped(values, small) if is_time else grouped(values.astype("float64"), small)).mean()
    gaps = (column.reset_index(drop=True) if is_time else column.astype("float64")) - expected.reset_index(drop=True)
    assert gaps.abs().max() <= (pd.Timedelta(seconds=tolerance) if is_time else tolerance)


def test_dates_stay_dates() -> None:
    dates = [datetime.date(2024, 1, 1) + datetime.timedelta(days=int(days)) for days in COUNTING]
    column, small = condensed_column(dates)
    assert {type(value) for value in column} == {datetime.date}
    means = grouped(COUNTING, small).mean()
    days = np.array([(value - datetime.date(2024, 1, 1)).days for value in column])
    assert np.abs(days - means).max() <= 0.5


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_days_get_no_time_that_no_source_row_has(zone: str | None) -> None:
    days = pd.Series(pd.date_range("2024-01-01", periods=ROWS, freq="3D", tz=zone))
    column, small = condensed_column(days)
    assert (column == column.dt.floor("D")).all()
    assert (column.reset_index(drop=True) - grouped(days, small).mean()).abs().max() <= pd.Timedelta(hours=12)
    drawn = small.expand(rows=50, random_state=0)[0]["column"]
    assert (drawn == drawn.dt.floor("D")).all()
    assert drawn.dtype == days.dtype


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
def test_labels_keep_their_type(dtype: str) -> None:
    frame = pd.DataFrame({"x": np.sqrt(np.arange(60)), "y": (np.arange(60) % 2).astype(dtype)})
    small = condense(frame, "y", rows=6)
    assert [small.original["y"].dtype, small.expand(9)[1].dtype] == [dtype] * 2


def test_decimals_are_averaged() -> None:
    column, small = condensed_column([Decimal(int(value)) / 8 for value in COUNTING])
    assert {-value.as_tuple().exponent for value in column} == {3}
    np.testing.assert_allclose(column.astype(float), grouped(COUNTING / 8, small).mean(), atol=0.0005)


@pytest.mark.parametrize(
    ("values", "largest"),
    [
        (np.where(np.arange(ROWS) % 2 == 0, np.iinfo(np.int64).max, COUNTING), np.iinfo(np.int64).max),
        (np.where(np.arange(ROWS) % 2 == 0, np.iinfo(np.int64).min, COUNTING), 96),
        (np.where(np.arange(ROWS) % 2 == 0, np.uint64(2**64 - 1), COUNTING.astype(np.uint64)), 2**64 - 1),
    ],
    ids=["int64 max", "int64 min", "uint64 max"],
)
def test_the_largest_integers_do_not_change_sign(values: np.ndarray, largest: int) -> None:
    column, _ = condensed_column(values, rows=ROWS, roles={"column": "numeric"})
    assert column.dtype == values.dtype
    assert int(column.max()) == largest
    assert int(column.min()) == int(values.min())


CATEGORIES = np.array(["red", "green", "blue"])[COUNTING % 3]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (pd.array(CATEGORIES, dtype="str"), "str"),
        (pd.Series(CATEGORIES.astype(object), dtype="object"), "object"),
        (pd.Categorical(CATEGORIES, categories=["blue", "green", "red", "never"]), None),
        (pd.Categorical(COUNTING % 3), None),
        (COUNTING % 2 == 0, "bool"),
        (pd.array(COUNTING % 2 == 0, dtype="boolean"), "boolean"),
        (pd.array(COUNTING % 2, dtype="int8"), "int8"),
    ],
    ids=["str", "object", "category", "category of numbers", "bool", "boolean", "zero or one"],
)
def test_categories_are_members_modes(values: Any, dtype: str | None) -> None:
    column, small = condensed_column(values)
    assert column.dtype == (values.dtype if dtype is None else dtype)
    for shown, (_, members) in zip(column, grouped(np.asarray(values), small), strict=True):
        votes = members.value_counts()
        assert votes[shown] == votes.max()


def drawn_membership(data: st.DataObject, rows: int) -> tuple[int, np.ndarray]:
    """Draw a number of groups, and the group of each row; none is empty."""
    size = data.draw(st.integers(1, rows))
    others = data.draw(st.lists(st.integers(0, size - 1), min_size=rows - size, max_size=rows - size))
    return size, np.array([*range(size), *others])


@settings(max_examples=30)
@given(values=st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=40), data=st.data())
def test_modes_against_counting_by_hand(values: list[str | None], data: st.DataObject) -> None:
    size, membership = drawn_membership(data, len(values))
    result = summarise_members(pd.Series(values, dtype="str"), Role.STRING, membership, size)
    assert len(result) == size
    for group, shown in enumerate(result):
        members = [value for value, own in zip(values, membership, strict=True) if own == group]
        key = None if pd.isna(shown) else shown
        best = max(members.count(value) for value in set(members))
        assert members.count(key) == best
        # Of equally many, the value that the whole column has more of.
        assert values.count(key) == max(values.count(value) for value in set(members) if members.count(value) == best)


@settings(max_examples=30)
@given(
    values=st.lists(st.none() | st.integers(-(10**9), 10**9), min_size=1, max_size=40),
    dtype=st.sampled_from(["Int64", "Int32", "Float64", "float64"]),
    data=st.data(),
)
def test_means_against_pandas(values: list[int | None], dtype: str, data: st.DataObject) -> None:
    size, membership = drawn_membership(data, len(values))
    series = pd.Series(values, dtype=dtype)
    result = summarise_members(series, Role.NUMERIC, membership, size)
    assert result.dtype == dtype
    groups = series.astype("Float64").groupby(membership)
    expected = groups.mean().mask(groups.apply(lambda members: 2 * members.notna().sum() < len(members)))
    # Integers stay integers, in whatever type they are stored.
    expected = expected.round()
    pd.testing.assert_series_equal(
        result.astype("float64"), expected.astype("float64"), check_names=False, check_index=False, rtol=1e-9
    )


@pytest.mark.parametrize(
    "values", [pd.array([1.5, None, None, None] * 30), ["word", None, None, None] * 30], ids=["number", "text"]
)
def test_what_most_members_lack_is_missing(values: Any) -> None:
    column, _ = condensed_column(values, rows=2)
    assert column.isna().all()


@pytest.mark.parametrize("role", ["numeric", "string", "code"])
def test_a_column_without_values_that_the_user_keeps(role: str) -> None:
    column, small = condensed_column(np.full(ROWS, np.nan), roles={"column": role})
    assert len(column) == 12
    assert column.isna().all()
    assert "column" not in {notice.column for notice in small.notices}


def test_which_columns_are_there() -> None:
    frame = mixed_table().assign(
        country="GB", source="web", batch=4, customer_id=range(300), nothing=np.nan, spare=np.arange(300) % 7
    )
    frame = frame[["outcome", *frame.columns.drop("outcome")]]
    small = condense(frame, "outcome", 0.05, roles={"spare": "drop", "batch": "drop"})
    assert small.original.columns.tolist() == [
        *("amount", "age", "job", "day", "insured", "since", "country", "source"),
        "outcome",
    ]
    assert set(small.original["country"]) == {"GB"}
    assert small.original["country"].dtype == "str"


def test_a_column_called_weight(tmp_path: Path) -> None:
    frame = mixed_table().rename(columns={"age": "weight"})
    small = condense(frame, "outcome", 0.05)
    assert small.weight.name == "weight"
    loaded = CondensedTable.load(small.save(tmp_path / "small"))
    assert pd.read_parquet(tmp_path / "small" / "condensed_original.parquet").columns[-2] == "c2tc_weight"
    pd.testing.assert_series_equal(loaded.weight, small.weight)
    pd.testing.assert_frame_equal(loaded.original, small.original)


def test_medoids_are_real_rows() -> None:
    frame = mixed_table().assign(parts=pd.Series([[1], [2, 3], [4]] * 100), note=[1, "a", 2.5] * 100, country="GB")
    small = condense(frame, "outcome", 0.05, representative="medoid", random_state=2)
    source = frame.assign(parts=frame["parts"].astype(str), note=frame["note"].astype(str))
    assert small.original.columns.tolist() == [*frame.columns.drop("outcome"), "outcome"]
    found = []
    for number, row in enumerate(small.original.to_dict(orient="records")):
        same = np.logical_and.reduce([source[name].to_numpy() == value for name, value in row.items()])
        members = small.membership.loc[small.membership["condensed_row"] == number, "source_row"]
        own = np.intersect1d(np.flatnonzero(same), members)
        assert len(own)
        found.append(own[0])
    np.testing.assert_array_equal(small.X.to_numpy(), small.encoder.encode_training(frame, frame["outcome"])[found])
    for name in ("amount", "age", "insured", "since"):
        assert small.original[name].dtype == frame[name].dtype
