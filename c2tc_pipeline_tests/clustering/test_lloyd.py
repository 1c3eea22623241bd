"""Lloyd over blocks: the same partition as in one piece, and the same bytes wherever the rows are."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.clustering import blocks
from c2tc_pipeline.clustering.rows import Block
from c2tc_pipeline.clustering.class_kmeans import ClassKMeans
from c2tc_pipeline.clustering.kernels import CpuKernel
from c2tc_pipeline.clustering.kernels import Engine, make_kernel
from c2tc_pipeline.clustering.lloyd import Clusters, lloyd, rows_for_empty_clusters
from c2tc_pipeline.clustering.rows import HeldRows
from c2tc_pipeline_tests.clustering.mixtures import (
    ENGINES,
    assert_true_partition,
    exact_loss,
    exact_means,
    few_values,
    mixture,
    name_of,
)

each_engine = pytest.mark.parametrize("engine", ENGINES, ids=name_of)


def in_pieces(X: np.ndarray, cuts: list[int], weight: np.ndarray | None = None) -> list[Block]:
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(X)}), len(X)]
    return [Block(HeldRows(X[a:b]), a, None if weight is None else weight[a:b]) for a, b in pairwise(edges)]


def as_bytes(result: Clusters) -> tuple[bytes, ...]:
    return tuple(part.tobytes() for part in (result.centers, result.labels, result.counts, result.nearest))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut classes into blocks of some hundred rows."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1)
    monkeypatch.setattr(blocks, "_ROWS_LEAST", 700)


def stored(X: np.ndarray, folder: Path) -> np.ndarray:
    """Return rows as a memory-mapped part of a larger file."""
    np.save(folder / "rows.npy", np.vstack([np.full((3, X.shape[1]), np.nan, X.dtype), X]))
    return np.load(folder / "rows.npy", mmap_mode="r")[3:]


@each_engine
@pytest.mark.parametrize("weighted", [False, True])
@settings(deadline=None, max_examples=20)
@given(cuts=st.lists(st.integers(1, 299), max_size=5), steps=st.integers(0, 12))
def test_blocks_end_where_one_block_ends(engine: Engine, weighted: bool, cuts: list[int], steps: int) -> None:
    X = mixture(300, dtype=np.float64)
    weight = np.arange(1.0, 301.0) if weighted else None
    whole, cut = (
        lloyd(engine, pieces, X[:9], max_iter=steps, tol=0)
        for pieces in (in_pieces(X, [], weight), in_pieces(X, cuts, weight))
    )
    np.testing.assert_array_equal(cut.labels, whole.labels)
    np.testing.assert_array_equal(cut.nearest, whole.nearest)
    np.testing.assert_allclose(cut.centers, whole.centers, atol=1e-12)
    assert cut.inertia == pytest.approx(whole.inertia, rel=1e-12)
    assert_true_partition(cut, X, 9, weight)


@each_engine
@settings(deadline=None, max_examples=60)
@given(X=few_values, data=st.data())
def test_no_cluster_is_ever_empty(engine: Engine, X: np.ndarray, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(X)))
    cuts = data.draw(st.lists(st.integers(1, len(X)), max_size=4))
    start = np.repeat(X[:1], k, axis=0)
    assert_true_partition(lloyd(engine, in_pieces(X, cuts), start, max_iter=data.draw(st.integers(0, 9))), X, k)


@settings(deadline=None)
@given(X=few_values, data=st.data())
def test_a_row_for_an_empty_cluster_never_raises_the_loss(X: np.ndarray, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(X)))
    labels = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=len(X), max_size=len(X))))
    sizes = np.bincount(labels, minlength=k)
    chosen = rows_for_empty_clusters(sizes, labels)
    filled = labels.copy()
    filled[chosen] = np.flatnonzero(sizes == 0)
    assert set(filled.tolist()) == set(range(k))
    assert exact_loss(X, filled) <= exact_loss(X, np.unique(labels, return_inverse=True)[1]) + 1e-12


@each_engine
def test_the_nearest_member_is_the_first_of_the_nearest(engine: Engine) -> None:
    X = np.round(mixture(400, columns=2, dtype=np.float64) * 5) / 5
    result = lloyd(engine, in_pieces(X, [100, 250]), X[[0, 50, 200, 300]])
    gaps = ((X - exact_means(X, result.labels)[result.labels]) ** 2).sum(axis=1)
    for cluster, nearest in enumerate(result.nearest):
        members = np.flatnonzero(result.labels == cluster)
        assert nearest in members
        assert gaps[nearest] == pytest.approx(gaps[members].min(), abs=1e-12)


@pytest.mark.usefixtures("small_blocks")
@each_engine
@pytest.mark.parametrize("copies", [1, 4], ids=["distinct", "merged"])
def test_a_class_of_many_blocks_is_as_good_as_one_of_one(
    engine: Engine, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.repeat(mixture(6_000), copies, axis=0)
    cut = ClassKMeans(X, engine).cluster(30)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 2**30)
    whole = ClassKMeans(X, engine).cluster(30)
    assert_true_partition(cut, X, 30)
    # One block is added up in float32 and several in float64, so that a row on a border may end on either side.
    assert cut.inertia == pytest.approx(whole.inertia, rel=1e-5)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("k", [5, 600], ids=["few", "many"])
def test_rows_in_a_file_give_the_same_bytes_as_rows_in_memory(
    k: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("c2tc_pipeline.clustering.kernels._MANY_ROWS", 1_000)
    X = mixture(12_000, groups=300)
    mapped = stored(X, tmp_path)
    held, read = (ClassKMeans(rows, make_kernel("cpu")).cluster(k) for rows in (X, mapped))
    assert as_bytes(held) == as_bytes(read)
    assert held.inertia == read.inertia


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("k", [1, 4, 5, 6, 900])
def test_few_distinct_rows_in_many_blocks(k: int, tmp_path: Path) -> None:
    X = np.tile(np.eye(5, dtype=np.float32), (400, 1))
    rows = ClassKMeans(stored(X, tmp_path), make_kernel("cpu"))
    result = rows.cluster(k)
    assert rows.distinct == 5
    assert_true_partition(result, X, k)
    assert (result.inertia == 0) == (k >= 5)


@pytest.mark.usefixtures("small_blocks")
def test_looking_around_over_blocks_loses_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X = mixture(20_000, columns=6, groups=700)
    monkeypatch.setattr("c2tc_pipeline.clustering.kernels._MANY_ROWS", 10**9)
    full = ClassKMeans(X, CpuKernel()).cluster(600)
    monkeypatch.setattr("c2tc_pipeline.clustering.kernels._MANY_ROWS", 1_000)
    near = ClassKMeans(X, CpuKernel()).cluster(600)
    assert_true_partition(near, X, 600)
    assert near.inertia == pytest.approx(full.inertia, rel=1e-3)
