"""Steps among the centres around one's own: never worse, exact where all centres are around."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.clustering import cpu, near_steps
from c2tc_pipeline.clustering.kernels import CpuKernel
from c2tc_pipeline.clustering.near_steps import NearSteps, nearest_around, neighbours
from c2tc_pipeline.clustering.sums import ClusterSums, own_distances, cluster_sums
from c2tc_pipeline.clustering.sums import RunningSums


def case(seed: int, rows: int = 300, k: int = 20) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, weights, clusters at random, and their means."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 3), dtype=np.float32)
    weight = rng.integers(1, 5, rows).astype(np.float32)
    labels = rng.integers(0, k, rows).astype(np.int32)
    return X, weight, labels, cluster_sums(X, labels, k, weight).means().astype(np.float32)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 25))
def test_neighbours_are_the_nearest_centres(seed: int, count: int) -> None:
    centers = np.random.default_rng(seed).random((20, 3))
    gaps = ((centers[:, None] - centers[None]) ** 2).sum(axis=2)
    found = neighbours(centers, count)
    assert found.shape == (20, min(count, 20))
    for own, around in enumerate(found):
        assert own in around
        np.testing.assert_allclose(np.sort(gaps[own, around]), np.sort(gaps[own])[: len(around)], atol=1e-12)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32), around=st.integers(1, 20), count=st.integers(1, 6))
def test_the_loss_never_rises_and_sums_stay_true(seed: int, around: int, count: int) -> None:
    X, weight, labels, centers = case(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_steps, "NEIGHBOURS", around)
        steps, before = NearSteps(RunningSums(X, weight, labels, len(centers))), np.inf
        for _ in range(count):
            sums = steps.step(centers)
            fresh = cluster_sums(X, steps.kept.labels, len(centers), weight)
            np.testing.assert_allclose(sums.sums, fresh.sums, atol=1e-9)
            np.testing.assert_array_equal(sums.counts, fresh.counts)
            loss = float(own_distances(X, steps.kept.labels, fresh.means()) @ weight)
            assert loss <= before * (1 + 1e-6)
            before, centers = loss, fresh.means().astype(np.float32)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32))
def test_with_all_centres_around_it_is_a_step_of_lloyd(seed: int) -> None:
    X, weight, labels, centers = case(seed)
    steps = NearSteps(RunningSums(X, weight, labels, len(centers)))
    steps.step(centers)
    gaps = ((X[:, None].astype(np.float64) - centers[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(own_distances(X, steps.kept.labels, centers), gaps.min(axis=1), atol=1e-6)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    around=st.integers(1, 20),
    threads=st.integers(1, 4),
    run_rows=st.sampled_from([1, 7, 2_048]),
)
def test_each_row_gets_the_nearest_of_the_centres_around_its_own(
    seed: int, around: int, threads: int, run_rows: int
) -> None:
    X, _, labels, centers = case(seed)
    near = neighbours(centers, around)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_steps, "_RUN_ROWS", run_rows)
        patch.setattr(near_steps, "_LONG_RUN", 0)
        found = nearest_around(X, labels, centers, near, threads)
    gaps = ((X[:, None].astype(np.float64) - centers[None]) ** 2).sum(axis=2)
    least = np.take_along_axis(gaps, near[labels], axis=1).min(axis=1)
    assert (found[:, None] == near[labels]).any(axis=1).all()
    np.testing.assert_allclose(gaps[np.arange(len(X)), found], least, atol=1e-6)


def test_the_same_bytes_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_steps, "_LONG_RUN", 0)
    X, weight, labels, centers = case(0, rows=20_000)
    found = []
    for threads in (1, 2, 5):
        steps = NearSteps(RunningSums(X, weight, labels, len(centers)), threads)
        sums = steps.step(steps.step(centers).means().astype(np.float32))
        found.append((sums.sums.tobytes(), sums.counts.tobytes(), steps.kept.labels.tobytes()))
    assert len(set(found)) == 1


def test_the_engine_ends_as_with_full_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((40, 4))[rng.integers(0, 40, 6_000)] + 0.05 * rng.standard_normal((6_000, 4))).astype(np.float32)
    init = X[rng.choice(len(X), 200, replace=False)]
    full = CpuKernel().fit(X, 200, init=init)
    monkeypatch.setattr(cpu, "_MANY_ROWS", 1_000)
    monkeypatch.setattr(cpu, "_MANY_CENTERS", 100)
    monkeypatch.setattr(near_steps, "NEIGHBOURS", 40)
    calls: list[int] = []
    real = NearSteps.step

    def counted(steps: NearSteps, centers: np.ndarray) -> ClusterSums:
        calls.append(1)
        return real(steps, centers)

    monkeypatch.setattr(NearSteps, "step", counted)
    near = CpuKernel().fit(X, 200, init=init)
    assert calls
    assert near.inertia == pytest.approx(full.inertia, rel=2e-3)
    assert near.counts.min() >= 1
    # Whatever the steps missed, rows end with the nearest of the centres that the last step left.
    again = CpuKernel().fit(X, 200, init=init)
    np.testing.assert_array_equal(again.labels, near.labels)
    np.testing.assert_array_equal(again.centers, near.centers)


def test_clusters_that_run_empty_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "_MANY_ROWS", 10)
    monkeypatch.setattr(cpu, "_MANY_CENTERS", 4)
    rng = np.random.default_rng(1)
    X = rng.random((200, 2), dtype=np.float32)
    far = np.full((3, 2), 9.0, dtype=np.float32)
    result = CpuKernel().fit(X, 12, init=np.vstack([X[:9], far]))
    assert (result.counts >= 1).all()
    assert result.counts.sum() == len(X)
