"""A class in k clusters: the smallest classes, equal rows, merged rows, and starts on a sample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.clustering import class_rows
from c2tc_pipeline.clustering.class_kmeans import ClassKMeans
from c2tc_pipeline.clustering.kernels import Engine, make_kernel
from c2tc_pipeline_tests.clustering.mixtures import (
    ENGINES,
    assert_true_partition,
    distinct_rows,
    few_values,
    mixture,
    name_of,
)

each_engine = pytest.mark.parametrize("engine", ENGINES, ids=name_of)
merging = pytest.mark.parametrize("merge_below", [0.0, 0.7, 2.0], ids=["never", "default", "always"])


@each_engine
@merging
@settings(deadline=None, max_examples=30)
@given(X=few_values, data=st.data(), seed=st.integers(0, 2**40))
def test_every_number_of_clusters_gives_a_true_partition(
    engine: Engine, merge_below: float, X: np.ndarray, data: st.DataObject, seed: int
) -> None:
    k = data.draw(st.integers(1, len(X)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_rows, "_MERGE_BELOW", merge_below)
        rows = ClassKMeans(X, engine)
        result = rows.cluster(k, seed=seed, relocate=data.draw(st.sampled_from([0, 2])))
    assert rows.distinct == distinct_rows(X)
    assert_true_partition(result, X, k)
    assert (result.inertia == 0) == (k >= rows.distinct)
    assert result.labels.dtype == np.int32


@merging
@pytest.mark.parametrize(
    ("X", "k"),
    [
        pytest.param([[0.3, 0.4]], 1, id="one row"),
        pytest.param([[0.3, 0.4], [0.1, 0.2]], 1, id="two rows, one cluster"),
        pytest.param([[0.3, 0.4], [0.1, 0.2]], 2, id="two rows, two clusters"),
        pytest.param([[0.3, 0.4]] * 2, 2, id="two equal rows"),
        pytest.param([[0.3, 0.4]] * 7, 1, id="all equal, one cluster"),
        pytest.param([[0.3, 0.4]] * 7, 3, id="all equal, some clusters"),
        pytest.param([[0.3, 0.4]] * 7, 7, id="all equal, every row alone"),
    ],
)
def test_the_smallest_classes(
    merge_below: float, X: list[list[float]], k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_rows, "_MERGE_BELOW", merge_below)
    rows = np.array(X, dtype=np.float32)
    assert_true_partition(ClassKMeans(rows, make_kernel("cpu")).cluster(k), rows, k)


@pytest.mark.parametrize("k", [-1, 0, 6])
def test_an_impossible_number_of_clusters_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match=f"5 rows cannot be cut into {k} clusters"):
        ClassKMeans(mixture(5), make_kernel("cpu")).cluster(k)


@given(copies=st.lists(st.integers(1, 12), min_size=1, max_size=6), data=st.data())
@settings(deadline=None)
def test_surplus_clusters_cut_the_largest_groups_evenly(copies: list[int], data: st.DataObject) -> None:
    X = np.repeat(np.arange(len(copies), dtype=np.float32)[:, None], copies, axis=0)
    k = data.draw(st.integers(len(copies), len(X)))
    result = ClassKMeans(X, make_kernel("cpu")).cluster(k)
    pieces = [result.counts[result.centers[:, 0] == value] for value in range(len(copies))]
    for parts in pieces:
        assert max(parts) - min(parts) <= 1
    # No group could give a piece to another one and leave the larger of the two cut finer.
    for rich in pieces:
        for poor in pieces:
            if len(rich) > 1:
                assert poor.sum() / len(poor) <= rich.sum() / (len(rich) - 1)


@each_engine
@pytest.mark.parametrize("seed", range(4))
def test_merging_does_not_change_the_partition(engine: Engine, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    distinct = mixture(80, seed=seed, dtype=np.float64)
    X = np.concatenate([distinct, distinct[rng.integers(80, size=300)]])
    results = []
    for merge_below in (0.0, 0.7):
        monkeypatch.setattr(class_rows, "_MERGE_BELOW", merge_below)
        results.append(ClassKMeans(X, engine).cluster(9, init=distinct[:9], relocate=0, tol=0))
    plain, merged = results
    np.testing.assert_array_equal(plain.labels, merged.labels)
    np.testing.assert_array_equal(plain.counts, merged.counts)
    np.testing.assert_allclose(plain.centers, merged.centers, atol=1e-12)
    assert merged.inertia == pytest.approx(plain.inertia, rel=1e-9)


@each_engine
def test_merged_rows_stay_together(engine: Engine) -> None:
    X = np.repeat(mixture(60), 5, axis=0)
    result = ClassKMeans(X, engine).cluster(25)
    assert (result.labels.reshape(60, 5) == result.labels.reshape(60, 5)[:, :1]).all()
    assert_true_partition(result, X, 25)


@pytest.mark.parametrize("copies", [1, 3], ids=["distinct", "merged"])
def test_a_start_on_a_sample_is_nearly_as_good(copies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.repeat(mixture(3_000), copies, axis=0)
    rows = ClassKMeans(X, make_kernel("cpu"))
    whole, start = rows.cluster(15), rows.start(15)
    monkeypatch.setattr(class_rows, "_START_ROWS_LEAST", 100)
    sampled, sampled_start = rows.cluster(15), rows.start(15)
    assert start is not None
    assert sampled_start is not None
    assert_true_partition(sampled, X, 15)
    # Both may end in the same clusters; they do not begin with the same centres.
    assert sampled_start.tobytes() != start.tobytes()
    assert sampled.inertia < 1.1 * whole.inertia


@each_engine
def test_relocation_pays(engine: Engine) -> None:
    X = mixture(1_500, groups=60)
    rows = ClassKMeans(X, engine)
    plain = [rows.cluster(60, seed=seed, relocate=0).inertia for seed in range(3)]
    relocated = [rows.cluster(60, seed=seed).inertia for seed in range(3)]
    assert np.mean(relocated) < np.mean(plain)


@each_engine
def test_the_same_seed_gives_the_same_bytes(engine: Engine) -> None:
    rows = ClassKMeans(mixture(500), engine)
    one, again, other = (rows.cluster(20, seed=seed) for seed in (3, 3, 4))
    assert one.centers.tobytes() == again.centers.tobytes()
    assert one.centers.tobytes() != other.centers.tobytes()
    spawned = [rows.cluster(20, seed=np.random.SeedSequence([3, 1])).centers.tobytes() for _ in range(2)]
    assert spawned[0] == spawned[1]


def test_the_rows_are_not_changed() -> None:
    X = np.repeat(mixture(50), 3, axis=0)
    before = X.copy()
    X.flags.writeable = False
    ClassKMeans(X, make_kernel("cpu")).cluster(10)
    np.testing.assert_array_equal(X, before)


def test_cheap_steps_go_on_for_smaller_gains(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ClassKMeans(np.random.default_rng(0).random((2_000, 6), dtype=np.float32), make_kernel("cpu"))
    cheap = rows.cluster(40, relocate=0)
    monkeypatch.setattr(class_rows, "_DEAR_STEP", 1)
    dear = rows.cluster(40, relocate=0)
    assert cheap.iterations > dear.iterations
    assert cheap.inertia < dear.inertia
    # Asked for a tolerance, it is that one whatever a step costs.
    assert rows.cluster(40, relocate=0, tol=1e-3).inertia == dear.inertia


def test_the_tolerance_grows_with_the_cost_of_a_step_between_its_limits() -> None:
    sizes = [(10, 2, 1), (10_000, 50, 100), (10_000, 50, 1_000), (1_000_000, 50, 1_000)]
    tolerances = [class_rows.settled_tolerance(*size) for size in sizes]
    assert tolerances == pytest.approx([1e-5, 2.5e-5, 2.5e-4, 1e-3])
