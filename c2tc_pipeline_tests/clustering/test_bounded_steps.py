"""Steps that leave rows alone find the labels of a full search, and leave many alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.clustering import cpu
from c2tc_pipeline.clustering.assignment import nearest_centers
from c2tc_pipeline.clustering.bounded_steps import BoundedSteps
from c2tc_pipeline.clustering.kernels import CpuKernel


def walk(rng: np.random.Generator, X: np.ndarray, k: int, steps: int, length: float) -> list[np.ndarray]:
    """Return centres that begin at rows and go on at random, ever less far."""
    centers = [X[rng.choice(len(X), k, replace=False)]]
    for step in range(steps):
        way = rng.normal(size=centers[-1].shape) * length / (step + 1)
        centers.append((centers[-1] + way).astype(X.dtype))
    return centers


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.sampled_from([0.0, 1e-4, 0.02, 0.5]),
    st.sampled_from([0.0, 1.0, 1000.0]),
    st.sampled_from([np.float32, np.float64]),
    st.booleans(),
)
def test_labels_are_those_of_a_full_search(
    seed: int, k: int, length: float, offset: float, dtype: type, flags: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.random((400, 5)) if not flags else rng.integers(0, 2, (400, 5)).astype(float)
    X = (X + offset).astype(dtype)
    steps = BoundedSteps(X, threads=1)
    for centers in walk(rng, X, k, 5, length):
        np.testing.assert_array_equal(steps.nearest(centers), nearest_centers(X, centers))


def test_rows_amid_their_cluster_are_left_alone_while_centres_move_little() -> None:
    rng = np.random.default_rng(0)
    middles = rng.random((20, 4)).astype(np.float32)
    X = (np.repeat(middles, 100, axis=0) + rng.normal(scale=0.01, size=(2_000, 4))).astype(np.float32)
    steps = BoundedSteps(X, threads=1)
    steps.nearest(middles)
    assert steps.compared == len(X)
    steps.nearest(middles + np.float32(0.001))
    assert steps.compared < len(X) / 10


def test_another_number_of_centres_is_another_search() -> None:
    X = np.random.default_rng(0).random((300, 3), dtype=np.float32)
    steps = BoundedSteps(X, threads=1)
    for k in (5, 9, 1):
        np.testing.assert_array_equal(steps.nearest(X[:k]), nearest_centers(X, X[:k]))
        assert steps.compared == len(X)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_clustering_is_the_same_to_the_byte_with_bounds_and_without(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    X = (rng.random((6_000, 6)) ** 2).astype(np.float32)
    X[:, 3:] = X[:, 3:] > 0.5
    full = CpuKernel(1).fit(X, 130, seed=3)
    monkeypatch.setattr(cpu, "_MANY_ROWS", 1_000)
    monkeypatch.setattr(cpu, "_MANY_COLUMNS", 6)
    bounded = CpuKernel(threads).fit(X, 130, seed=3)
    assert bounded.labels.tobytes() == full.labels.tobytes()
    assert bounded.centers.tobytes() == full.centers.tobytes()
    assert bounded.inertia == full.inertia
