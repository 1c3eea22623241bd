"""Sums that follow rows from cluster to cluster are those of adding up all rows again."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.clustering.sums import cluster_sums
from c2tc_pipeline.clustering.sums import RunningSums

K = 4


@settings(deadline=None)
@given(st.integers(1, 60), st.lists(st.floats(0, 1), max_size=6), st.integers(0, 2**32 - 1))
def test_sums_follow_their_rows(n: int, shares: list[float], seed: int) -> None:
    """However many rows move in a step, none, a few or all of them."""
    rng = np.random.default_rng(seed)
    X, weight = rng.random((n, 3), dtype=np.float32), rng.integers(1, 5, n).astype(np.float64)
    labels = rng.integers(0, K, n, dtype=np.int32)
    kept = RunningSums(X, weight, labels, K)
    for share in shares:
        labels = np.where(rng.random(n) < share, rng.integers(0, K, n, dtype=np.int32), labels)
        sums, fresh = kept.move(labels), cluster_sums(X, labels, K, weight, power=False)
        np.testing.assert_allclose(sums.sums, fresh.sums, atol=1e-9)
        np.testing.assert_array_equal(sums.counts, fresh.counts)


def test_a_cluster_that_lost_all_its_rows_weighs_nothing() -> None:
    X = np.random.default_rng(0).random((100, 2), dtype=np.float32)
    labels = np.repeat([0, 1], [90, 10])
    kept = RunningSums(X, np.ones(100), labels, 2)
    assert kept.move(np.zeros(100, dtype=np.int64)).counts.tolist() == [100.0, 0.0]
