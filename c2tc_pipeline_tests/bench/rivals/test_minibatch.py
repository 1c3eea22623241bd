"""Mini-batch k-means: centres that are near the rows, and an exact number of them."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.cluster
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from c2tc_pipeline.bench.rivals.minibatch import MiniBatchRows, _fill_empty


def test_blobs_are_found_and_counted() -> None:
    rng = np.random.default_rng(0)
    # Four narrow blobs a class, far apart; counts by class are the blobs'.
    sizes = np.array([100, 50, 30, 20, 100, 50, 30, 20])
    corners = np.array([[0, 0], [9, 0], [0, 9], [9, 9]] * 2) + np.repeat([0, 50], 4)[:, None]
    X = np.repeat(corners, sizes, axis=0) + rng.normal(0, 0.1, (400, 2))
    y = np.repeat([0, 1], 200)
    sampler = MiniBatchRows(rows=8)
    centres, labels = sampler.fit_resample(X, y)
    for label in (0, 1):
        of_class = corners[4 * label : 4 * label + 4]
        near = cdist(of_class, centres[labels == label])
        assert near.min(axis=1).max() < 0.2
        assert sampler.weights_ is not None
        weights = sampler.weights_[labels == label][near.argmin(axis=1)]
        assert weights.tolist() == [100, 50, 30, 20]


def test_weights_are_the_rows_nearest_to_each_centre() -> None:
    X = np.random.default_rng(1).random((300, 3))
    sampler = MiniBatchRows(rows=20, batch_size=50)
    centres, labels = sampler.fit_resample(X, np.repeat([0, 1], 150))
    for label, rows in ((0, X[:150]), (1, X[150:])):
        nearest = cdist(rows, centres[labels == label]).argmin(axis=1)
        assert sampler.weights_ is not None
        assert sampler.weights_[labels == label].tolist() == np.bincount(nearest, minlength=10).tolist()


@settings(max_examples=30)
@given(st.data())
def test_no_centre_is_left_empty(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    k = data.draw(st.integers(1, n))
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    X, centres = rng.integers(0, 3, (n, 2)).astype(float), rng.random((k, 2)) * 9
    labels = cdist(X, centres).argmin(axis=1)
    filled, sizes = _fill_empty(X, centres, labels)
    assert (sizes >= 1).all()
    assert sizes.sum() == n
    kept = np.bincount(labels, minlength=k) > 0
    np.testing.assert_array_equal(filled[kept], centres[kept])
    assert set(map(tuple, filled[~kept])) <= set(map(tuple, X))


def test_the_settings_reach_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    class Recording(sklearn.cluster.MiniBatchKMeans):
        def __init__(self, n_clusters: int, **settings: object) -> None:
            asked.append({"n_clusters": n_clusters, **settings})
            super().__init__(n_clusters, **settings)

    monkeypatch.setattr(sklearn.cluster, "MiniBatchKMeans", Recording)
    X = np.random.default_rng(0).random((40, 2))
    MiniBatchRows(rows=6, batch_size=7).fit_resample(X, np.repeat([0, 1], 20))
    assert [settings["n_clusters"] for settings in asked] == [3, 3]
    assert all(settings["batch_size"] == 7 and settings["n_init"] == 1 for settings in asked)
    assert asked[0]["random_state"] != asked[1]["random_state"], "each class has a seed of its own"
