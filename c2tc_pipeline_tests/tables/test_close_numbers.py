"""Integers that are counted in tables give the bytes that looking them up one by one gives."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline.condensation.members import MemberVotes
from c2tc_pipeline.encoding.numeric import NumericPart
from c2tc_pipeline.tables import statistics
from c2tc_pipeline.tables.close_numbers import CloseNumbers
from c2tc_pipeline.tables.roles import Role

# Both ends of every type, so that differences would overflow if they were taken in it.
ends = st.sampled_from(("int8", "uint8", "int16", "int64", "uint64")).flatmap(
    lambda dtype: st.tuples(
        st.just(dtype),
        st.lists(
            st.integers(np.iinfo(dtype).min, np.iinfo(dtype).min + 9)
            | st.integers(0, 1)
            | st.integers(np.iinfo(dtype).max - 9, np.iinfo(dtype).max),
            min_size=1,
            max_size=60,
        ),
        # Rows of the first number ahead of the others: some columns have numbers that come late.
        st.sampled_from([0, 9_000]),
    )
)


@given(ends, st.integers(0, 2**32 - 1))
def test_places_counts_and_order_are_those_of_the_numbers(drawn: tuple[str, list[int], int], seed: int) -> None:
    dtype, values, ahead = drawn
    numbers = np.array([values[0]] * ahead + values, dtype=dtype)
    close = CloseNumbers.of(numbers, most=300)
    if max(values) - min(values) >= 300:
        assert close is None
        return
    assert close is not None
    assert [close.low + place for place in close.places.tolist()] == numbers.tolist()
    for other in ([1.0, 2.0], [True, False], values[:0]):
        assert CloseNumbers.of(np.array(other, dtype=None if other else dtype), most=10) is None
    groups = np.random.default_rng(seed).integers(0, 3, len(numbers), dtype=np.int32)
    pairs = Counter(zip(numbers.tolist(), groups.tolist(), strict=True))
    expected = [[pairs[close.low + place, group] for group in range(4)] for place in range(close.width)]
    for group_rows in (None, np.bincount(groups, minlength=4)):
        assert close.counted(groups, 4, group_rows).tolist() == expected
    occurs = np.array(expected).sum(axis=1) > 0
    assert close.distinct().tolist() == sorted(set(values))
    assert [close.low + place for place in close.appeared(occurs).tolist()] == list(dict.fromkeys(values))


@given(st.lists(st.integers(-300, 300), min_size=2, max_size=900), st.sampled_from(["quantile", "minmax"]))
def test_small_integers_are_scaled_like_fractions(values: list[int], scaling: str) -> None:
    outcomes = []
    for dtype in ("int16", "float64"):
        frame = pd.DataFrame({"x": np.array(values, dtype=dtype)})
        block = statistics.Block(frame, np.zeros(len(frame), dtype=np.int64), np.arange(len(frame)))
        with pytest.MonkeyPatch.context() as patch:
            # A sample, so that the limits are added to it.
            patch.setattr(statistics, "SAMPLE_ROWS", max(len(values) // 2, 1))
            sampled = statistics.gather_statistics([block], ["x"], {"x": Role.NUMERIC})
        part = NumericPart.fit(sampled, ["x"], scaling)
        arrays = (part.knots[0], part.heights[0], part.encode(frame))
        outcomes.append((part.medians, *(array.tobytes() for array in arrays)))
    assert outcomes[0] == outcomes[1]


@given(st.lists(st.integers(-3, 3), min_size=8, max_size=80), st.data())
def test_majorities_of_numbers_are_those_of_their_names(values: list[int], data: st.DataObject) -> None:
    members = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(values), max_size=len(values))))
    members[:2] = [0, 1]
    cut = data.draw(st.integers(1, len(values)))
    numbers, names = MemberVotes(2), MemberVotes(2)
    for rows in (slice(0, cut), slice(cut, None)):
        if len(members[rows]):
            numbers.add(pd.Series(values[rows], dtype="int16"), members[rows])
            names.add(pd.Series([str(value) for value in values[rows]]), members[rows])
    won = numbers.winners(pd.Series(values, dtype="int16"))
    assert won.dtype == np.int16
    assert won.map(str).tolist() == names.winners(pd.Series(["a"])).tolist()
