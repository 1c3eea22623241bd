"""Equal rows against numpy's unique rows, with and without colliding hashes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from c2tc_pipeline.clustering import equal_rows
from c2tc_pipeline.clustering.equal_rows import find_equal_rows, find_few_distinct, rarely_equal
from c2tc_pipeline.clustering.rows import RowSource

small_tables = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 40), st.integers(1, 4)), elements=st.sampled_from([0.0, -0.0, 0.5, 1.0])
)
COLLISIONS: list[Callable[[np.ndarray], np.ndarray]] = [
    lambda hashes: hashes,
    lambda hashes: hashes % np.uint64(3),
    lambda hashes: hashes * np.uint64(0),
]
each_collision = pytest.mark.parametrize("collide", COLLISIONS, ids=["none", "some", "all"])


@contextmanager
def patched(collide: Callable[[np.ndarray], np.ndarray], **constants: int) -> Iterator[None]:
    real_hashes = equal_rows._row_hashes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equal_rows, "_row_hashes", lambda rows: collide(real_hashes(rows)))
        for name, value in constants.items():
            patch.setattr(equal_rows, name, value)
        yield


@each_collision
@given(table=small_tables, chunk=st.sampled_from([4, 32_768]), dtype=st.sampled_from([np.float32, np.float64]))
def test_groups_are_those_of_numpy(
    collide: Callable[[np.ndarray], np.ndarray], table: np.ndarray, chunk: int, dtype: type
) -> None:
    X: np.ndarray = np.asfortranarray(table.astype(dtype))
    with patched(collide, _HASHED_ROWS=chunk):
        found = find_equal_rows(X)
    _, first, group = np.unique(X + X.dtype.type(0), axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(found.first[found.group], first[group.ravel()])
    assert sorted(found.first.tolist()) == sorted(first.tolist())
    np.testing.assert_array_equal(found.sizes[found.group], np.bincount(group.ravel())[group.ravel()])


@each_collision
@given(table=small_tables, max_distinct=st.integers(1, 40))
def test_few_distinct_rows_are_found_part_by_part(
    collide: Callable[[np.ndarray], np.ndarray], table: np.ndarray, max_distinct: int
) -> None:
    whole = find_equal_rows(table)
    with patched(collide, _READ_ROWS=7):
        found = find_few_distinct(RowSource(table), max_distinct)
    if found is None:
        assert len(whole.first) > max_distinct or collide is not COLLISIONS[0]
        return
    assert len(whole.first) <= max_distinct
    np.testing.assert_array_equal(found.first[found.group], whole.first[whole.group])
    np.testing.assert_array_equal(np.sort(found.sizes), np.sort(whole.sizes))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_smallest_difference_keeps_rows_apart(dtype: type) -> None:
    X: np.ndarray = np.full((50, 6), 0.7, dtype=dtype)
    X[np.arange(50), np.arange(50) % 6] = np.nextafter(dtype(0.7), dtype(1))
    assert len(find_equal_rows(X).first) == 6


def test_a_sample_tells_whether_rows_are_rarely_equal() -> None:
    column = np.arange(100_000, dtype=np.float32)[:, None]
    assert rarely_equal(RowSource(column))
    assert not rarely_equal(RowSource(column // 2))
    assert not rarely_equal(RowSource(column[:1_000]))
