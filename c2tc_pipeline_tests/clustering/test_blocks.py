"""Sums over blocks add up to the whole."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.clustering import block_tasks, partition
from c2tc_pipeline.clustering.rows import Block
from c2tc_pipeline.clustering.kernels import Engine
from c2tc_pipeline.clustering.sums import ClusterSums, cluster_sums
from c2tc_pipeline.clustering.rows import HeldRows
from c2tc_pipeline_tests.clustering.mixtures import ENGINES, exact_loss, exact_means, few_values, mixture, name_of

each_engine = pytest.mark.parametrize("engine", ENGINES, ids=name_of)


def assert_same_sums(one: ClusterSums, other: ClusterSums) -> None:
    np.testing.assert_allclose(one.sums, other.sums, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(one.counts, other.counts)
    assert one.power == pytest.approx(other.power, rel=1e-12)


@settings(deadline=None)
@given(X=few_values, data=st.data())
def test_sums_are_those_of_the_members(X: np.ndarray, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 6))
    labels = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=len(X), max_size=len(X))))
    weight = data.draw(st.none() | st.just(np.arange(1, len(X) + 1)))
    sums = cluster_sums(X, labels, k, weight)
    used = np.unique(labels)
    compact = np.searchsorted(used, labels)
    np.testing.assert_array_equal(sums.counts, np.bincount(labels, weight, k))
    np.testing.assert_allclose(sums.means()[used], exact_means(X, compact, weight), atol=1e-12)
    assert not sums.means()[np.setdiff1d(np.arange(k), used)].any()
    assert sums.wcss() == pytest.approx(exact_loss(X, compact, weight), abs=1e-10)


def test_sums_do_not_depend_on_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    X = mixture(100)
    labels = np.arange(100) % 7
    whole = cluster_sums(X, labels, 7, np.arange(100.0))
    monkeypatch.setattr(partition, "CHUNK_CELLS", 9)
    assert_same_sums(cluster_sums(X, labels, 7, np.arange(100.0)), whole)


def sums_of(engine: Engine, X: np.ndarray, centers: np.ndarray, weight: np.ndarray | None = None) -> ClusterSums:
    return block_tasks.assign(Block(HeldRows(X), weight=weight), engine, centers)[1]


@each_engine
@pytest.mark.parametrize("weighted", [False, True])
@settings(deadline=None, max_examples=25)
@given(cuts=st.lists(st.integers(0, 120), max_size=6))
def test_steps_over_blocks_add_up_to_the_whole(engine: Engine, weighted: bool, cuts: list[int]) -> None:
    X = mixture(120)
    weight = np.arange(1, 121, dtype=np.float32) if weighted else None
    centers = X[::15]
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < 120}), 120]
    spans = [slice(a, b) for a, b in pairwise(edges)]
    blocks = [sums_of(engine, X[s], centers, None if weight is None else weight[s]) for s in spans]
    assert_same_sums(reduce(add, blocks), sums_of(engine, X, centers, weight))
