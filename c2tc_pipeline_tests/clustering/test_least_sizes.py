"""Partitions with a least size: valid whatever the rows, and better than filling small clusters up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.clustering.class_kmeans import ClassKMeans
from c2tc_pipeline.clustering.kernels import make_kernel
from c2tc_pipeline.clustering.least_sizes import with_least_sizes
from c2tc_pipeline.clustering.lloyd import Clusters

ENGINE = make_kernel("cpu")


def filled_up(X: np.ndarray, start: Clusters, least: int) -> float:
    """Return the loss of the simple way: each small cluster takes the nearest rows that another can spare."""
    gaps = ((X[:, None].astype(np.float64) - start.centers[None]) ** 2).sum(axis=2)
    labels = gaps.argmin(axis=1)
    sizes = np.bincount(labels, minlength=len(start.centers))
    while (small := np.flatnonzero(sizes < least)).size:
        spare = np.flatnonzero(sizes[labels] > least)
        row = spare[gaps[spare, small[0]].argmin()]
        sizes[labels[row]] -= 1
        labels[row] = small[0]
        sizes[small[0]] += 1
    means = np.array([X[labels == cluster].mean(axis=0, dtype=np.float64) for cluster in range(len(start.centers))])
    return float(((X - means[labels]) ** 2).sum())


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(1, 12),
    least=st.integers(1, 6),
    spare=st.integers(0, 60),
    columns=st.integers(1, 4),
    digits=st.integers(0, 3),
)
def test_any_rows(seed: int, k: int, least: int, spare: int, columns: int, digits: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, size=(k * least + spare, columns)).round(digits).astype(np.float32)
    start = ClassKMeans(X, ENGINE).cluster(k, seed=seed % 7)
    found = with_least_sizes(X, start, least, ENGINE)
    assert found.labels.shape == (len(X),)
    sizes = np.bincount(found.labels, minlength=k)
    assert len(sizes) == k
    assert sizes.min() >= least
    assert found.counts.tolist() == sizes.tolist()
    means = np.array([X[found.labels == cluster].mean(axis=0, dtype=np.float64) for cluster in range(k)])
    np.testing.assert_allclose(found.centers, means, rtol=1e-5, atol=1e-6)
    assert found.inertia == pytest.approx(((X - means[found.labels]) ** 2).sum(), rel=1e-6, abs=1e-6)
    again = with_least_sizes(X, start, least, ENGINE)
    assert again.labels.tolist() == found.labels.tolist()


def test_lower_than_filling_small_clusters_up_but_for_a_few() -> None:
    # The cheapest assignment is the cheapest to the centres as they were; around new means another may win by a bit.
    ratios = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        k, least = int(rng.integers(2, 13)), int(rng.integers(2, 7))
        X = rng.standard_t(2, size=(k * least + int(rng.integers(0, 20)), 3)).astype(np.float32)
        start = ClassKMeans(X, ENGINE).cluster(k, seed=seed)
        if start.counts.min() < least:
            ratios.append(with_least_sizes(X, start, least, ENGINE).inertia / filled_up(X, start, least))
    assert len(ratios) > 150
    assert np.mean(ratios) < 0.95
    assert np.mean(np.array(ratios) > 1 + 1e-6) < 0.05


def test_what_will_do_stays() -> None:
    X = np.random.default_rng(0).random((60, 2), dtype=np.float32)
    start = ENGINE.fit(X, 3)
    assert with_least_sizes(X, start, 5, ENGINE) is start


def test_a_centre_on_an_outlier_is_better_used_elsewhere() -> None:
    # Three groups and a row beside the last: it has a centre of its own, and the first two groups share one.
    X = np.repeat([0.0, 4.0, 10.0, 13.0], [6, 6, 6, 1]).astype(np.float32)[:, None]
    start = ENGINE.fit(X, 3, init=np.array([[2.0], [10.0], [13.0]], dtype=np.float32))
    assert start.counts.tolist() == [12, 6, 1]
    found = with_least_sizes(X, start, 3, ENGINE)
    assert sorted(found.counts.tolist()) == [6, 6, 7]


def test_the_loss_stays_close_where_clusters_are_large() -> None:
    rng = np.random.default_rng(3)
    X = (rng.random((12, 6))[rng.integers(0, 12, 2_000)] + rng.standard_t(2, (2_000, 6)) / 20).clip(0, 1)
    X = X.astype(np.float32)
    start = ClassKMeans(X, ENGINE).cluster(50)
    assert (start.counts < 10).sum() >= 5
    assert with_least_sizes(X, start, 10, ENGINE).inertia < 1.05 * start.inertia


def test_too_few_rows_are_refused() -> None:
    X = np.random.default_rng(0).random((9, 2), dtype=np.float32)
    with pytest.raises(ValueError, match="9 rows cannot be cut into 2 clusters of at least 5"):
        with_least_sizes(X, ENGINE.fit(X, 2), 5, ENGINE)
