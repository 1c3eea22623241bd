"""Rows to cluster and the truth about a partition, worked out the slow and obvious way."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from c2tc_pipeline.clustering.kernels import CpuKernel
from c2tc_pipeline.clustering.kernels import Engine
from c2tc_pipeline.clustering.lloyd import Clusters
from c2tc_pipeline.clustering.torch_kernel import TorchKernel

ENGINES: list[Engine] = [CpuKernel(), TorchKernel("cpu")]

few_values = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 25), st.integers(1, 3)),
    elements=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)
"""Small tables in which most rows occur more than once."""


def name_of(engine: Engine) -> str:
    return type(engine).__name__


def mixture(
    rows: int, columns: int = 4, groups: int = 12, *, spread: float = 0.05, seed: int = 0, dtype: type = np.float32
) -> np.ndarray:
    """Return rows around random group centres, all values in [0, 1]."""
    rng = np.random.default_rng(seed)
    middles = rng.random((groups, columns))
    noise = rng.normal(0, spread, (rows, columns))
    return np.clip(middles[rng.integers(groups, size=rows)] + noise, 0, 1).astype(dtype)


def distinct_rows(X: np.ndarray) -> int:
    return len({tuple(row) for row in X.tolist()})


def exact_means(X: np.ndarray, labels: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    rows = X.astype(np.float64)
    weight = np.ones(len(X)) if weight is None else weight.astype(np.float64)
    clusters = range(int(labels.max()) + 1)
    return np.array([np.average(rows[labels == c], axis=0, weights=weight[labels == c]) for c in clusters])


def exact_loss(X: np.ndarray, labels: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the within-cluster sum of squares in float64, from the differences themselves."""
    gaps = X.astype(np.float64) - exact_means(X, labels, weight)[labels]
    weight = np.ones(len(X)) if weight is None else weight.astype(np.float64)
    return float(((gaps**2).sum(axis=1) * weight).sum())


def assert_true_partition(result: Clusters, X: np.ndarray, k: int, weight: np.ndarray | None = None) -> None:
    """Check everything that :class:`Clusters` promises against the rows."""
    assert result.labels.shape == (len(X),)
    assert sorted(set(result.labels.tolist())) == list(range(k))
    np.testing.assert_array_equal(result.counts, np.bincount(result.labels, weight, k))
    assert result.centers.dtype == X.dtype
    np.testing.assert_allclose(result.centers, exact_means(X, result.labels, weight), rtol=0, atol=1e-6)
    np.testing.assert_allclose(result.inertia, exact_loss(X, result.labels, weight), rtol=1e-9, atol=0)
