"""Equal rows against numpy's sort of whole rows, with and without colliding hashes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from c2tc_pipeline.clustering import equal_rows
from c2tc_pipeline.clustering.equal_rows import find_equal_rows, find_few_distinct
from c2tc_pipeline.clustering.rows import HeldRows

small_tables = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 40), st.integers(1, 4)), elements=st.sampled_from([0.0, -0.0, 0.5, 1.0])
)


def no_collisions(hashes: np.ndarray) -> np.ndarray:
    return hashes


def some_collisions(hashes: np.ndarray) -> np.ndarray:
    return hashes % np.uint64(3)


def all_collide(hashes: np.ndarray) -> np.ndarray:
    return hashes * np.uint64(0)


@pytest.mark.parametrize("collide", [no_collisions, some_collisions, all_collide])
@pytest.mark.parametrize("chunk", [4, 32_768])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(deadline=None, max_examples=40)
@given(table=small_tables)
def test_groups_are_those_of_numpy(
    collide: Callable[[np.ndarray], np.ndarray], chunk: int, dtype: type, table: np.ndarray
) -> None:
    X: np.ndarray = table.astype(dtype)
    real_hashes = equal_rows._row_hashes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equal_rows, "_CHUNK_ROWS", chunk)
        patch.setattr(equal_rows, "_row_hashes", lambda rows: collide(real_hashes(rows)))
        found = find_equal_rows(X)
    _, first, group = np.unique(X + X.dtype.type(0), axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(found.first[found.group], first[group.ravel()])
    assert sorted(found.first.tolist()) == sorted(first.tolist())
    np.testing.assert_array_equal(found.sizes[found.group], np.bincount(group.ravel())[group.ravel()])
    assert found.group.shape == (len(X),)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_smallest_difference_keeps_rows_apart(dtype: type) -> None:
    X: np.ndarray = np.full((50, 6), 0.7, dtype=dtype)
    X[np.arange(50), np.arange(50) % 6] = np.nextafter(dtype(0.7), dtype(1))
    assert len(find_equal_rows(X).first) == 6


def test_many_random_rows_do_not_collide() -> None:
    X = np.random.default_rng(0).random((20_000, 3), dtype=np.float32)
    hashes = equal_rows._row_hashes(np.unique(X, axis=0))
    assert len(np.unique(hashes)) == len(hashes)


def test_a_strided_table_is_read_right() -> None:
    X = np.asfortranarray(np.tile(np.eye(4, dtype=np.float32), (3, 1)))
    assert find_equal_rows(X).sizes.tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize("collide", [no_collisions, some_collisions])
@settings(deadline=None, max_examples=40)
@given(table=small_tables, most=st.integers(1, 40))
def test_few_distinct_rows_are_found_part_by_part(
    collide: Callable[[np.ndarray], np.ndarray], table: np.ndarray, most: int
) -> None:
    real_hashes = equal_rows._row_hashes
    whole = find_equal_rows(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equal_rows, "_READ_ROWS", 7)
        patch.setattr(equal_rows, "_row_hashes", lambda rows: collide(real_hashes(rows)))
        found = find_few_distinct(HeldRows(table), most)
    if found is None:
        assert len(whole.first) > most or collide is some_collisions
        return
    assert len(whole.first) <= most
    np.testing.assert_array_equal(found.first[found.group], whole.first[whole.group])
    np.testing.assert_array_equal(np.sort(found.sizes), np.sort(whole.sizes))
