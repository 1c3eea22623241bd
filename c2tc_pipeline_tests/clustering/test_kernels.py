"""Kernels against written-out distances and scikit-learn's KMeans, on any number of threads."""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.queues import SimpleQueue
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from c2tc_pipeline.clustering import kernels, lloyd, torch_kernel
from c2tc_pipeline.clustering.kernels import (
    CpuKernel,
    Kernel,
    make_kernel,
    nearest_among,
    nearest_centers,
    nearest_neighbours,
    share_work,
)
from c2tc_pipeline.clustering.sums import cluster_sums
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.clustering.mixtures import (
    CPU,
    KERNELS,
    assert_true_clusters,
    each_kernel,
    fit,
    mixture,
    squared_distances,
)


def some_rows(X: np.ndarray, k: int, seed: int = 0) -> np.ndarray:
    return X[np.random.default_rng(seed).choice(len(X), size=k, replace=False)]


@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(0, 150),
    columns=st.integers(1, 20),
    k=st.integers(1, 40),
    threads=st.integers(1, 4),
    score_bytes=st.sampled_from([2**8, 2**12, 2**21]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_no_centre_is_nearer(
    seed: int, rows: int, columns: int, k: int, threads: int, score_bytes: int, dtype: type
) -> None:
    rng = np.random.default_rng(seed)
    X: np.ndarray = rng.random((rows, columns)).astype(dtype)
    centers: np.ndarray = rng.random((k, columns)).astype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_SCORE_BYTES", score_bytes)
        labels = nearest_centers(X, centers, threads)
    assert labels.dtype == np.int32
    distances = squared_distances(X, centers)
    # Up to rounding: of two centres at nearly the same distance either may be taken.
    eps = 100 * columns * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(distances[np.arange(rows), labels], distances.min(axis=1), atol=eps, rtol=0)


@given(data=st.data(), k=st.integers(1, 50))
def test_of_centres_at_the_same_distance_the_first(data: st.DataObject, k: int) -> None:
    # Integers this small have exact distances, and many of them the same one.
    centers = np.array(data.draw(st.lists(st.integers(0, 3), min_size=2 * k, max_size=2 * k)), dtype=np.float32)
    X = np.array([[a, b] for a in range(4) for b in range(4)], dtype=np.float32)
    first = squared_distances(X, centers.reshape(k, 2)).argmin(axis=1)
    np.testing.assert_array_equal(CPU.assign(CPU.load(X, None), centers.reshape(k, 2)), first)


@pytest.mark.parametrize(("rows", "k"), [(30_000, 12), (30_000, 150), (12_000, 400)])
def test_the_same_bytes_on_any_number_of_threads(rows: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_THREADED_WORK", 1_000_000)
    monkeypatch.setattr(kernels, "_NEIGHBOUR_ROWS", 10_000)
    monkeypatch.setattr(kernels, "_NEIGHBOUR_RANGE_WORK", 0)
    X = mixture(rows, columns=9)
    found = set()
    for threads in (1, 3, 8):
        kernel = CpuKernel(threads)
        loaded, centers = kernel.load(X, None), some_rows(X, k)
        for _ in range(3):
            centers, counts = kernel.update(loaded, centers)
        found.add((centers.tobytes(), counts.tobytes(), kernel.assign(loaded, centers).tobytes()))
    assert len(found) == 1


def test_means_of_many_equal_rows_are_exact() -> None:
    # Summed in float32, hundreds of thousands of nearly the same value drift away.
    X = np.full((300_000, 4), 0.9, dtype=np.float32)
    far = np.linspace(2, 3, 4 * 200, dtype=np.float32).reshape(200, 4)
    centers, counts = CPU.update(CPU.load(X, None), np.vstack([X[:1], far]))
    np.testing.assert_array_equal(centers[0], X[0])
    assert counts[0] == len(X)


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 25),
    threads=st.integers(1, 4),
    range_rows=st.sampled_from([1, 7, 2_048]),
)
def test_rows_get_the_nearest_of_their_centres_neighbours(seed: int, count: int, threads: int, range_rows: int) -> None:
    rng = np.random.default_rng(seed)
    X, labels = rng.random((300, 3), dtype=np.float32), rng.integers(0, 20, 300).astype(np.int32)
    centers = cluster_sums(X, labels, 20).means().astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "NEIGHBOURS", count)
        near = nearest_neighbours(centers)
    assert near.shape == (20, min(count, 20))
    between = squared_distances(centers, centers)
    for own, neighbours in enumerate(near):
        assert own in neighbours
        np.testing.assert_allclose(
            np.sort(between[own, neighbours]), np.sort(between[own])[: len(neighbours)], atol=1e-6
        )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_NEIGHBOUR_RANGE_ROWS", range_rows)
        patch.setattr(kernels, "_NEIGHBOUR_RANGE_WORK", 0)
        found = nearest_among(X, labels, centers, near, threads)
    distances = squared_distances(X, centers)
    assert (found[:, None] == near[labels]).any(axis=1).all()
    least = np.take_along_axis(distances, near[labels], axis=1).min(axis=1)
    np.testing.assert_allclose(distances[np.arange(len(X)), found], least, atol=1e-6)


