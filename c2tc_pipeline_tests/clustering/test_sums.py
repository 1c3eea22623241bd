"""Sums of clusters: those of the members, in any chunks, over blocks, and after rows moved."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline.clustering import lloyd, sums
from c2tc_pipeline.clustering.kernels import Kernel
from c2tc_pipeline.clustering.sums import ClusterSums, cluster_sums, moved_sums, nearest_members
from c2tc_pipeline_tests.clustering.mixtures import each_kernel, exact_means, few_values, in_pieces, mixture


def assert_same(one: ClusterSums, other: ClusterSums) -> None:
    np.testing.assert_allclose(one.sums, other.sums, rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(one.counts, other.counts)
    assert one.power == pytest.approx(other.power, rel=1e-12, nan_ok=True)


@given(X=few_values, data=st.data())
def test_sums_are_those_of_the_members(X: np.ndarray, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 6))
    labels = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=len(X), max_size=len(X))))
    weight = data.draw(st.none() | st.just(np.arange(1, len(X) + 1)))
    found = cluster_sums(X, labels, k, weight)
    used = np.unique(labels)
    np.testing.assert_array_equal(found.counts, np.bincount(labels, weight, k))
    np.testing.assert_allclose(found.means()[used], exact_means(X, np.searchsorted(used, labels), weight), atol=1e-12)
    assert not found.means()[np.setdiff1d(np.arange(k), used)].any()
    row_weight = np.ones(len(X)) if weight is None else weight
    assert found.power == pytest.approx(float(((X.astype(float) ** 2).T @ row_weight).sum()))


def test_sums_do_not_depend_on_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    X, labels = mixture(100), np.arange(100) % 7
    whole = cluster_sums(X, labels, 7, np.arange(100.0))
    monkeypatch.setattr(sums, "CHUNK_CELLS", 9)
    assert_same(cluster_sums(X, labels, 7, np.arange(100.0)), whole)


@each_kernel
@given(cuts=st.lists(st.integers(0, 120), max_size=6), weighted=st.booleans())
def test_blocks_add_up_to_the_whole(kernel: Kernel, cuts: list[int], weighted: bool) -> None:
    X = mixture(120)
    weight = np.arange(1, 121, dtype=np.float32) if weighted else None
    parts, whole = (
        [lloyd.assign(block, kernel, X[::15])[1] for block in in_pieces(X, some, weight)] for some in (cuts, [])
    )
    assert_same(reduce(add, parts), whole[0])


@given(n=st.integers(1, 60), shares=st.lists(st.floats(0, 1), max_size=6), seed=st.integers(0, 2**32 - 1))
def test_sums_follow_rows_that_move(n: int, shares: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, weight = rng.random((n, 3), dtype=np.float32), rng.integers(1, 5, n).astype(np.float64)
    labels = rng.integers(0, 4, n, dtype=np.int32)
    found = cluster_sums(X, labels, 4, weight, power=False)
    for share in [*shares, 1.0]:
        moved = np.where(rng.random(n) < share, rng.integers(0, 4, n, dtype=np.int32), labels)
        found, labels = moved_sums(X, weight, labels, found, moved), moved
        assert_same(found, cluster_sums(X, labels, 4, weight, power=False))


def test_a_cluster_without_rows_weighs_nothing() -> None:
    X = np.random.default_rng(0).random((100, 2), dtype=np.float32)
    before = np.repeat([0, 1], [90, 10])
    assert moved_sums(X, None, before, cluster_sums(X, before, 2), np.zeros(100, np.int64)).counts.tolist() == [100, 0]


def test_the_nearest_member_is_the_first_of_several() -> None:
    assert nearest_members(np.array([1, 0, 1, 1]), np.array([0.5, 2.0, 0.25, 0.25]), 2).tolist() == [1, 2]
