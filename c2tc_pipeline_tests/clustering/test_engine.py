"""The engines against scikit-learn's public KMeans, against repeated rows, and against what a partition promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from c2tc_pipeline.clustering import lloyd, torch_kernel
from c2tc_pipeline.clustering.kernels import CpuKernel
from c2tc_pipeline.clustering.kernels import Engine, make_kernel
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.clustering.mixtures import (
    ENGINES,
    assert_true_partition,
    exact_loss,
    few_values,
    mixture,
    name_of,
)

each_engine = pytest.mark.parametrize("engine", ENGINES, ids=name_of)


def rows_of(X: np.ndarray, k: int, seed: int = 0) -> np.ndarray:
    """Return ``k`` rows to start from."""
    return X[np.random.default_rng(seed).choice(len(X), size=k, replace=False)]


@each_engine
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-9), (np.float32, 1e-3)])
@pytest.mark.parametrize("k", [1, 2, 7, 40])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_same_inertia_as_scikit_learn_from_the_same_start_without_momentum(
    engine: Engine, dtype: type, rtol: float, k: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lloyd, "_MOMENTUM", 0.0)
    X = mixture(600, seed=seed, dtype=dtype)
    start = rows_of(X, k, seed)
    theirs = KMeans(k, init=start.astype(np.float64), n_init=1, tol=0, max_iter=300).fit(X.astype(np.float64))
    ours = engine.fit(X, k, init=start, tol=0, max_iter=300)
    assert_true_partition(ours, X, k)
    assert ours.inertia == pytest.approx(theirs.inertia_, rel=rtol)


@each_engine
@pytest.mark.parametrize("k", [7, 40])
def test_momentum_ends_lower_than_scikit_learn_from_the_same_starts_and_nowhere_to_go(engine: Engine, k: int) -> None:
    ratios = []
    for seed in range(8):
        X = mixture(600, seed=seed, dtype=np.float64)
        start = rows_of(X, k, seed)
        theirs = KMeans(k, init=start, n_init=1, tol=0, max_iter=300).fit(X).inertia_
        ours = engine.fit(X, k, init=start, tol=0, max_iter=300)
        ratios.append(ours.inertia / theirs)
        # It ends where no plain step of anyone's gains anything.
        further = KMeans(k, init=ours.centers, n_init=1, tol=0, max_iter=300).fit(X).inertia_
        assert further == pytest.approx(ours.inertia, rel=1e-9)
    assert np.exp(np.mean(np.log(ratios))) < 1


@each_engine
@pytest.mark.parametrize("seed", range(4))
def test_k_means_plus_plus_is_as_good_as_scikit_learns(engine: Engine, seed: int) -> None:
    X = mixture(800, groups=20, seed=seed)
    theirs = [KMeans(20, n_init=1, random_state=s).fit(X).inertia_ for s in range(8)]
    ours = [engine.fit(X, 20, seed=s).inertia for s in range(8)]
    assert np.median(ours) <= 1.1 * np.median(theirs)


@each_engine
@pytest.mark.parametrize("seed", range(4))
def test_weights_count_like_repeated_rows(engine: Engine, seed: int) -> None:
    X = mixture(200, seed=seed, dtype=np.float64)
    weight = np.random.default_rng(seed).integers(1, 6, size=len(X))
    start = rows_of(X, 8, seed)
    weighted = engine.fit(X, 8, init=start, weight=weight.astype(np.float64), tol=0)
    repeated = engine.fit(np.repeat(X, weight, axis=0), 8, init=start, tol=0)
    assert_true_partition(weighted, X, 8, weight.astype(np.float64))
    np.testing.assert_array_equal(np.repeat(weighted.labels, weight), repeated.labels)
    np.testing.assert_allclose(weighted.centers, repeated.centers, atol=1e-12)
    assert weighted.inertia == pytest.approx(repeated.inertia, rel=1e-9)


@each_engine
@settings(deadline=None, max_examples=60)
@given(X=few_values, data=st.data(), seed=st.integers(0, 2**32))
def test_no_cluster_is_ever_empty(engine: Engine, X: np.ndarray, data: st.DataObject, seed: int) -> None:
    k = data.draw(st.integers(1, len(X)))
    known = data.draw(st.integers(0, k))
    # A start with all centres in one place leaves as many clusters empty as can be.
    start = np.repeat(X[:1], known, axis=0) if known else None
    weight = data.draw(st.none() | st.just(np.arange(1, len(X) + 1, dtype=np.float32)))
    result = engine.fit(X, k, init=start, seed=seed, weight=weight, max_iter=data.draw(st.integers(0, 20)))
    assert_true_partition(result, X, k, weight)


@each_engine
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32), k=st.integers(1, 30), steps=st.integers(0, 5))
def test_more_steps_never_raise_the_loss(engine: Engine, seed: int, k: int, steps: int) -> None:
    X = mixture(90, seed=seed % 7, dtype=np.float64)
    fewer = engine.fit(X, k, seed=seed, max_iter=steps, tol=0)
    more = engine.fit(X, k, seed=seed, max_iter=steps + 1, tol=0)
    assert more.inertia <= fewer.inertia * (1 + 1e-9)


@each_engine
def test_the_same_seed_gives_the_same_result_and_another_seed_another(engine: Engine) -> None:
    X = mixture(300)
    one, again, other = (engine.fit(X, 15, seed=seed, max_iter=3) for seed in (1, 1, 2))
    assert one.centers.tobytes() == again.centers.tobytes()
    assert one.labels.tobytes() == again.labels.tobytes()
    assert one.inertia == again.inertia
    assert one.centers.tobytes() != other.centers.tobytes()


@each_engine
def test_a_warm_start_from_a_settled_partition_stays_there(engine: Engine) -> None:
    X = mixture(400, dtype=np.float64)
    settled = engine.fit(X, 12, tol=0, max_iter=500)
    again = engine.fit(X, 12, init=settled.centers, tol=0, max_iter=500)
    assert again.iterations <= 2
    assert again.inertia == pytest.approx(settled.inertia, rel=1e-12)


@each_engine
def test_a_warm_start_with_fewer_centres_is_extended(engine: Engine) -> None:
    X = mixture(400)
    coarse = engine.fit(X, 5)
    fine = engine.fit(X, 20, init=coarse.centers)
    assert_true_partition(fine, X, 20)
    assert fine.inertia < coarse.inertia


@each_engine
def test_more_starting_centres_than_clusters_are_refused(engine: Engine) -> None:
    X = mixture(10)
    with pytest.raises(ValueError, match="4 centres are more than the 3 wanted"):
        engine.fit(X, 3, init=X[:4])


@each_engine
@pytest.mark.parametrize("layout", ["fortran", "strided", "read-only"])
@pytest.mark.filterwarnings("error")
def test_the_layout_of_the_rows_does_not_matter(engine: Engine, layout: str) -> None:
    X = mixture(100)
    odd = {"fortran": np.asfortranarray(X), "strided": np.repeat(X, 2, axis=0)[::2], "read-only": X.copy()}[layout]
    odd.flags.writeable = False
    before = odd.copy()
    np.testing.assert_array_equal(engine.fit(odd, 6).labels, engine.fit(X, 6).labels)
    np.testing.assert_array_equal(odd, before)


@each_engine
def test_a_tiny_loss_beside_large_values_is_still_exact(engine: Engine) -> None:
    rng = np.random.default_rng(0)
    X = (0.9 + 1e-6 * rng.random((2_000, 30))).astype(np.float32)
    result = engine.fit(X, 3)
    assert result.inertia == pytest.approx(exact_loss(X, result.labels), rel=1e-9)


def test_the_engines_agree() -> None:
    X = mixture(500, dtype=np.float64)
    start = rows_of(X, 10)
    one, other = (engine.fit(X, 10, init=start, tol=0) for engine in ENGINES)
    np.testing.assert_array_equal(one.labels, other.labels)
    assert one.inertia == pytest.approx(other.inertia, rel=1e-12)


def test_torch_in_small_blocks_gives_the_same_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    X = mixture(101, dtype=np.float64)
    engine = torch_kernel.TorchKernel("cpu")
    whole = engine.fit(X, 7, seed=3)
    monkeypatch.setattr(torch_kernel, "_DISTANCE_CELLS", 7 * 13)
    blocks = engine.fit(X, 7, seed=3)
    np.testing.assert_array_equal(whole.labels, blocks.labels)
    assert blocks.inertia == pytest.approx(whole.inertia, rel=1e-12)


def test_the_device_setting_chooses_the_engine() -> None:
    assert isinstance(make_kernel("cpu"), CpuKernel)
    with pytest.raises(InputError, match="abacus"):
        make_kernel("abacus")
