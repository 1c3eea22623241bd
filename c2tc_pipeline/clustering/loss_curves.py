"""Loss curves: the within-cluster sum of squares (WCSS) of a class against the number of clusters, measured and cached.

A curve is measured on a geometric grid, on a sample of a large class. Seeds are rows in the order in which k-means++
drew them: the first k of them start k clusters, at every point of the grid and in the final clustering. Continuing from
the centres of fewer clusters instead left a third of the clusters of Jannis with one or two rows, at 3 % more loss.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from c2tc_pipeline.clustering import CURVE_VERSION
from c2tc_pipeline.clustering.class_kmeans import ClassKMeans, Seed
from c2tc_pipeline.clustering.kernels import Kernel
from c2tc_pipeline.clustering.rows import RowBlock, RowSource
from c2tc_pipeline.clustering.sums import own_distances
from c2tc_pipeline.storage.cache import CacheLookup, ContentCache
from c2tc_pipeline.storage.manifest import hash_json
from c2tc_pipeline.storage.parquet import open_arrays


@dataclass(frozen=True)
class LossCurve:
    """WCSS(k) of one class: losses of all its ``rows`` at the points of ``grid``, ascending from 1, never rising.

    Measured on ``sampled_rows`` rows, ``distinct`` of them distinct, from k-means++ ``seeds``, which are stored beside
    the curve.

    Examples
    --------
    >>> curve = LossCurve(100, 100, np.array([1, 4, 16]), np.array([80.0, 20.0, 5.0]), 100)
    >>> curve.at(np.array([1, 2, 4, 64, 100])).round(2)
    array([80.  , 40.  , 20.  ,  1.25,  0.  ])
    """

    rows: int
    distinct: int
    grid: np.ndarray
    wcss: np.ndarray
    sampled_rows: int
    seeds: np.ndarray | None = None

    def at(self, k: np.ndarray) -> np.ndarray:
        """Interpolate linearly in log-log, and extrapolate by the last slope."""
        k = np.asarray(k, dtype=np.float64)
        zero = k >= self.rows
        if self.sampled_rows == self.rows:
            zero |= k >= self.distinct
        positive = self.wcss > 0
        if not positive.any():
            return np.zeros_like(k)
        if not positive.all():
            zero |= k >= self.grid[~positive][0]
        log_grid, log_wcss = np.log(self.grid[positive]), np.log(self.wcss[positive])
        logs = np.interp(np.log(k), log_grid, log_wcss)
        beyond = np.log(k) > log_grid[-1]
        if beyond.any() and len(log_grid) > 1:
            slope = min((log_wcss[-1] - log_wcss[-2]) / (log_grid[-1] - log_grid[-2]), 0.0)
            logs[beyond] = log_wcss[-1] + slope * (np.log(k[beyond]) - log_grid[-1])
        return np.where(zero, 0.0, np.exp(logs))

    def start_for(self, k: int) -> np.ndarray | None:
        """Return the seeds of ``k`` clusters, fewer if the grid ends before; None for a curve without seeds."""
        return None if self.seeds is None else self.seeds[:k]

    def to_dict(self) -> dict[str, Any]:
        """Return the curve without its seeds as JSON values."""
        return {
            "rows": self.rows,
            "distinct": self.distinct,
            "grid": [int(k) for k in self.grid],
            "wcss": [float(loss) for loss in self.wcss],
            "sampled_rows": self.sampled_rows,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any], seeds: np.ndarray | None = None) -> LossCurve:
        """Rebuild a curve from :meth:`to_dict`; a ``ValueError`` refuses values that are not a curve."""
        grid, wcss = np.asarray(values["grid"], dtype=np.int64), np.asarray(values["wcss"], dtype=np.float64)
        rows, distinct, sampled = values["rows"], values["distinct"], values["sampled_rows"]
        if not all(type(number) is int and number > 0 for number in (rows, distinct, sampled)):
            raise ValueError("The numbers of rows of a curve must be positive integers.")
        if grid.ndim != 1 or grid.shape != wcss.shape or not len(grid) or grid[0] != 1 or (np.diff(grid) <= 0).any():
            raise ValueError("A curve needs a loss for each point of a grid that ascends from 1.")
        if not (np.isfinite(wcss).all() and (wcss >= 0).all()):
            raise ValueError("The losses of a curve must be finite and not negative.")
        if seeds is not None and (seeds.ndim != 2 or len(seeds) != grid[-1]):
            raise ValueError("A curve needs a seed for each cluster of its last grid point.")
        return cls(rows, distinct, grid, wcss, sampled, seeds)


@dataclass(frozen=True)
class CurveSettings:
    """Precision of measured curves.

    ``points`` grid points up to ``max_clusters``, beyond which the last slope, which hardly changes in log-log, is
    used. Classes of more than ``min_rows`` rows are sampled: ``rows_per_cluster`` of the largest grid point.
    """

    points: int = 9
    rows_per_cluster: int = 16
    max_clusters: int = 512
    min_rows: int = 8_000
    tol: float = 3e-4
    max_iter: int = 30
    relocate: int = 0


def measure_curve(
    rows: ClassKMeans, max_clusters: int, *, seed: Seed = 0, settings: CurveSettings | None = None
) -> LossCurve:
    """Measure WCSS(k) of one class on a geometric grid from 1 to ``max_clusters``.

    The loss of a sample is too low and that of fresh rows too high by nearly the same share, because centres follow the
    rows that they were fitted to; their mean estimates the loss of all rows.
    """
    settings = settings or CurveSettings()
    n = len(rows)
    rng = np.random.default_rng(seed)
    max_clusters = min(max_clusters, settings.max_clusters)
    size = max(settings.min_rows, settings.rows_per_cluster * max_clusters)
    blocks = [RowBlock(rows.source)]
    if 2 * size < n:
        picked = rng.choice(n, size=2 * size, replace=False)
        halves = (np.sort(picked[:size]), np.sort(picked[size:]))
        blocks = [RowBlock(RowSource(rows.source.take(half))) for half in halves]
    kernel = rows.kernel.single_threaded()
    return rows.engine.call(_measure, kernel, n, max_clusters, rng, settings, *blocks, device=rows.kernel.device)


def _measure(
    kernel: Kernel,
    n: int,
    max_clusters: int,
    rng: np.random.Generator,
    settings: CurveSettings,
    sample: RowBlock,
    fresh: RowBlock | None = None,
) -> LossCurve:
    """Measure the curve of ``n`` rows on a sample, and on fresh rows if there are any."""
    fitted = ClassKMeans(sample.rows.read(), kernel)
    last = min(max_clusters, fitted.distinct)
    grid = np.unique(np.round(np.geomspace(1, last, settings.points)).astype(np.int64))
    seeds = fitted.seeds(int(grid[-1]), rng)
    losses = []
    for k in grid:
        result = fitted.cluster(
            int(k),
            init=seeds[:k],
            seed=int(rng.integers(2**62)),
            max_iter=settings.max_iter,
            tol=settings.tol,
            relocate=settings.relocate,
        )
        per_row = result.inertia / len(fitted)
        if fresh is not None:
            X = fresh.rows.read()
            labels = kernel.assign(kernel.load(X, None), result.centers)
            per_row = (per_row + float(own_distances(X, labels, result.centers).mean())) / 2
        losses.append(per_row * n)
    wcss = np.minimum.accumulate(np.asarray(losses))
    return LossCurve(n, fitted.distinct, grid, wcss, len(fitted), seeds)


def measure_curves(
    classes: Sequence[ClassKMeans],
    max_clusters: Sequence[int],
    *,
    seed: int = 0,
    settings: CurveSettings | None = None,
    cache: ContentCache | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CacheLookup[list[LossCurve]]:
    """Measure the curves of all classes, or fetch them from a cache."""
    settings = settings or CurveSettings()

    def compute() -> list[LossCurve]:
        calls = [
            partial(measure_curve, rows, k, seed=np.random.SeedSequence([seed, index]), settings=settings)
            for index, (rows, k) in enumerate(zip(classes, max_clusters, strict=True))
        ]
        return classes[0].engine.together(calls, progress, light=True) if calls else []

    if cache is None:
        return CacheLookup(compute(), hit=False)
    kernels = sorted({type(rows.kernel).__name__ for rows in classes})
    digests = [rows.source.digest() for rows in classes]
    version = [CURVE_VERSION, *dataclasses.astuple(settings)]
    key = hash_json([version, kernels, seed, list(map(int, max_clusters)), digests])
    return cache.fetch("loss-curves", key, compute=compute, write=write_curves, read=read_curves)


def write_curves(curves: list[LossCurve], directory: Path) -> None:
    """Write curves with their seeds into an existing directory."""
    (directory / "curves.json").write_text(json.dumps([curve.to_dict() for curve in curves]), encoding="utf-8")
    arrays: dict[str, Any] = {str(index): curve.seeds for index, curve in enumerate(curves)}
    np.savez(directory / "seeds.npz", allow_pickle=False, **arrays)


def read_curves(directory: Path) -> list[LossCurve]:
    """Read what :func:`write_curves` wrote."""
    stored = json.loads((directory / "curves.json").read_text(encoding="utf-8"))
    with open_arrays(directory / "seeds.npz") as arrays:
        return [LossCurve.from_dict(values, arrays[str(index)]) for index, values in enumerate(stored)]
