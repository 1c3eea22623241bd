"""Nearest centres against distances written out, against scikit-learn's public KMeans, and on any number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from c2tc_pipeline.clustering import assignment, cpu, dealt_work
from c2tc_pipeline.clustering.assignment import nearest_centers
from c2tc_pipeline.clustering.kernels import CpuKernel
from c2tc_pipeline_tests.clustering.mixtures import mixture

each_way = pytest.mark.parametrize(("rows", "k"), [(5_000, 7), (300, 130), (5_000, 200)])


def squares(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return all squared distances, written out in float64."""
    return ((X[:, None].astype(np.float64) - centers[None].astype(np.float64)) ** 2).sum(axis=2)


def case(rows: int, k: int, *, columns: int = 6, dtype: type = np.float32) -> tuple[np.ndarray, np.ndarray]:
    X = mixture(rows, columns=columns, dtype=dtype)
    return X, X[np.random.default_rng(0).choice(rows, k, replace=False)]


@settings(deadline=None, max_examples=80)
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
    seed: int,
    rows: int,
    columns: int,
    k: int,
    threads: int,
    score_bytes: int,
    dtype: type,
) -> None:
    rng = np.random.default_rng(seed)
    X: np.ndarray = rng.random((rows, columns)).astype(dtype)
    centers: np.ndarray = rng.random((k, columns)).astype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assignment, "_SCORE_BYTES", score_bytes)
        labels = nearest_centers(X, centers, threads)
    assert labels.dtype == np.int32
    gaps = squares(X, centers)
    # Up to rounding: of two centres at nearly the same distance either may be taken.
    rounding = 100 * columns * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(gaps[np.arange(rows), labels], gaps.min(axis=1), atol=rounding, rtol=0)


@settings(deadline=None, max_examples=60)
@given(data=st.data(), k=st.integers(1, 50))
def test_of_centres_at_the_same_distance_the_first(data: st.DataObject, k: int) -> None:
    # Whole numbers this small have exact distances, and many of them the same one.
    numbers = st.lists(st.integers(0, 3), min_size=2 * k, max_size=2 * k)
    centers = np.array(data.draw(numbers), dtype=np.float32).reshape(k, 2)
    X = np.array([[a, b] for a in range(4) for b in range(4)], dtype=np.float32)
    first = squares(X, centers).argmin(axis=1)
    np.testing.assert_array_equal(nearest_centers(X, centers), first)
    engine = CpuKernel()
    np.testing.assert_array_equal(engine.assign(engine.load(X, None), centers), first)


@each_way
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_step_is_that_of_scikit_learn(rows: int, k: int, dtype: type, weighted: bool) -> None:
    X, start = case(rows, k, dtype=dtype)
    weight = np.random.default_rng(1).integers(1, 9, rows).astype(np.float64) if weighted else None
    theirs = KMeans(k, init=start.astype(np.float64), n_init=1, max_iter=1, tol=0)
    theirs.fit(X.astype(np.float64), sample_weight=weight)
    engine = CpuKernel()
    loaded = engine.load(X, weight)
    centers, counts = engine.update(loaded, start)
    assert centers.dtype == dtype
    assert counts.dtype == np.float64
    np.testing.assert_allclose(centers, theirs.cluster_centers_, atol=2e-3 if dtype is np.float32 else 1e-9)
    # Rows after the step: KMeans labels them by the centres that it returns.
    assert (engine.assign(loaded, theirs.cluster_centers_) == theirs.labels_).mean() > 0.999
    own = np.ones(rows) if weight is None else weight
    np.testing.assert_array_equal(counts, np.bincount(nearest_centers(X, start), own, k))


@pytest.mark.parametrize(("rows", "k"), [(60_000, 12), (60_000, 150), (12_000, 400)])
@pytest.mark.parametrize("apart", [True, False])
def test_the_same_bytes_on_any_number_of_threads(
    rows: int, k: int, apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whole steps of the kernel for few centres, and sums apart from it.
    monkeypatch.setattr(cpu, "_SMALL_STEP_OF_FEW", 0 if apart else 10**9)
    monkeypatch.setattr(cpu, "_SMALL_STEP", 1_000_000)
    X, start = case(rows, k, columns=9)
    helpers: list[int] = []
    real = dealt_work._pool

    def counted(process: int, threads: int) -> ThreadPoolExecutor:
        helpers.append(threads)
        return real(process, threads)

    monkeypatch.setattr(dealt_work, "_pool", counted)
    found = []
    for threads in (1, 2, 3, 8):
        engine = CpuKernel(threads)
        loaded = engine.load(X, None)
        centers, counts = engine.update(loaded, start)
        found.append((centers.tobytes(), counts.tobytes(), engine.assign(loaded, centers).tobytes()))
    assert len(set(found)) == 1
    assert sorted(set(helpers)) == ([] if k == 12 else [1, 2, 7])


@each_way
@pytest.mark.parametrize("layout", ["fortran", "strided", "read-only"])
def test_rows_with_gaps(rows: int, k: int, layout: str) -> None:
    X, centers = case(rows, k)
    odd = {"fortran": np.asfortranarray(X), "strided": np.repeat(X, 2, axis=0)[::2], "read-only": X.copy()}[layout]
    odd.flags.writeable = False
    gaps = squares(X, centers)
    for threads in (1, 2):
        labels = nearest_centers(odd, np.repeat(centers, 2, axis=0)[::2], threads)
        np.testing.assert_allclose(gaps[np.arange(rows), labels], gaps.min(axis=1), atol=1e-4)


def test_means_of_many_equal_rows_are_exact() -> None:
    # Added up in float32, hundreds of thousands of nearly the same value drift away.
    X = np.full((300_000, 4), 0.9, dtype=np.float32)
    engine = CpuKernel()
    far = np.linspace(2, 3, 4 * 200, dtype=np.float32).reshape(200, 4)
    centers, counts = engine.update(engine.load(X, None), np.vstack([X[:1], far]))
    np.testing.assert_array_equal(centers[0], X[0])
    assert counts[0] == len(X)
