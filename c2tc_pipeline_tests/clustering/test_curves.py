"""Measured curves against k-means on all rows, and the cache that keeps them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from c2tc_pipeline.clustering.class_kmeans import ClassKMeans
from c2tc_pipeline.clustering.loss_curves import CurveSettings, LossCurve, measure_curve, measure_curves
from c2tc_pipeline.clustering.kernels import Engine, make_kernel
from c2tc_pipeline.storage.artefact import MANIFEST_NAME
from c2tc_pipeline.storage.cache import CacheLookup, ContentCache
from c2tc_pipeline_tests.clustering.mixtures import ENGINES, distinct_rows, few_values, mixture, name_of

CPU = make_kernel("cpu")
SAMPLING = CurveSettings(rows_least=300)
LARGEST = 40


@settings(deadline=None, max_examples=40)
@given(X=few_values, data=st.data(), seed=st.integers(0, 2**40))
def test_a_curve_of_all_rows_never_rises_and_ends_at_zero(X: np.ndarray, data: st.DataObject, seed: int) -> None:
    largest = data.draw(st.integers(1, len(X)))
    curve = measure_curve(ClassKMeans(X, CPU), largest, seed=seed).curve
    assert curve.sampled_rows == curve.rows == len(X)
    assert curve.distinct == distinct_rows(X)
    assert curve.grid[0] == 1
    assert curve.grid[-1] == min(largest, curve.distinct)
    assert (np.diff(curve.grid) > 0).all()
    assert (np.diff(curve.wcss) <= 0).all()
    spread = ((X - X.mean(axis=0, dtype=np.float64)) ** 2).sum()
    assert curve.wcss[0] == pytest.approx(spread, rel=1e-6, abs=1e-9)
    assert not curve.at(np.arange(curve.distinct, len(X) + 1)).any()


@pytest.mark.parametrize("engine", ENGINES, ids=name_of)
@pytest.mark.parametrize("options", [CurveSettings(), SAMPLING], ids=["all rows", "sampled"])
@pytest.mark.parametrize("seed", range(3))
def test_close_to_k_means_on_all_rows_at_the_grid_and_between(
    engine: Engine, options: CurveSettings, seed: int
) -> None:
    # Groups that overlap, as in real tables: sharp ones give the curve a corner that no grid of nine points can follow.
    X = mixture(4_000, spread=0.2, seed=seed)
    rows = ClassKMeans(X, engine)
    curve = measure_curve(rows, LARGEST, settings=options).curve
    assert (curve.sampled_rows < len(X)) == (options is SAMPLING)
    between = [3, 7, 12, 20, 35]
    asked = np.union1d(curve.grid, between)
    exact = [rows.cluster(int(k)).inertia for k in asked]
    np.testing.assert_allclose(curve.at(asked), exact, rtol=0.1)


def test_a_sampled_curve_has_no_bias() -> None:
    X = np.random.default_rng(0).random((6_000, 5), dtype=np.float32)
    rows = ClassKMeans(X, CPU)
    options = dataclasses.replace(SAMPLING, rows_per_cluster=10, points=4)
    curves = [measure_curve(rows, LARGEST, seed=seed, settings=options).curve for seed in range(5)]
    exact = rows.cluster(LARGEST).inertia
    assert np.mean([curve.at(np.array([LARGEST]))[0] for curve in curves]) == pytest.approx(exact, rel=0.04)


@pytest.mark.parametrize("seed", range(5))
def test_a_sampled_curve_never_rises_even_where_clusters_find_nothing(seed: int) -> None:
    # Noise in many columns and a handful of sampled rows: more centres fit the sample and miss everything else.
    X = np.random.default_rng(seed).normal(0.5, 0.1, (400, 60)).astype(np.float32)
    options = CurveSettings(rows_least=10, rows_per_cluster=1)
    curve = measure_curve(ClassKMeans(X, CPU), 10, seed=seed, settings=options).curve
    assert curve.sampled_rows == 10
    assert (np.diff(curve.wcss) <= 0).all()


def test_a_large_class_of_few_distinct_rows_costs_nothing_beyond_them() -> None:
    distinct = mixture(30, columns=20, groups=1, spread=0.2)
    X = distinct[np.random.default_rng(0).integers(30, size=3_000)]
    rows = ClassKMeans(X, CPU)
    curve = measure_curve(rows, 60, settings=CurveSettings(rows_least=400, rows_per_cluster=4)).curve
    assert curve.sampled_rows < len(X)
    assert not curve.at(np.arange(30, 61)).any()
    below = np.array([10, 14, 18])
    np.testing.assert_allclose(curve.at(below), [rows.cluster(int(k)).inertia for k in below], rtol=0.25)


def test_the_settings_bound_the_grid() -> None:
    curve = measure_curve(ClassKMeans(mixture(300), CPU), 200, settings=CurveSettings(largest=50, points=4)).curve
    assert curve.grid.tolist() == [1, 4, 14, 50]


def test_a_start_is_the_first_of_the_seeds_which_are_rows() -> None:
    X = mixture(300)
    measured = measure_curve(ClassKMeans(X, CPU), 50, settings=CurveSettings(points=3))
    assert [len(measured.start_for(k)) for k in (1, 6, 7, 49, 50, 300)] == [1, 6, 7, 49, 50, 50]
    rows = {row.tobytes() for row in X}
    assert len({seed.tobytes() for seed in measured.seeds} & rows) == 50
    assert measured.start_for(7).tobytes() == measured.start_for(50)[:7].tobytes()


@pytest.mark.parametrize("seed", range(3))
def test_as_good_as_cold_k_means_on_rows_without_groups(seed: int) -> None:
    # Heavy tails in many columns: a centre on a far row keeps it alone, so that a start among outliers stays poor.
    X = np.random.default_rng(seed).standard_t(8, (3_000, 40)).astype(np.float32)
    rows = ClassKMeans(X, CPU)
    measured = measure_curve(rows, 100, seed=seed)
    cold = KMeans(100, n_init=1, max_iter=100, random_state=seed).fit(X).inertia_
    assert measured.curve.at(np.array([100]))[0] <= 1.01 * cold
    assert rows.cluster(100, init=measured.start_for(100), seed=seed).inertia <= 1.002 * cold


def classes_of(*seeds: int) -> list[ClassKMeans]:
    return [ClassKMeans(mixture(400, seed=seed), CPU) for seed in seeds]


def measure(cache: ContentCache | None, **changes: Any) -> CacheLookup[list[LossCurve]]:
    arguments: dict[str, Any] = {"classes": classes_of(0, 1), "largest": [20, 10], "seed": 5}
    arguments |= {"settings": CurveSettings(rows_least=100, points=4)} | changes
    return measure_curves(arguments.pop("classes"), arguments.pop("largest"), cache=cache, **arguments)


def fingerprint(curves: list[LossCurve]) -> list[Any]:
    return [
        (
            m.curve.to_dict(),
            m.curve.wcss.tobytes(),
            m.curve.grid.tobytes(),
            m.seeds.tobytes(),
            m.seeds.dtype,
        )
        for m in curves
    ]


def test_a_second_call_hits_and_is_equal_to_the_bit(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path)
    fresh, again, uncached = measure(cache), measure(cache), measure(None)
    assert (fresh.hit, again.hit, uncached.hit) == (False, True, False)
    assert fingerprint(fresh.value) == fingerprint(again.value) == fingerprint(uncached.value)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 6},
        {"largest": [20, 11]},
        {"classes": classes_of(0, 2)},
        {"classes": classes_of(1, 0)},
        {"settings": CurveSettings(rows_least=100, points=5)},
        {"settings": CurveSettings(rows_least=100, points=4, tol=1e-2)},
        {"settings": CurveSettings(rows_least=100, points=4, relocate=1)},
    ],
    ids=["seed", "largest", "rows", "order", "points", "tol", "relocate"],
)
def test_anything_that_matters_misses(tmp_path: Path, change: dict[str, Any]) -> None:
    cache = ContentCache(tmp_path)
    measure(cache)
    changed = measure(cache, **change)
    assert not changed.hit
    assert fingerprint(changed.value) == fingerprint(measure(None, **change).value)


def test_a_single_changed_cell_misses(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path)
    X = mixture(50)
    measure_curves([ClassKMeans(X, CPU)], [5], cache=cache)
    X[-1, -1] = np.nextafter(X[-1, -1], np.float32(2))
    assert not measure_curves([ClassKMeans(X, CPU)], [5], cache=cache).hit


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def garble(path: Path) -> None:
    path.write_text("{}")


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("damage", [flip, truncate, garble, remove])
@pytest.mark.parametrize("name", ["curves.json", "seeds.npz", MANIFEST_NAME])
def test_a_damaged_entry_is_measured_again(tmp_path: Path, name: str, damage: Callable[[Path], None]) -> None:
    cache = ContentCache(tmp_path)
    fresh = measure(cache)
    (path,) = tmp_path.rglob(name)
    damage(path)
    repaired = measure(cache)
    assert (repaired.hit, repaired.damaged) == (False, True)
    assert fingerprint(repaired.value) == fingerprint(fresh.value)
    assert measure(cache).hit


def test_progress_counts_the_classes() -> None:
    seen: list[tuple[int, int]] = []
    measure_curves(classes_of(0, 1), [5, 5], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]


def test_another_seed_gives_another_curve() -> None:
    one, other = measure(None, seed=1), measure(None, seed=2)
    assert fingerprint(one.value) != fingerprint(other.value)
