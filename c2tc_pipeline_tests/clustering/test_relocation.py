"""Relocation: never worse, better where Lloyd is stuck, and reproducible."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.clustering.kernels import Engine, make_kernel
from c2tc_pipeline.clustering.seeding import relocate_centers
from c2tc_pipeline_tests.clustering.mixtures import ENGINES, few_values, mixture, name_of


@settings(deadline=None, max_examples=50)
@given(X=few_values, data=st.data(), seed=st.integers(0, 2**32))
def test_the_loss_never_rises(X: np.ndarray, data: st.DataObject, seed: int) -> None:
    k = data.draw(st.integers(1, len(X)))
    weight = data.draw(st.none() | st.just(np.arange(1, len(X) + 1, dtype=np.float32)))
    engine = make_kernel("cpu")
    start = engine.fit(X, k, seed=seed, weight=weight, max_iter=data.draw(st.integers(0, 3)))
    moved = relocate_centers(X, start, engine, np.random.default_rng(seed), weight=weight)
    assert moved.inertia <= start.inertia
    assert _loss_around(moved.centers, X, weight) <= moved.inertia + 1e-5 * len(X)


@pytest.mark.parametrize("seed", range(5))
def test_moves_that_do_not_pay_are_undone(seed: int) -> None:
    X = mixture(300, spread=0.2, seed=seed)
    engine = make_kernel("cpu")
    best = min((engine.fit(X, 15, seed=s, tol=0) for s in range(30)), key=lambda result: result.inertia)
    assert relocate_centers(X, best, engine, np.random.default_rng(seed)).inertia <= best.inertia


@pytest.mark.parametrize("engine", ENGINES, ids=name_of)
@pytest.mark.parametrize("seed", range(3))
def test_a_start_that_lloyd_cannot_mend_is_mended(engine: Engine, seed: int) -> None:
    X = mixture(400, groups=10, seed=seed)
    near_one_corner = X[np.argsort(X.sum(axis=1))[:10]]
    stuck = engine.fit(X, 10, init=near_one_corner, tol=0)
    moved = relocate_centers(X, stuck, engine, np.random.default_rng(seed), rounds=30)
    best = min(engine.fit(X, 10, seed=s).inertia for s in range(20))
    assert stuck.inertia > 1.3 * best
    assert moved.inertia < 1.3 * best
    # Rows that are assigned once more can only be served better than by the step that told the loss.
    assert 0.99 * moved.inertia < _loss_around(moved.centers, X) < 1.0001 * moved.inertia


def test_the_same_generator_makes_the_same_moves() -> None:
    X = mixture(400)
    engine = make_kernel("cpu")
    start = engine.fit(X, 30, max_iter=1)
    one, again = (relocate_centers(X, start, engine, np.random.default_rng(5)) for _ in range(2))
    assert one.centers.tobytes() == again.centers.tobytes()


def test_no_rounds_change_nothing() -> None:
    X = mixture(50)
    start = make_kernel("cpu").fit(X, 5, max_iter=0)
    assert relocate_centers(X, start, make_kernel("cpu"), np.random.default_rng(0), rounds=0) is start


def _loss_around(centers: np.ndarray, X: np.ndarray, weight: np.ndarray | None = None) -> float:
    gaps = ((X[:, None, :].astype(np.float64) - centers) ** 2).sum(axis=2).min(axis=1)
    return float(gaps.sum() if weight is None else gaps @ weight)
