"""Lloyd over blocks: the same clusters as in one piece, and the same bytes wherever the rows are; sums of clusters."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.clustering import kernels, rows, sums
from c2tc_pipeline.clustering.class_kmeans import ClassKMeans
from c2tc_pipeline.clustering.kernels import Kernel
from c2tc_pipeline.clustering.lloyd import assign, lloyd, rows_for_empty_clusters
from c2tc_pipeline.clustering.sums import ClusterSums, cluster_sums, moved_sums
from c2tc_pipeline_tests.clustering.mixtures import (
    CPU,
    as_bytes,
    assert_true_clusters,
    each_kernel,
    exact_loss,
    exact_means,
    few_values,
    in_pieces,
    mixture,
)


def stored(X: np.ndarray, folder: Path) -> np.ndarray:
    """Return rows as a memory-mapped part of a larger file."""
    np.save(folder / "rows.npy", np.vstack([np.full((3, X.shape[1]), np.nan, X.dtype), X]))
    return np.load(folder / "rows.npy", mmap_mode="r")[3:]


@each_kernel
@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=20)
@given(cuts=st.lists(st.integers(1, 299), max_size=5), steps=st.integers(0, 12))
def test_blocks_end_where_one_block_ends(kernel: Kernel, weighted: bool, cuts: list[int], steps: int) -> None:
    X = mixture(300, dtype=np.float64)
    weight = np.arange(1.0, 301.0) if weighted else None
    whole, cut = (lloyd(kernel, in_pieces(X, some, weight), X[:9], max_iter=steps, tol=0) for some in ([], cuts))
    np.testing.assert_array_equal(cut.labels, whole.labels)
    np.testing.assert_array_equal(cut.nearest, whole.nearest)
    np.testing.assert_allclose(cut.centers, whole.centers, atol=1e-12)
    assert_true_clusters(cut, X, 9, weight)


@each_kernel
@given(X=few_values, data=st.data())
def test_no_cluster_is_ever_empty(kernel: Kernel, X: np.ndarray, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(X)))
    cuts = data.draw(st.lists(st.integers(1, len(X)), max_size=4))
    start = np.repeat(X[:1], k, axis=0)
    assert_true_clusters(lloyd(kernel, in_pieces(X, cuts), start, max_iter=data.draw(st.integers(0, 9))), X, k)


@given(X=few_values, data=st.data())
def test_a_row_for_an_empty_cluster_never_raises_the_loss(X: np.ndarray, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(X)))
    labels = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=len(X), max_size=len(X))))
    sizes = np.bincount(labels, minlength=k)
    filled = labels.copy()
    filled[rows_for_empty_clusters(sizes, labels)] = np.flatnonzero(sizes == 0)
    assert set(filled.tolist()) == set(range(k))
    assert exact_loss(X, filled) <= exact_loss(X, np.unique(labels, return_inverse=True)[1]) + 1e-12


@each_kernel
@pytest.mark.parametrize("copies", [1, 4], ids=["distinct", "merged"])
def test_a_class_of_many_blocks_is_as_good_as_one_of_one(
    kernel: Kernel, copies: int, cut_at: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_at(700)
    X = np.repeat(mixture(6_000), copies, axis=0)
    cut = ClassKMeans(X, kernel).cluster(30)
    monkeypatch.setattr(rows, "BLOCK_BYTES", 2**30)
    whole = ClassKMeans(X, kernel).cluster(30)
    assert_true_clusters(cut, X, 30)
    # Torch sums one block in float32, so that a row on a border may end on either side.
    assert cut.inertia == pytest.approx(whole.inertia, rel=1e-5)


@pytest.mark.parametrize("k", [5, 600], ids=["few", "many"])
def test_rows_in_a_file_give_the_same_bytes_as_rows_in_memory(
    k: int, tmp_path: Path, cut_at: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_at(700)
    monkeypatch.setattr(kernels, "_NEIGHBOUR_ROWS", 1_000)
    X = mixture(6_000, groups=300)
    held, read = (ClassKMeans(some, CPU).cluster(k) for some in (X, stored(X, tmp_path)))
    assert as_bytes(held) == as_bytes(read)
    assert_true_clusters(held, X, k)
    # As good as without steps among neighbours.
    monkeypatch.setattr(kernels, "_NEIGHBOUR_ROWS", 10**9)
    assert held.inertia == pytest.approx(ClassKMeans(X, CPU).cluster(k).inertia, rel=1e-3)


@pytest.mark.parametrize("k", [1, 4, 5, 6, 900])
def test_few_distinct_rows_in_many_blocks(k: int, tmp_path: Path, cut_at: Callable[[int], None]) -> None:
    cut_at(700)
    X = np.tile(np.eye(5, dtype=np.float32), (400, 1))
    found = ClassKMeans(stored(X, tmp_path), CPU)
    result = found.cluster(k)
    assert found.distinct == 5
    assert_true_clusters(result, X, k)
    assert (result.inertia == 0) == (k >= 5)


def assert_same(one: ClusterSums, other: ClusterSums) -> None:
    np.testing.assert_allclose(one.sums, other.sums, rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(one.counts, other.counts)
    assert one.power == pytest.approx(other.power, rel=1e-12, nan_ok=True)


@given(X=few_values, data=st.data())
def test_sums_are_those_of_the_members(X: np.ndarray, data: st.DataObject) -> None:
    k, chunk = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([9, sums.CHUNK_CELLS]))
    labels = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=len(X), max_size=len(X))))
    weight = data.draw(st.none() | st.just(np.arange(1, len(X) + 1)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "CHUNK_CELLS", chunk)
        found = cluster_sums(X, labels, k, weight)
    used = np.unique(labels)
    np.testing.assert_array_equal(found.counts, np.bincount(labels, weight, k))
    np.testing.assert_allclose(found.means()[used], exact_means(X, np.searchsorted(used, labels), weight), atol=1e-12)
    assert not found.means()[np.setdiff1d(np.arange(k), used)].any()
    row_weight = np.ones(len(X)) if weight is None else weight
    assert found.power == pytest.approx(float(((X.astype(float) ** 2).T @ row_weight).sum()))


@each_kernel
@given(cuts=st.lists(st.integers(0, 120), max_size=6), weighted=st.booleans())
def test_blocks_add_up_to_the_whole(kernel: Kernel, cuts: list[int], weighted: bool) -> None:
    X = mixture(120)
    weight = np.arange(1, 121, dtype=np.float32) if weighted else None
    parts, whole = ([assign(block, kernel, X[::15])[1] for block in in_pieces(X, some, weight)] for some in (cuts, []))
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