def test_steps_among_neighbours_end_as_full_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((40, 4))[rng.integers(0, 40, 6_000)] + 0.05 * rng.standard_normal((6_000, 4))).astype(np.float32)
    init = some_rows(X, 200)
    full = fit(CPU, X, 200, init=init)
    monkeypatch.setattr(kernels, "_NEIGHBOUR_ROWS", 10)
    monkeypatch.setattr(kernels, "_NEIGHBOUR_CENTERS", 4)
    monkeypatch.setattr(kernels, "NEIGHBOURS", 40)
    steps = MagicMock(wraps=nearest_among)
    monkeypatch.setattr(kernels, "nearest_among", steps)
    near = fit(CPU, X, 200, init=init)
    assert steps.called
    assert near.inertia == pytest.approx(full.inertia, rel=2e-3)
    assert_true_clusters(near, X, 200)
    # Centres far away begin without rows.
    start = np.vstack([X[:9], np.full((3, 4), 9, X.dtype)])
    assert_true_clusters(fit(CPU, X[:200], 12, init=start), X[:200], 12)


@each_kernel
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-9), (np.float32, 1e-3)])
@pytest.mark.parametrize("k", [1, 7, 40])
def test_same_loss_as_scikit_learn_without_momentum(
    kernel: Kernel, dtype: type, rtol: float, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lloyd, "_MOMENTUM", 0.0)
    X = mixture(600, dtype=dtype)
    start = some_rows(X, k)
    theirs = KMeans(k, init=start.astype(np.float64), n_init=1, tol=0, max_iter=300).fit(X.astype(np.float64))
    ours = fit(kernel, X, k, init=start, tol=0, max_iter=300)
    assert_true_clusters(ours, X, k)
    assert ours.inertia == pytest.approx(theirs.inertia_, rel=rtol)


@each_kernel
@pytest.mark.parametrize("k", [7, 40])
def test_momentum_ends_lower_than_scikit_learn(kernel: Kernel, k: int) -> None:
    ratios = []
    for seed in range(6):
        X = mixture(600, seed=seed, dtype=np.float64)
        start = some_rows(X, k, seed)
        theirs = KMeans(k, init=start, n_init=1, tol=0, max_iter=300).fit(X).inertia_
        ours = fit(kernel, X, k, init=start, tol=0, max_iter=300)
        ratios.append(ours.inertia / theirs)
        # A plain step gains nothing from there.
        further = KMeans(k, init=ours.centers, n_init=1, tol=0, max_iter=300).fit(X).inertia_
        assert further == pytest.approx(ours.inertia, rel=1e-9)
    assert np.exp(np.mean(np.log(ratios))) < 1


