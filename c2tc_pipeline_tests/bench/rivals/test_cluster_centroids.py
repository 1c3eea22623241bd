"""Our ClusterCentroids against imbalanced-learn's."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from imblearn.under_sampling import ClusterCentroids

from c2tc_pipeline.bench.rivals.cluster_centroids import ClusterCentroidsRows
from c2tc_pipeline.common.errors import InputError


def three_classes() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((100, 4)), rng.permutation(np.repeat(["a", "b", "c"], [60, 39, 1]))


@pytest.mark.parametrize("seed", [0, 7])
def test_the_rows_are_imbalanced_learns(seed: int) -> None:
    X, y = three_classes()
    sampler = ClusterCentroidsRows(ratio=0.1, random_state=seed)
    ours, labels = sampler.fit_resample(X, y)
    counts = dict(zip(["a", "b", "c"], sampler.counts_.tolist(), strict=True))
    # Class c has one row, which both keep.
    expected, expected_labels = ClusterCentroids(
        sampling_strategy={name: counts[name] for name in ("a", "b")}, random_state=seed
    ).fit_resample(X, y)
    np.testing.assert_array_equal(ours, expected)
    np.testing.assert_array_equal(labels, expected_labels)
    np.testing.assert_array_equal(ours[labels == "c"], X[y == "c"])
    assert sampler.weights_ is None


def test_without_imbalanced_learn_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imblearn.under_sampling", None)
    with pytest.raises(InputError, match=r"needs imbalanced-learn.*pip install 'c2tc_pipeline\[bench\]'\.$"):
        ClusterCentroidsRows().fit_resample(*three_classes())
