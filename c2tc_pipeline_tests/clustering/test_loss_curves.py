"""Loss curves: interpolation, measurement against k-means on all rows, and the cache."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from c2tc_pipeline.clustering.class_kmeans import ClassKMeans
from c2tc_pipeline.clustering.kernels import Kernel
from c2tc_pipeline.clustering.loss_curves import CurveSettings, LossCurve, measure_curve, measure_curves
from c2tc_pipeline.storage.cache import CacheLookup, ContentCache
from c2tc_pipeline_tests.clustering.mixtures import CPU, each_kernel, few_values, mixture

SAMPLING = CurveSettings(min_rows=300)
LARGEST = 40


@st.composite
def curves(draw: st.DrawFn) -> LossCurve:
    grid = np.array([1, *sorted(draw(st.sets(st.integers(2, 200), max_size=8)))])
    falls = draw(st.lists(st.floats(0.05, 1), min_size=len(grid), max_size=len(grid)))
    wcss = draw(st.floats(1e-3, 1e6)) * np.cumprod(falls)
    wcss[draw(st.integers(0, len(grid))) :] = 0.0
    distinct = int(grid[-1]) + draw(st.integers(0, 50))
    sampled = distinct + draw(st.integers(0, 50))
    return LossCurve(sampled + draw(st.integers(0, 100)), distinct, grid, wcss, sampled)


@given(curves())
def test_a_curve_is_exact_at_the_grid_and_never_rises(curve: LossCurve) -> None:
    expected = curve.wcss.copy()
    if curve.sampled_rows == curve.rows:
        expected[curve.grid >= curve.distinct] = 0
    expected[curve.grid >= curve.rows] = 0
    np.testing.assert_allclose(curve.at(curve.grid), expected, rtol=1e-9, atol=0)
    losses = curve.at(np.arange(1, curve.rows + 10))
    assert (np.diff(losses) <= 1e-12 * losses[:-1]).all()
    assert ((losses >= 0) & np.isfinite(losses)).all()
    assert not losses[curve.rows - 1 :].any()
    whole = dataclasses.replace(curve, sampled_rows=curve.rows)
    assert not whole.at(np.arange(curve.distinct, curve.rows + 1)).any()


@pytest.mark.parametrize(
    ("curve", "losses"),
    [
        ((10_000, 64, [1, 8, 64], [64, 8, 1], 100), {64: 1, 128: 1 / 2, 9_999: 64 / 9_999}),
        ((10_000, 10_000, [1, 10, 100], [1e3, 100, 1], 10_000), {3: 1e3 / 3, 200: 1 / 4}),
        ((100, 100, [1, 2, 4], [3, 2, 2], 100), {5: 2, 99: 2}),
        ((9, 1, [1], [0], 9), {1: 0, 9: 0}),
    ],
    ids=["sampled", "last slope", "flat end", "equal rows"],
)
def test_beyond_the_grid(curve: Any, losses: dict[int, float]) -> None:
    rows, distinct, grid, wcss, sampled = curve
    found = LossCurve(rows, distinct, np.array(grid), np.array(wcss, dtype=float), sampled).at(np.array([*losses]))
    np.testing.assert_allclose(found, [*losses.values()])


@given(curves())
def test_json_keeps_every_bit(curve: LossCurve) -> None:
    back = LossCurve.from_dict(json.loads(json.dumps(curve.to_dict())))
    assert back.to_dict() == curve.to_dict()
    assert back.wcss.tobytes() == curve.wcss.tobytes()
    assert back.start_for(3) is None
    # Values that are no curve are refused.
    for change in ({"rows": 0}, {"grid": [2, 3]}, {"grid": [1, 1]}, {"wcss": [1.0]}, {"wcss": [1.0, -1.0]}):
        values = {"rows": 9, "distinct": 9, "grid": [1, 2], "wcss": [2.0, 1.0], "sampled_rows": 9}
        with pytest.raises(ValueError, match="curve"):
            LossCurve.from_dict({**values, **change})
        with pytest.raises(ValueError, match="seed"):
            LossCurve.from_dict(values, np.zeros((3, 1)))


@given(X=few_values, data=st.data(), seed=st.integers(0, 2**40))
def test_a_curve_of_all_rows_never_rises_and_ends_at_zero(X: np.ndarray, data: st.DataObject, seed: int) -> None:
    largest = data.draw(st.integers(1, len(X)))
    curve = measure_curve(ClassKMeans(X, CPU), largest, seed=seed)
    assert curve.sampled_rows == curve.rows == len(X)
    assert curve.distinct == len({tuple(row) for row in X.tolist()})
    assert (curve.grid[0], curve.grid[-1]) == (1, min(largest, curve.distinct))
    assert (np.diff(curve.grid) > 0).all()
    assert (np.diff(curve.wcss) <= 0).all()
    spread = ((X - X.mean(axis=0, dtype=np.float64)) ** 2).sum()
    assert curve.wcss[0] == pytest.approx(spread, rel=1e-6, abs=1e-9)
    assert not curve.at(np.arange(curve.distinct, len(X) + 1)).any()


@each_kernel
@pytest.mark.parametrize("options", [CurveSettings(), SAMPLING], ids=["all rows", "sampled"])
@pytest.mark.parametrize("seed", range(2))
def test_close_to_k_means_on_all_rows(kernel: Kernel, options: CurveSettings, seed: int) -> None:
    # Groups that overlap, as in real tables: sharp ones give the curve a corner that no grid of nine points can follow.
    X = mixture(4_000, spread=0.2, seed=seed)
    rows = ClassKMeans(X, kernel)
    curve = measure_curve(rows, LARGEST, settings=options)
    assert (curve.sampled_rows < len(X)) == (options is SAMPLING)
    k = np.union1d(curve.grid, [3, 7, 12, 20, 35])
    np.testing.assert_allclose(curve.at(k), [rows.cluster(int(number)).inertia for number in k], rtol=0.1)


def test_a_sampled_curve_has_no_bias() -> None:
    rows = ClassKMeans(np.random.default_rng(0).random((6_000, 5), dtype=np.float32), CPU)
    options = dataclasses.replace(SAMPLING, rows_per_cluster=10, points=4)
    found = [measure_curve(rows, LARGEST, seed=seed, settings=options).at(np.array([LARGEST]))[0] for seed in range(5)]
    assert np.mean(found) == pytest.approx(rows.cluster(LARGEST).inertia, rel=0.04)


def test_a_large_class_of_few_distinct_rows_costs_nothing_beyond_them() -> None:
    distinct = mixture(30, columns=20, groups=1, spread=0.2)
    rows = ClassKMeans(distinct[np.random.default_rng(0).integers(30, size=3_000)], CPU)
    curve = measure_curve(rows, 60, settings=CurveSettings(min_rows=400, rows_per_cluster=4))
    assert curve.sampled_rows < 3_000
    assert not curve.at(np.arange(30, 61)).any()
    below = np.array([10, 14, 18])
    np.testing.assert_allclose(curve.at(below), [rows.cluster(int(k)).inertia for k in below], rtol=0.25)


def test_seeds_are_rows_and_the_first_of_them_start_fewer_clusters() -> None:
    X = mixture(300)
    curve = measure_curve(ClassKMeans(X, CPU), 200, settings=CurveSettings(max_clusters=50, points=4))
    assert curve.grid.tolist() == [1, 4, 14, 50]
    starts = [curve.start_for(k) for k in (1, 7, 50, 300)]
    assert [len(start) for start in starts if start is not None] == [1, 7, 50, 50]
    assert curve.seeds is not None
    assert len({seed.tobytes() for seed in curve.seeds} & {row.tobytes() for row in X}) == 50


@pytest.mark.parametrize("seed", range(2))
def test_as_good_as_cold_k_means_on_rows_without_groups(seed: int) -> None:
    # Heavy tails in many columns: a centre on a far row keeps it alone, so that a start among outliers stays poor.
    X = np.random.default_rng(seed).standard_t(8, (3_000, 40)).astype(np.float32)
    rows = ClassKMeans(X, CPU)
    curve = measure_curve(rows, 100, seed=seed)
    cold = KMeans(100, n_init=1, max_iter=100, random_state=seed).fit(X).inertia_
    assert curve.at(np.array([100]))[0] <= 1.01 * cold
    assert rows.cluster(100, init=curve.start_for(100), seed=seed).inertia <= 1.002 * cold


def classes_of(*seeds: int) -> list[ClassKMeans]:
    return [ClassKMeans(mixture(400, seed=seed), CPU) for seed in seeds]


def measure(cache: ContentCache | None, **changes: Any) -> CacheLookup[list[LossCurve]]:
    arguments: dict[str, Any] = {"classes": classes_of(0, 1), "largest": [20, 10], "seed": 5}
    arguments |= {"settings": CurveSettings(min_rows=100, points=4)} | changes
    return measure_curves(arguments.pop("classes"), arguments.pop("largest"), cache=cache, **arguments)


def fingerprint(found: CacheLookup[list[LossCurve]]) -> list[Any]:
    return [
        (curve.to_dict(), curve.wcss.tobytes(), curve.seeds.tobytes(), curve.seeds.dtype)
        for curve in found.value
        if curve.seeds is not None
    ]


def test_a_second_call_hits_and_is_equal_to_the_bit(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path)
    ticks: list[tuple[int, int]] = []
    fresh = measure(cache, progress=lambda done, total: ticks.append((done, total)))
    again, uncached = measure(cache), measure(None)
    assert (fresh.hit, again.hit, uncached.hit) == (False, True, False)
    assert fingerprint(fresh) == fingerprint(again) == fingerprint(uncached)
    assert ticks == [(1, 2), (2, 2)]


CELL = mixture(400, seed=1)
CELL[-1, -1] = np.nextafter(CELL[-1, -1], np.float32(2))
CHANGES: list[dict[str, Any]] = [{"seed": 6}, {"largest": [20, 11]}, {"classes": classes_of(1, 0)}]
CHANGES += [{"classes": [*classes_of(0), ClassKMeans(CELL, CPU)]}]
CHANGES += [
    {"settings": CurveSettings(**{"min_rows": 100, "points": 4} | one)} for one in ({"points": 5}, {"relocate": 1})
]
CHANGES += [{"settings": CurveSettings(min_rows=100, points=4, tol=1e-2)}]


@pytest.mark.parametrize("change", CHANGES, ids=["seed", "largest", "order", "cell", "points", "relocate", "tol"])
def test_anything_that_matters_misses(tmp_path: Path, change: dict[str, Any]) -> None:
    cache = ContentCache(tmp_path)
    measure(cache)
    changed = measure(cache, **change)
    assert not changed.hit
    assert fingerprint(changed) == fingerprint(measure(None, **change))
