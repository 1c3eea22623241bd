"""Look-ups of joined columns: the same sums as cell by cell, there and back."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.encoding.look_ups import JoinedColumns, distinct_rows

SEEDS = st.integers(0, 2**32)


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, list[int]]:
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=6))
    rows = draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(SEEDS))
    return np.stack([rng.integers(0, size, rows) for size in sizes], axis=1), sizes


@settings(deadline=None)
@given(case=cases(), most=st.integers(0, 40), seed=SEEDS)
def test_sums_are_those_of_the_cells(case: tuple[np.ndarray, list[int]], most: int, seed: int) -> None:
    places, sizes = case
    rng = np.random.default_rng(seed)
    picked = rng.integers(0, len(places), rng.integers(1, 2 * len(places) + 1))
    table, values = rng.random((sum(sizes), 3)), rng.random((len(picked), 3))
    cells = places[picked] + np.cumsum([0, *sizes[:-1]])
    batch = JoinedColumns.of(places, sizes, most=most).batch(torch.from_numpy(picked))
    np.testing.assert_array_equal(batch.used, np.unique(cells))
    np.testing.assert_allclose(batch.sums(torch.from_numpy(table)[batch.used]), table[cells].sum(axis=1))
    back = np.zeros_like(table)
    np.add.at(back, cells, values[:, None, :])
    np.testing.assert_allclose(batch.sums_back(torch.from_numpy(values)), back[batch.used.numpy()], atol=1e-12)


@settings(deadline=None)
@given(case=cases(), most=st.integers(0, 40))
def test_groups_hold_every_column_once_and_few_combinations(case: tuple[np.ndarray, list[int]], most: int) -> None:
    places, sizes = case
    joined = JoinedColumns.of(places, sizes, most=most)
    assert sorted(column for group in joined.groups for column in group) == list(range(len(sizes)))
    for group in joined.groups:
        assert len(group) == 1 or len(np.unique(places[:, group], axis=0)) <= most


@settings(deadline=None)
@given(case=cases() | cases().map(lambda case: (case[0] * 2**30, case[1])))
def test_distinct_rows_are_those_of_numpy(case: tuple[np.ndarray, list[int]]) -> None:
    places, _ = case
    first, counts = distinct_rows(places)
    expected, occurrences = np.unique(places, axis=0, return_counts=True)
    np.testing.assert_array_equal(places[first], expected)
    np.testing.assert_array_equal(counts, occurrences)
    for row in first:
        assert not (places[:row] == places[row]).all(axis=1).any()
