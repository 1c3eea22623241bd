"""Whole numbers that are counted in tables give the bytes that looking them up one by one gives."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from c2tc_pipeline.condensation.members import MemberVotes
from c2tc_pipeline.encoding.label import BinaryPart
from c2tc_pipeline.encoding.numeric import NumericPart
from c2tc_pipeline.tables.category_counts import CategoryCounts
from c2tc_pipeline.tables.close_numbers import CloseNumbers
from c2tc_pipeline.tables.column_facts import ColumnGatherer, _without_repeats
from c2tc_pipeline.tables.statistics import TableStatistics

DTYPES = ("int8", "uint8", "int16", "int64", "uint64")
# Both ends of every type, so that differences would overflow if they were taken in it.
ends = st.sampled_from(DTYPES).flatmap(
    lambda dtype: st.tuples(
        st.just(dtype),
        st.lists(
            st.integers(np.iinfo(dtype).min, np.iinfo(dtype).min + 9)
            | st.integers(0, 1)
            | st.integers(np.iinfo(dtype).max - 9, np.iinfo(dtype).max),
            min_size=1,
            max_size=60,
        ),
    )
)
few = st.lists(st.integers(-3, 3), min_size=8, max_size=80)


@given(ends)
def test_distances_and_appearance_are_those_of_the_numbers(drawn: tuple[str, list[int]]) -> None:
    dtype, values = drawn
    numbers = np.array(values, dtype=dtype)
    close = CloseNumbers.of(numbers, most=300)
    if max(values) - min(values) >= 300:
        assert close is None
        return
    assert close is not None
    assert [close.low + place for place in close.places.tolist()] == values
    occurs = np.bincount(close.places, minlength=close.width) > 0
    assert [close.low + place for place in close.appeared(occurs).tolist()] == list(dict.fromkeys(values))


@given(ends, st.data())
def test_counts_are_those_of_every_number_in_every_group(drawn: tuple[str, list[int]], data: st.DataObject) -> None:
    dtype, values = drawn
    close = CloseNumbers.of(np.array(values, dtype=dtype), most=300)
    assume(close is not None)
    assert close is not None
    groups = data.draw(st.lists(st.integers(0, 2), min_size=len(values), max_size=len(values)))
    pairs = Counter(zip(values, groups, strict=True))
    expected = [[pairs[close.low + place, group] for group in range(4)] for place in range(close.width)]
    numbers = np.array(groups, dtype=np.int32)
    assert close.counted(numbers, 4).tolist() == expected
    assert close.counted(numbers, 4, np.bincount(groups, minlength=4)).tolist() == expected


def test_numbers_that_come_late_have_their_order() -> None:
    numbers = np.concatenate([np.full(9_000, 5), [2, 7, 7, 1, 2]]).astype(np.int16)
    close = CloseNumbers.of(numbers, most=10)
    assert close is not None
    occurs = np.bincount(close.places, minlength=close.width) > 0
    assert (close.appeared(occurs) + close.low).tolist() == [5, 2, 7, 1]


@given(st.lists(st.sampled_from([-128, -127]), min_size=1, max_size=20), st.integers(0, 9_000))
def test_flags_appear_in_the_order_of_their_first_rows(values: list[int], ahead: int) -> None:
    numbers = np.array([values[0]] * ahead + values, dtype=np.int8)
    close = CloseNumbers.of(numbers, most=10)
    assert close is not None
    occurs = np.bincount(close.places, minlength=close.width) > 0
    assert [close.low + int(place) for place in close.appeared(occurs)] == list(dict.fromkeys(values))
    assert _without_repeats(numbers).tolist() == sorted(set(values))


@pytest.mark.parametrize("other", [np.array([1.0, 2.0]), np.array([True, False]), np.array([], dtype=np.int8)])
def test_what_is_no_whole_number_is_not_taken(other: np.ndarray) -> None:
    assert CloseNumbers.of(other, most=10) is None


@given(few, st.data())
def test_categories_are_counted_as_those_of_another_type(values: list[int], data: st.DataObject) -> None:
    codes = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(values), max_size=len(values))))
    counted = CategoryCounts.of(pd.Series(values, dtype="int8"), codes, 3)
    looked_up = CategoryCounts.of(pd.Series(values, dtype="Int8"), codes, 3)
    assert counted.keys == looked_up.keys
    np.testing.assert_array_equal(counted.table, looked_up.table)
    np.testing.assert_array_equal(counted.missing, looked_up.missing)


@given(st.lists(st.integers(-2, 12), min_size=1, max_size=30), st.sampled_from([["0", "1"], ["-1", "10"], ["01", "1"]]))
def test_two_values_are_compared_as_keys_are(values: list[int], known: list[str]) -> None:
    part = BinaryPart(["x"], [known], [0.3])
    as_numbers, as_keys = (part.encode(pd.DataFrame({"x": pd.Series(values, dtype=d)})) for d in ("int8", "Int8"))
    assert as_numbers.tobytes() == as_keys.tobytes()


@settings(deadline=None)
@given(st.lists(st.integers(-300, 300), min_size=2, max_size=900), st.sampled_from(["quantile", "minmax"]))
def test_small_whole_numbers_are_scaled_like_fractions(values: list[int], scaling: str) -> None:
    fitted, encoded = [], []
    for dtype in ("int16", "float64"):
        frame = pd.DataFrame({"x": np.array(values, dtype=dtype)})
        # A sample, so that the limits are added to it.
        statistics = TableStatistics.of(frame, most=max(len(values) // 2, 1))
        part = NumericPart.fit(statistics, ["x"], scaling)
        fitted.append([part.knots[0].tobytes(), part.heights[0].tobytes(), part.medians])
        encoded.append(part.encode(frame).tobytes())
    assert fitted[0] == fitted[1]
    assert encoded[0] == encoded[1]


@settings(deadline=None)
@given(few, st.data())
def test_majorities_of_numbers_are_those_of_their_names(values: list[int], data: st.DataObject) -> None:
    members = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(values), max_size=len(values))))
    members[:2] = [0, 1]
    cut = data.draw(st.integers(1, len(values)))
    numbers, names = MemberVotes(2), MemberVotes(2)
    for rows in (slice(0, cut), slice(cut, None)):
        if len(members[rows]):
            numbers.add(pd.Series(values[rows], dtype="int16"), members[rows])
            names.add(pd.Series(values[rows]).map(str), members[rows])
    won = numbers.winners(pd.Series(values, dtype="int16"))
    assert won.dtype == np.int16
    assert won.map(str).tolist() == names.winners(pd.Series(["a"])).tolist()


@pytest.mark.parametrize("role", [None, "string", "code", "numeric"])
@pytest.mark.parametrize(
    "column",
    [
        pd.Series([3, 1, 3], dtype="int8"),
        pd.Series([1.0, None, 2.5]),
        pd.Series([1.0, None, 2.0]),
        pd.Series(["b", None, "a"]),
        pd.Series([1, "a", 1.0], dtype=object),
        pd.Series([True, False, True]),
        pd.Series([5, 7, 5], dtype="category"),
        pd.Series([None, None, None], dtype="float64"),
        pd.Series(pd.to_datetime(["2020-01-01", "", "2021-01-01"])),
    ],
    ids=lambda column: str(column.dtype),
)
def test_facts_need_no_counts_of_what_is_no_text(column: pd.Series[Any], role: str | None) -> None:
    if role == "code" and column.dtype.kind == "M":
        role = None
    facts = []
    for facts_only in (False, True):
        gatherer = ColumnGatherer(role, could_be_code=True, facts_only=facts_only)
        gatherer.add(column, np.zeros(3, dtype=np.int64), np.arange(3))
        # Written out, because a limit that is not there is NaN.
        facts.append(str(gatherer.facts()))
    assert facts[0] == facts[1]
