"""Means and majorities of members: any division into blocks gives the bytes of one, and one gives what pandas says."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline.condensation import members
from c2tc_pipeline.condensation.encoded import ClassCursor
from c2tc_pipeline.condensation.members import MemberMeans, MemberVotes

SIZE = 4
# Sums of a few of them are not exact, so that their order shows.
numbers = st.integers(-(10**6), 10**6).map(lambda number: number / 7)
rows = st.lists(
    st.tuples(st.integers(0, SIZE - 1), st.none() | numbers, st.none() | st.sampled_from("abcde")),
    min_size=1,
    max_size=80,
)
cuts = st.lists(st.integers(0, 80), max_size=5)


def parts(frame: pd.DataFrame, edges: list[int]) -> list[pd.DataFrame]:
    places = [0, *sorted(edge % (len(frame) + 1) for edge in edges), len(frame)]
    return [frame.iloc[start:end] for start, end in itertools.pairwise(places)]


def as_frame(cells: list[tuple[int, float | None, str | None]]) -> pd.DataFrame:
    frame = pd.DataFrame(cells, columns=["member", "number", "text"])
    return frame.astype({"number": "float64", "text": "str"})


@given(rows, cuts)
def test_means_are_the_same_bytes_in_any_division(
    cells: list[tuple[int, float | None, str | None]], edges: list[int]
) -> None:
    frame = as_frame(cells)
    whole, cut = MemberMeans(SIZE), MemberMeans(SIZE)
    whole.add(frame["number"], frame["member"].to_numpy())
    for part in parts(frame, edges):
        cut.add(part["number"], part["member"].to_numpy(), np.bincount(part["member"], minlength=SIZE))
    assert whole.means().tobytes() == cut.means().tobytes()
    for member in frame["member"].unique():
        own = frame.loc[frame["member"] == member, "number"]
        expected = own.mean() if 2 * own.notna().sum() >= len(own) else np.nan
        np.testing.assert_allclose(whole.means()[member], expected, rtol=1e-9, atol=1e-6)


@given(rows, cuts, st.sampled_from(["text", "code"]))
def test_majorities_are_the_same_in_any_division(
    cells: list[tuple[int, float | None, str | None]], edges: list[int], column: str
) -> None:
    frame = as_frame([*((member, 0.0, "z") for member in range(SIZE)), *cells])
    frame["code"] = frame["number"].fillna(3).astype("int64") % 7
    whole, cut = MemberVotes(SIZE), MemberVotes(SIZE)
    whole.add(frame[column], frame["member"].to_numpy())
    for part in parts(frame, edges):
        cut.add(part[column], part["member"].to_numpy())
    winners = whole.winners(frame[column])
    pd.testing.assert_series_equal(winners, cut.winners(frame[column]))
    for member, own in frame.groupby("member")[column]:
        votes = own.value_counts(dropna=False)
        assert votes.max() == (own.isna() if pd.isna(winners[member]) else own == winners[member]).sum()


@given(st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(0, 1)), min_size=8, max_size=80))
def test_flags_are_voted_on_alike_where_somebody_has_counted_the_members(cells: list[tuple[int, int]]) -> None:
    member, flag = np.array(cells).T
    series = pd.Series(flag, dtype="int8")
    counted, told = MemberVotes(SIZE), MemberVotes(SIZE)
    counted.add(series, member)
    told.add(series, member, np.bincount(member, minlength=SIZE))
    pd.testing.assert_series_equal(counted.winners(series), told.winners(series))


def test_majorities_survive_more_values_than_there_is_room_for() -> None:
    rng = np.random.default_rng(0)
    bounded, exact = MemberVotes(3, most=600), MemberVotes(3)
    for _ in range(40):
        values = pd.Series([*(f"rare {number}" for number in rng.integers(10**9, size=900)), *["common"] * 100])
        members = rng.integers(3, size=len(values))
        for votes in (bounded, exact):
            votes.add(values, members)
    assert bounded.winners(values).tolist() == exact.winners(values).tolist() == ["common"] * 3


def peak_of_votes(blocks: int) -> int:
    """Return the bytes held when blocks of nothing but different strings were counted, and one that is common."""
    votes = MemberVotes(3, most=2_000)
    tracemalloc.start()
    try:
        for block in range(blocks):
            values = pd.Series([*(f"{block} {number}" for number in range(900)), *["common"] * 100])
            votes.add(values, np.arange(len(values)) % 3)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        assert votes.winners(values).tolist() == ["common"] * 3


def test_values_that_no_votes_are_left_of_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "_PENDING_PAIRS", 1_000)
    peak_of_votes(1)
    assert peak_of_votes(60) < 1.5 * peak_of_votes(15)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), cuts)
def test_places_are_those_of_a_stable_sort(codes: list[int], edges: list[int]) -> None:
    frame = pd.DataFrame({"code": codes})
    cursor = ClassCursor(np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=4))]))
    places = np.concatenate([cursor.places(part["code"].to_numpy()) for part in parts(frame, edges)])
    order = np.argsort(codes, kind="stable")
    assert places[order].tolist() == list(range(len(codes)))
