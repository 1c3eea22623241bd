"""Starting centres: given ones are kept, new ones are rows, far rows are preferred, and relocation never hurts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline.clustering.kernels import Kernel
from c2tc_pipeline.clustering.seeding import extend_centers, relocate_centers
from c2tc_pipeline_tests.clustering.mixtures import CPU, each_kernel, few_values, fit, mixture, squared_distances


@given(X=few_values, data=st.data(), seed=st.integers(0, 2**32))
def test_given_centres_come_first_and_new_ones_are_rows(X: np.ndarray, data: st.DataObject, seed: int) -> None:
    k = data.draw(st.integers(1, len(X)))
    known = np.full((data.draw(st.integers(0, k)), X.shape[1]), 0.3, dtype=X.dtype)
    found = extend_centers(X, known, k, np.random.default_rng(seed))
    assert (found.shape, found.dtype) == ((k, X.shape[1]), X.dtype)
    np.testing.assert_array_equal(found[: len(known)], known)
    rows = {tuple(row) for row in X.tolist()}
    assert all(tuple(row) in rows for row in found[len(known) :].tolist())


@given(X=few_values, seed=st.integers(0, 2**32))
def test_as_many_centres_as_distinct_rows_are_all_of_them(X: np.ndarray, seed: int) -> None:
    distinct = {tuple(row) for row in X.tolist()}
    found = extend_centers(X, None, len(distinct), np.random.default_rng(seed))
    assert {tuple(row) for row in found.tolist()} == distinct


@pytest.mark.parametrize("seed", range(10))
def test_rows_are_drawn_by_weight_and_distance(seed: int) -> None:
    X = np.array([[0.0], [1.0], [5.0]])
    assert 5.0 not in extend_centers(X, None, 2, np.random.default_rng(seed), weight=np.array([1.0, 1.0, 0.0]))
    X = np.concatenate([np.zeros((500, 2)), np.full((3, 2), 0.9)])
    for known in (None, np.zeros((1, 2))):
        assert 0.9 in extend_centers(X, known, 2, np.random.default_rng(seed))


@given(X=few_values, data=st.data(), seed=st.integers(0, 2**32))
def test_relocation_never_raises_the_loss(X: np.ndarray, data: st.DataObject, seed: int) -> None:
    k = data.draw(st.integers(1, len(X)))
    weight = data.draw(st.none() | st.just(np.arange(1, len(X) + 1, dtype=np.float32)))
    start = fit(CPU, X, k, seed=seed, weight=weight, max_iter=data.draw(st.integers(0, 3)))
    moved, again = (relocate_centers(X, start, CPU, np.random.default_rng(seed), weight=weight) for _ in range(2))
    assert moved.inertia <= start.inertia
    assert moved.centers.tobytes() == again.centers.tobytes()
    assert relocate_centers(X, start, CPU, np.random.default_rng(seed), rounds=0) is start


@each_kernel
@pytest.mark.parametrize("seed", range(3))
def test_relocation_repairs_a_start_that_lloyd_cannot(kernel: Kernel, seed: int) -> None:
    X = mixture(400, groups=10, seed=seed)
    near_one_corner = X[np.argsort(X.sum(axis=1))[:10]]
    stuck = fit(kernel, X, 10, init=near_one_corner, tol=0)
    moved = relocate_centers(X, stuck, kernel, np.random.default_rng(seed), rounds=30)
    best = min((fit(kernel, X, 10, seed=s) for s in range(20)), key=lambda result: result.inertia)
    assert stuck.inertia > 1.3 * best.inertia
    assert moved.inertia < 1.3 * best.inertia
    # A further assignment can only lower the loss of the last step.
    assert 0.99 * moved.inertia < squared_distances(X, moved.centers).min(axis=1).sum() < 1.0001 * moved.inertia
    assert relocate_centers(X, best, kernel, np.random.default_rng(seed)).inertia <= best.inertia
