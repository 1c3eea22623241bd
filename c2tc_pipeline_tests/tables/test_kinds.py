"""What a column holds, whatever pandas stores it in, and its conversion."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.tables.kinds import Kind, column_kind, to_codes, to_numbers, to_text


@pytest.mark.parametrize(
    ("series", "kind"),
    [
        (pd.Series([1, 2], dtype="int8"), Kind.INTEGER),
        (pd.Series([1, None], dtype="Int64"), Kind.INTEGER),
        (pd.Series([1, None], dtype="int64[pyarrow]"), Kind.INTEGER),
        (pd.Series([1.0, np.nan, 3.0]), Kind.INTEGER),
        (pd.Series([1.0, np.inf]), Kind.REAL),
        (pd.Series([1.0] * 70_000 + [0.5]), Kind.REAL),
        (pd.Series([1, 2.5], dtype=object), Kind.REAL),
        (pd.Series([Decimal("1.5")], dtype=object), Kind.REAL),
        (pd.Series([True, None], dtype=object), Kind.BOOLEAN),
        (pd.Series([True, None], dtype="boolean"), Kind.BOOLEAN),
        (pd.Series(["a", None]), Kind.TEXT),
        (pd.Series(["a", None], dtype="string[pyarrow]"), Kind.TEXT),
        (pd.Series(["a", "b"], dtype="category"), Kind.TEXT),
        (pd.Series([3, 4], dtype="category"), Kind.INTEGER),
        (pd.Series([b"a"], dtype=object), Kind.TEXT),
        (pd.Series([1, "a"], dtype=object), Kind.MIXED),
        (pd.Series([True, "a"], dtype=object), Kind.MIXED),
        (pd.Series([[1], [2]], dtype=object), Kind.MIXED),
        (pd.Series(pd.to_datetime(["2020-01-01", "NaT"])), Kind.MOMENT),
        (pd.Series([datetime.date(2020, 1, 1), None], dtype=object), Kind.MOMENT),
        (pd.Series(pd.to_timedelta([1, 2], unit="s")), Kind.DURATION),
        (pd.Series([None, None], dtype=object), Kind.EMPTY),
        (pd.Series([np.nan, np.nan]), Kind.EMPTY),
    ],
)
def test_kind_of_every_storage(series: pd.Series[Any], kind: Kind) -> None:
    assert column_kind(series) is kind


@pytest.mark.parametrize(
    "moments",
    [
        pd.Series(pd.to_datetime(["1970-01-02", "NaT"])),
        pd.Series(pd.to_datetime(["1970-01-02 01:00+01:00", "NaT"])),
        pd.Series([datetime.date(1970, 1, 2), None], dtype=object),
        pd.Series(pd.to_datetime(["1970-01-02", "NaT"])).astype("timestamp[us][pyarrow]"),
        pd.Series(pd.PeriodIndex(["1970-01-02", None], freq="D")),
    ],
)
def test_moments_become_seconds_since_1970_in_utc(moments: pd.Series[Any]) -> None:
    np.testing.assert_array_equal(to_numbers(moments).values, [86400.0, np.nan])


def test_numbers_keep_their_memory() -> None:
    source = pd.Series(np.arange(5, dtype=np.int16))
    assert np.shares_memory(to_numbers(source).values.to_numpy(), source.to_numpy())


@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]", "Float64", object])
def test_missing_numbers_become_nan(dtype: Any) -> None:
    numbers = to_numbers(pd.Series([1, None, 3], dtype=dtype)).values
    assert numbers.dtype == np.float64
    np.testing.assert_array_equal(numbers, [1, np.nan, 3])


def test_values_that_are_no_number_are_refused_by_position() -> None:
    assert to_numbers(pd.Series(["1", None, "x", "2.5"])).refused.tolist() == [2]
    assert to_codes(pd.Series(["1", None, "x", "2.5"])).refused.tolist() == [2, 3]


def test_large_codes_are_kept_and_those_that_a_float_would_round_refused() -> None:
    large = 2**62 + 1
    assert to_codes(pd.Series([large, 1])).values.tolist() == [large, 1]
    assert to_codes(pd.Series([2.0**53, 2.0**60])).refused.tolist() == [1]


@pytest.mark.parametrize(
    ("series", "written"),
    [
        (pd.Series([7.0, None]), ["7", None]),
        (pd.Series([7.5, None]), ["7.5", None]),
        (pd.Series([1, "a", None, 2.5], dtype=object), ["1", "a", None, "2.5"]),
        (pd.Series([b"caf\xc3\xa9"], dtype=object), ["café"]),
        (pd.Series(["a", None], dtype="category"), ["a", None]),
        (pd.Series([True, False]), ["True", "False"]),
    ],
)
def test_text(series: pd.Series[Any], written: list[str | None]) -> None:
    text = to_text(series)
    assert text.dtype == "str"
    assert [None if pd.isna(value) else value for value in text] == written


def test_moments_long_before_1970_are_counted_too() -> None:
    for moments in (pd.Series(pd.to_datetime(["1500-01-01"]).as_unit("s")), pd.Series([datetime.date(1500, 1, 1)])):
        assert to_numbers(moments).values.tolist() == [-14831769600.0]