@each_kernel
@pytest.mark.parametrize("seed", range(2))
def test_weights_count_like_repeated_rows(kernel: Kernel, seed: int) -> None:
    X = mixture(200, seed=seed, dtype=np.float64)
    weight = np.random.default_rng(seed).integers(1, 6, size=len(X))
    start = some_rows(X, 8, seed)
    weighted = fit(kernel, X, 8, init=start, weight=weight.astype(np.float64), tol=0)
    repeated = fit(kernel, np.repeat(X, weight, axis=0), 8, init=start, tol=0)
    assert_true_clusters(weighted, X, 8, weight.astype(np.float64))
    np.testing.assert_array_equal(np.repeat(weighted.labels, weight), repeated.labels)
    np.testing.assert_allclose(weighted.centers, repeated.centers, atol=1e-12)
    assert weighted.inertia == pytest.approx(repeated.inertia, rel=1e-9)


@each_kernel
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), k=st.integers(1, 30), steps=st.integers(0, 5))
def test_more_steps_never_raise_the_loss(kernel: Kernel, seed: int, k: int, steps: int) -> None:
    X = mixture(90, seed=seed % 7, dtype=np.float64)
    fewer, more = (fit(kernel, X, k, seed=seed, max_iter=most, tol=0) for most in (steps, steps + 1))
    assert more.inertia <= fewer.inertia * (1 + 1e-9)


@each_kernel
def test_starts(kernel: Kernel) -> None:
    X = mixture(400, dtype=np.float64)
    settled = fit(kernel, X, 12, tol=0, max_iter=500)
    again = fit(kernel, X, 12, init=settled.centers, tol=0, max_iter=500)
    assert again.iterations <= 2
    assert again.inertia == pytest.approx(settled.inertia, rel=1e-12)
    assert fit(kernel, X, 20, init=settled.centers).inertia < settled.inertia
    with pytest.raises(ValueError, match="4 centres"):
        fit(kernel, X, 3, init=X[:4])


@each_kernel
@pytest.mark.filterwarnings("error")
def test_the_layout_of_the_rows_does_not_matter(kernel: Kernel) -> None:
    X = mixture(100)
    expected = fit(kernel, X, 6).labels
    for odd in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X.copy()):
        odd.flags.writeable = False
        np.testing.assert_array_equal(fit(kernel, odd, 6).labels, expected)
        np.testing.assert_array_equal(odd, X)
    # A tiny loss beside large values is exact.
    X = (0.9 + 1e-6 * np.random.default_rng(0).random((2_000, 30))).astype(np.float32)
    assert_true_clusters(fit(kernel, X, 3), X, 3)


@pytest.mark.parametrize("cells", [7 * 13, 2**26])
def test_the_kernels_agree(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_kernel, "_DISTANCE_CELLS", cells)
    X = mixture(500, dtype=np.float64)
    one, other = (fit(kernel, X, 10, init=some_rows(X, 10), tol=0) for kernel in KERNELS)
    np.testing.assert_array_equal(one.labels, other.labels)
    assert one.inertia == pytest.approx(other.inertia, rel=1e-12)
    assert isinstance(make_kernel("cpu"), CpuKernel)
    with pytest.raises(InputError, match="abacus"):
        make_kernel("abacus")


def _label(X: np.ndarray, centers: np.ndarray, answers: SimpleQueue[bytes]) -> None:
    answers.put(nearest_centers(X, centers, 2).tobytes())


@pytest.mark.skipif(sys.platform != "linux", reason="others do not fork safely")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_and_several_callers_get_their_own_threads() -> None:
    X = mixture(60_000)
    centers = some_rows(X, 150)
    here = nearest_centers(X, centers, 2).tobytes()
    context = multiprocessing.get_context("fork")
    answers: SimpleQueue[bytes] = context.SimpleQueue()
    child = context.Process(target=_label, args=(X, centers, answers))
    child.start()
    assert answers.get() == here
    child.join(30)
    assert child.exitcode == 0
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: nearest_centers(X, centers, 3).tobytes(), range(6)))
    assert found == [here] * 6


def test_an_error_in_a_helper_thread_is_raised() -> None:
    def work(items: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        share_work(work, [1, 2], 2)
