"""Clusters with a minimum size: enough rows in each, as many as planned, and little more loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.clustering.class_kmeans import ClassKMeans
from c2tc_pipeline.clustering.min_size import enlarge_small_clusters, fill_small_clusters
from c2tc_pipeline_tests.clustering.mixtures import CPU, as_bytes, assert_true_clusters, fit, squared_distances


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(1, 12),
    min_rows=st.integers(1, 6),
    spare=st.integers(0, 60),
    columns=st.integers(1, 4),
    digits=st.integers(0, 3),
)
def test_any_rows(seed: int, k: int, min_rows: int, spare: int, columns: int, digits: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, size=(k * min_rows + spare, columns)).round(digits).clip(-20, 20).astype(np.float32)
    rows = ClassKMeans(X, CPU)
    start = rows.start(k, seed=seed % 7)
    found, again = (rows.settle(k, start, seed=seed % 7, min_rows=min_rows) for _ in range(2))
    assert np.bincount(found.labels, minlength=k).min() >= min_rows
    assert as_bytes(found) == as_bytes(again)
    assert len(found.centers) == k
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


def test_clusters_that_are_large_enough_stay() -> None:
    X = np.random.default_rng(0).random((60, 2), dtype=np.float32)
    start = fit(CPU, X, 3)
    assert enlarge_small_clusters(X, start, 5, CPU) is start


def test_a_small_cluster_takes_the_rows_that_cost_least() -> None:
    X = np.array([[0.0], [0.1], [0.2], [0.4], [5.0]])
    assert fill_small_clusters(X, X[[0, 4]], np.array([0, 0, 0, 0, 1]), 2).tolist() == [0, 0, 0, 1, 1]


def test_the_loss_stays_close_where_clusters_are_large() -> None:
    rng = np.random.default_rng(3)
    X = (rng.random((12, 6))[rng.integers(0, 12, 2_000)] + rng.standard_t(2, (2_000, 6)) / 20).clip(0, 1)
    X = X.astype(np.float32)
    start = ClassKMeans(X, CPU).cluster(50)
    assert (start.counts < 10).sum() >= 5
    assert enlarge_small_clusters(X, start, 10, CPU).inertia < 1.05 * start.inertia


def test_too_few_rows_are_refused() -> None:
    X = np.random.default_rng(0).random((9, 2), dtype=np.float32)
    with pytest.raises(ValueError, match="9 rows"):
        enlarge_small_clusters(X, fit(CPU, X, 2), 5, CPU)
