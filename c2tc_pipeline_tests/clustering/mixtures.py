"""Rows to cluster, and clusters computed the slow and obvious way."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from c2tc_pipeline.clustering.class_kmeans import cluster_block
from c2tc_pipeline.clustering.kernels import CpuKernel, Kernel
from c2tc_pipeline.clustering.lloyd import ClassClusters
from c2tc_pipeline.clustering.rows import RowBlock, RowSource
from c2tc_pipeline.clustering.torch_kernel import TorchKernel

CPU = CpuKernel()
KERNELS: list[Kernel] = [CPU, TorchKernel("cpu")]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)

few_values = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 25), st.integers(1, 3)),
    elements=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)
"""Small tables in which most rows occur more than once."""


def mixture(
    rows: int, columns: int = 4, groups: int = 12, *, spread: float = 0.05, seed: int = 0, dtype: type = np.float32
) -> np.ndarray:
    """Return rows around random group centres, all values in [0, 1]."""
    rng = np.random.default_rng(seed)
    middles = rng.random((groups, columns))
    noise = rng.normal(0, spread, (rows, columns))
    return np.clip(middles[rng.integers(groups, size=rows)] + noise, 0, 1).astype(dtype)


def fit(
    kernel: Kernel,
    X: np.ndarray,
    k: int,
    *,
    init: np.ndarray | None = None,
    seed: int = 0,
    weight: np.ndarray | None = None,
    **options: Any,
) -> ClassClusters:
    """Cluster an array as one block."""
    return cluster_block(kernel, RowBlock(RowSource(X), weight=weight), k, init, seed, **options)


def in_pieces(X: np.ndarray, cuts: list[int], weight: np.ndarray | None = None) -> list[RowBlock]:
    """Cut rows into blocks at some positions."""
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(X)}), len(X)]
    return [RowBlock(RowSource(X[a:b]), a, None if weight is None else weight[a:b]) for a, b in pairwise(edges)]


def as_bytes(result: ClassClusters) -> tuple[object, ...]:
    arrays = (result.centers, result.labels, result.counts, result.nearest)
    return (*(array.tobytes() for array in arrays), result.inertia, result.iterations)


def squared_distances(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return all squared distances in float64."""
    return np.asarray(((X[:, None].astype(np.float64) - centers[None].astype(np.float64)) ** 2).sum(axis=2))


def exact_means(X: np.ndarray, labels: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    rows = X.astype(np.float64)
    weight = np.ones(len(X)) if weight is None else weight.astype(np.float64)
    clusters = range(int(labels.max()) + 1)
    return np.array([np.average(rows[labels == c], axis=0, weights=weight[labels == c]) for c in clusters])


def exact_loss(X: np.ndarray, labels: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the within-cluster sum of squares in float64."""
    offsets = X.astype(np.float64) - exact_means(X, labels, weight)[labels]
    weight = np.ones(len(X)) if weight is None else weight.astype(np.float64)
    return float(((offsets**2).sum(axis=1) * weight).sum())


def assert_true_clusters(result: ClassClusters, X: np.ndarray, k: int, weight: np.ndarray | None = None) -> None:
    """Check everything that :class:`ClassClusters` promises against the rows."""
    assert result.labels.shape == (len(X),)
    assert sorted(set(result.labels.tolist())) == list(range(k))
    np.testing.assert_array_equal(result.counts, np.bincount(result.labels, weight, k))
    assert result.centers.dtype == X.dtype
    means = exact_means(X, result.labels, weight)
    np.testing.assert_allclose(result.centers, means, rtol=0, atol=1e-6)
    np.testing.assert_allclose(result.inertia, exact_loss(X, result.labels, weight), rtol=1e-9, atol=1e-30)
    assert result.labels[result.nearest].tolist() == list(range(k))
    distances = ((X - means[result.labels]) ** 2).sum(axis=1)
    least = [distances[result.labels == cluster].min() for cluster in range(k)]
    np.testing.assert_allclose(distances[result.nearest], least, atol=1e-9)
