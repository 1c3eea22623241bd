"""Starting centres: given ones are kept, new ones are rows, and far rows are preferred."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.clustering.seeding import extend_centers, squared_gaps
from c2tc_pipeline_tests.clustering.mixtures import few_values, mixture


@settings(deadline=None)
@given(X=few_values, data=st.data(), seed=st.integers(0, 2**32))
def test_given_centres_come_first_and_new_ones_are_rows(X: np.ndarray, data: st.DataObject, seed: int) -> None:
    k = data.draw(st.integers(1, len(X)))
    known = np.full((data.draw(st.integers(0, k)), X.shape[1]), 0.3, dtype=X.dtype)
    found = extend_centers(X, known, k, np.random.default_rng(seed))
    assert found.shape == (k, X.shape[1])
    assert found.dtype == X.dtype
    np.testing.assert_array_equal(found[: len(known)], known)
    rows = {tuple(row) for row in X.tolist()}
    assert all(tuple(row) in rows for row in found[len(known) :].tolist())


@settings(deadline=None)
@given(X=few_values, seed=st.integers(0, 2**32))
def test_as_many_centres_as_distinct_rows_are_all_of_them(X: np.ndarray, seed: int) -> None:
    distinct = {tuple(row) for row in X.tolist()}
    found = extend_centers(X, X[:0], len(distinct), np.random.default_rng(seed))
    assert {tuple(row) for row in found.tolist()} == distinct


def test_a_row_without_weight_is_never_drawn() -> None:
    X = np.array([[0.0], [1.0], [5.0]])
    weight = np.array([1.0, 1.0, 0.0])
    for seed in range(20):
        assert 5.0 not in extend_centers(X, X[:0], 2, np.random.default_rng(seed), weight=weight)


def test_the_same_seed_draws_the_same_centres() -> None:
    X = mixture(200)
    drawn = [extend_centers(X, X[:0], 10, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()


def test_a_far_group_gets_a_centre() -> None:
    X = np.concatenate([np.zeros((500, 2)), np.full((3, 2), 0.9)])
    for seed in range(20):
        assert 0.9 in extend_centers(X, X[:0], 2, np.random.default_rng(seed))


@settings(deadline=None)
@given(X=few_values, data=st.data())
def test_gaps_are_distances_to_the_nearest_centre(X: np.ndarray, data: st.DataObject) -> None:
    centers = X[data.draw(st.lists(st.integers(0, len(X) - 1), min_size=1, max_size=5))] + np.float32(0.125)
    gaps = squared_gaps(X, np.einsum("ij,ij->i", X, X), centers)
    brute = ((X[:, None].astype(float) - centers[None]) ** 2).sum(axis=2).min(axis=1)
    assert gaps == pytest.approx(brute, abs=1e-5)
