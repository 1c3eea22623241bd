"""A class in k clusters: the smallest classes, equal rows, merged rows, starts on a sample, minimum sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from c2tc_pipeline.clustering import class_kmeans
from c2tc_pipeline.clustering.class_kmeans import ClassKMeans, enlarge_small_clusters, fill_small_clusters
from c2tc_pipeline.clustering.kernels import Kernel
from c2tc_pipeline_tests.clustering.mixtures import (
    CPU,
    as_bytes,
    assert_true_clusters,
    each_kernel,
    few_values,
    mixture,
    squared_distances,
)

TWO = np.array([[0.3, 0.4], [0.1, 0.2]], dtype=np.float32)


@each_kernel
@settings(max_examples=50)
@given(
    X=few_values,
    share=st.floats(0, 1),
    relocate=st.sampled_from([0, 2]),
    seed=st.integers(0, 2**40),
    # Never, by default and always.
    merge_below=st.sampled_from([0.0, 0.7, 2.0]),
)
@example(X=TWO[:1], share=1.0, relocate=2, seed=0, merge_below=0.7)
@example(X=TWO, share=0.0, relocate=2, seed=0, merge_below=2.0)
@example(X=TWO, share=1.0, relocate=2, seed=0, merge_below=0.7)
@example(X=np.repeat(TWO[:1], 7, axis=0), share=0.4, relocate=2, seed=0, merge_below=2.0)
@example(X=np.repeat(TWO[:1], 7, axis=0), share=1.0, relocate=2, seed=0, merge_below=0.0)
def test_every_number_of_clusters_gives_true_clusters(
    kernel: Kernel, X: np.ndarray, share: float, relocate: int, seed: int, merge_below: float
) -> None:
    k = max(1, round(share * len(X)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_kmeans, "_MERGE_BELOW", merge_below)
        rows = ClassKMeans(X, kernel)
        result = rows.cluster(k, seed=seed, relocate=relocate)
    assert rows.distinct == len({tuple(row) for row in X.tolist()})
    assert_true_clusters(result, X, k)
    assert (result.inertia == 0) == (k >= rows.distinct)
    assert result.labels.dtype == np.int32


@pytest.mark.parametrize("k", [-1, 0, 6])
def test_an_impossible_number_of_clusters_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match=f"{k} clusters"):
        ClassKMeans(mixture(5), CPU).cluster(k)


@given(copies=st.lists(st.integers(1, 12), min_size=1, max_size=6), data=st.data())
def test_surplus_clusters_cut_the_largest_groups_evenly(copies: list[int], data: st.DataObject) -> None:
    X = np.repeat(np.arange(len(copies), dtype=np.float32)[:, None], copies, axis=0)
    k = data.draw(st.integers(len(copies), len(X)))
    result = ClassKMeans(X, CPU).cluster(k)
    pieces = [result.counts[result.centers[:, 0] == value] for value in range(len(copies))]
    for parts in pieces:
        assert max(parts) - min(parts) <= 1
    # No group could give a piece to another one and leave the larger of the two cut finer.
    for rich in pieces:
        for poor in pieces:
            if len(rich) > 1:
                assert poor.sum() / len(poor) <= rich.sum() / (len(rich) - 1)


@each_kernel
@pytest.mark.parametrize("seed", range(2))
def test_merging_does_not_change_the_clusters(kernel: Kernel, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    distinct = mixture(80, seed=seed, dtype=np.float64)
    X = np.concatenate([distinct, distinct[rng.integers(80, size=300)]])
    before = X.copy()
    X.flags.writeable = False
    results = []
    for merge_below in (0.0, 0.7):
        monkeypatch.setattr(class_kmeans, "_MERGE_BELOW", merge_below)
        results.append(ClassKMeans(X, kernel).cluster(9, init=distinct[:9], relocate=0, tol=0))
    plain, merged = results
    np.testing.assert_array_equal(plain.labels, merged.labels)
    np.testing.assert_array_equal(plain.nearest, merged.nearest)
    np.testing.assert_allclose(plain.centers, merged.centers, atol=1e-12)
    assert merged.inertia == pytest.approx(plain.inertia, rel=1e-9)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("copies", [1, 3], ids=["distinct", "merged"])
def test_a_start_on_a_sample_is_nearly_as_good(copies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.repeat(mixture(3_000), copies, axis=0)
    rows = ClassKMeans(X, CPU)
    whole, start = rows.cluster(15), rows.start(15)
    monkeypatch.setattr(class_kmeans, "_MIN_START_ROWS", 100)
    sampled, sampled_start = rows.cluster(15), rows.start(15)
    assert start is not None
    assert sampled_start is not None
    assert_true_clusters(sampled, X, 15)
    # Both may end in the same clusters; they do not begin with the same centres.
    assert sampled_start.tobytes() != start.tobytes()
    assert sampled.inertia < 1.1 * whole.inertia


@each_kernel
def test_the_same_seed_gives_the_same_bytes(kernel: Kernel) -> None:
    rows = ClassKMeans(mixture(500), kernel)
    one, again, other = (rows.cluster(20, seed=seed) for seed in (3, 3, 4))
    assert one.centers.tobytes() == again.centers.tobytes()
    assert one.centers.tobytes() != other.centers.tobytes()
    spawned = [rows.cluster(20, seed=np.random.SeedSequence([3, 1])).centers.tobytes() for _ in range(2)]
    assert spawned[0] == spawned[1]


def test_the_tolerance_grows_with_the_cost_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ClassKMeans(np.random.default_rng(0).random((2_000, 6), dtype=np.float32), CPU)
    cheap = rows.cluster(40, relocate=0)
    monkeypatch.setattr(class_kmeans, "_COSTLY_STEP", 1)
    costly = rows.cluster(40, relocate=0)
    assert cheap.iterations > costly.iterations
    assert rows.cluster(40, relocate=0, tol=1e-3).inertia == costly.inertia > cheap.inertia


@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(1, 12),
    min_rows=st.integers(1, 6),
    spare=st.integers(0, 60),
    columns=st.integers(1, 4),
    digits=st.integers(0, 3),
)
def test_every_cluster_has_the_minimum_size(
    seed: int, k: int, min_rows: int, spare: int, columns: int, digits: int
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, size=(k * min_rows + spare, columns)).round(digits).clip(-20, 20).astype(np.float32)
    rows = ClassKMeans(X, CPU)
    start = rows.start(k, seed=seed % 7)
    found, again = (rows.cluster_from(k, start, seed=seed % 7, min_rows=min_rows) for _ in range(2))
    assert np.bincount(found.labels, minlength=k).min() >= min_rows
    assert as_bytes(found) == as_bytes(again)
    assert_true_clusters(found, X, k)


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 8), min_rows=st.integers(1, 4), spare=st.integers(0, 9))
def test_only_rows_of_clusters_that_can_spare_them_move(seed: int, k: int, min_rows: int, spare: int) -> None:
    rng = np.random.default_rng(seed)
    X, centers = rng.random((k * min_rows + spare, 2)), rng.random((k, 2))
    nearest = squared_distances(X, centers).argmin(axis=1)
    before = np.bincount(nearest, minlength=k)
    labels = fill_small_clusters(X, centers, nearest, min_rows)
    after = np.bincount(labels, minlength=k)
    assert after.min() >= min_rows
    assert (after[before < min_rows] == min_rows).all()
    assert set(labels[labels != nearest].tolist()) <= set(np.flatnonzero(before < min_rows).tolist())


def test_the_loss_stays_close_where_clusters_are_large() -> None:
    rng = np.random.default_rng(3)
    X = (rng.random((12, 6))[rng.integers(0, 12, 2_000)] + rng.standard_t(2, (2_000, 6)) / 20).clip(0, 1)
    X = X.astype(np.float32)
    start = ClassKMeans(X, CPU).cluster(50)
    assert (start.counts < 10).sum() >= 5
    assert enlarge_small_clusters(X, start, 10, CPU).inertia < 1.05 * start.inertia
    assert enlarge_small_clusters(X, start, 1, CPU) is start
    with pytest.raises(ValueError, match="2000"):
        enlarge_small_clusters(X, start, 41, CPU)
