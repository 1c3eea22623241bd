"""Loss curves: WCSS of a class at a few numbers of clusters, started from the beginnings of one list of seeds.

The curve is what the allocators read. It is measured on a geometric grid, on a sample when the class is large, and
stored under the hash of the rows and settings that determine it.

Seeds are rows in the order in which k-means++ drew them, so that the first k of them are its start for k clusters: one
seeding serves every point of the grid and the final clustering. Going on from the settled centres of fewer clusters
looks cheaper still and is not the same: means lie nearer to all rows than a single row does, so that where a class has
no groups an added row keeps nobody but itself. A third of the clusters of Jannis ended with one or two rows that way,
at 3 % more loss.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from c2tc_pipeline.clustering import CURVE_VERSION
from c2tc_pipeline.clustering.blocks import Block
from c2tc_pipeline.clustering.class_rows import ClassRows
from c2tc_pipeline.clustering.curve import ClassCurve
from c2tc_pipeline.clustering.engine import Engine
from c2tc_pipeline.clustering.partition import own_gaps
from c2tc_pipeline.clustering.row_source import HeldRows, RowSource
from c2tc_pipeline.storage.cache import CacheLookup, ContentCache
from c2tc_pipeline.storage.hashing import hash_json
from c2tc_pipeline.storage.parquet import open_arrays

# Part of every cache key: raise it when the numbers that this file produces change.


@dataclass(frozen=True)
class CurveSettings:
    """How carefully curves are measured.

    Parameters
    ----------
    points : int
        Grid points between 1 and the largest number of clusters.
    rows_per_cluster : int
        Sampled rows for each cluster of the largest grid point.
    largest : int
        The largest number of clusters measured; beyond it the curve goes on at its last slope, which in log-log hardly
        changes.
    rows_least : int
        Classes up to this size are measured on all their rows.
    tol, max_iter, relocate : float, int, int
        Passed to :meth:`ClassRows.cluster` for every grid point.
    """

    points: int = 9
    rows_per_cluster: int = 16
    largest: int = 512
    rows_least: int = 8_000
    tol: float = 3e-4
    max_iter: int = 30
    relocate: int = 0

    def key(self) -> list[float]:
        """Return the settings as a JSON value for cache keys."""
        return [CURVE_VERSION, *dataclasses.astuple(self)]


@dataclass(frozen=True)
class MeasuredCurve:
    """A curve and the seeds that it was measured from, from which the final clustering can start, too.

    Parameters
    ----------
    curve : ClassCurve
        The losses.
    seeds : ndarray of shape (largest k of the grid, d)
        Rows in the order in which k-means++ drew them.
    """

    curve: ClassCurve
    seeds: np.ndarray

    def start_for(self, k: int) -> np.ndarray:
        """Return the seeds of ``k`` clusters; fewer where that many were never measured."""
        return self.seeds[:k]


def measure_curve(
    rows: ClassRows, largest: int, *, seed: int | np.random.SeedSequence = 0, settings: CurveSettings | None = None
) -> MeasuredCurve:
    """Measure WCSS(k) of one class on a geometric grid from 1 to ``largest``.

    On a sample, the loss of the sample itself is too low and that of fresh rows too high, by nearly the same share: the
    centres follow the rows they were fitted to. The mean of both estimates the loss of all rows.

    Parameters
    ----------
    rows : ClassRows
        The class.
    largest : int
        The largest number of clusters of interest, at most the number of rows.
    seed : int or SeedSequence
        Determines the sample and the starts.
    settings : CurveSettings, optional
        How carefully to measure.

    Examples
    --------
    >>> from c2tc_pipeline.clustering.engine import make_engine
    >>> X = np.random.default_rng(0).random((500, 3), dtype=np.float32)
    >>> measured = measure_curve(ClassRows(X, make_engine("cpu")), 50)
    >>> bool((np.diff(measured.curve.wcss) <= 0).all())
    True
    """
    settings = settings or CurveSettings()
    n = len(rows)
    rng = np.random.default_rng(seed)
    largest = min(largest, settings.largest)
    size = max(settings.rows_least, settings.rows_per_cluster * largest)
    fitted: RowSource = rows.source
    fresh: RowSource | None = None
    if 2 * size < n:
        picked = rng.choice(n, size=2 * size, replace=False)
        fitted, fresh = (HeldRows(rows.source.take(np.sort(half))) for half in (picked[:size], picked[size:]))
    blocks = [Block(part) for part in (fitted, fresh) if part is not None]
    return rows.executor.call(
        _measure, rows.engine.alone(), n, largest, rng, settings, *blocks, device=rows.engine.device
    )


def _measure(
    engine: Engine,
    n: int,
    largest: int,
    rng: np.random.Generator,
    settings: CurveSettings,
    fitted_block: Block,
    fresh_block: Block | None = None,
) -> MeasuredCurve:
    """Measure the curve of ``n`` rows on some of them, and on others if there are any."""
    fitted = ClassRows(fitted_block.open().X, engine)
    fresh = None if fresh_block is None else fresh_block.open().X
    grid = _grid(min(largest, fitted.distinct), settings.points)
    losses = []
    seeds = fitted.seeds(int(grid[-1]), rng)
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
            per_row = (per_row + _loss_around(fresh, result.centers, engine)) / 2
        losses.append(per_row * n)
    wcss = np.minimum.accumulate(np.asarray(losses))
    return MeasuredCurve(ClassCurve(n, fitted.distinct, grid, wcss, len(fitted)), seeds)


def measure_curves(
    classes: Sequence[ClassRows],
    largest: Sequence[int],
    *,
    seed: int = 0,
    settings: CurveSettings | None = None,
    cache: ContentCache | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CacheLookup[list[MeasuredCurve]]:
    """Measure the curves of all classes, or fetch them from a cache.

    Parameters
    ----------
    classes : sequence of ClassRows
        The classes, in order.
    largest : sequence of int
        The largest number of clusters to measure for each.
    seed : int
        Determines samples and starts.
    settings : CurveSettings, optional
        How carefully to measure.
    cache : ContentCache, optional
        Where curves are kept between runs.
    progress : callable, optional
        Called with (classes done, classes in all).
    """
    settings = settings or CurveSettings()

    def compute() -> list[MeasuredCurve]:
        calls = [
            partial(measure_curve, rows, k, seed=np.random.SeedSequence([seed, index]), settings=settings)
            for index, (rows, k) in enumerate(zip(classes, largest, strict=True))
        ]
        return classes[0].executor.together(calls, progress, light=True) if calls else []

    if cache is None:
        return CacheLookup(compute(), hit=False)
    engines = sorted({type(rows.engine).__name__ for rows in classes})
    key = hash_json(
        [settings.key(), engines, seed, list(map(int, largest)), [rows.source.digest() for rows in classes]]
    )
    return cache.fetch("loss-curves", key, compute=compute, write=write_curves, read=read_curves)


def _grid(largest: int, points: int) -> np.ndarray:
    return np.unique(np.round(np.geomspace(1, largest, points)).astype(np.int64))


def _loss_around(X: np.ndarray, centers: np.ndarray, engine: Engine) -> float:
    """Return the mean squared distance of fresh rows to their nearest centre."""
    labels = engine.assign(engine.load(X, None), centers)
    return float(own_gaps(X, labels, centers).mean())


def write_curves(curves: list[MeasuredCurve], directory: Path) -> None:
    """Write measured curves with their seeds into an existing directory."""
    text = json.dumps([measured.curve.to_dict() for measured in curves])
    (directory / "curves.json").write_text(text, encoding="utf-8")
    arrays = {str(index): measured.seeds for index, measured in enumerate(curves)}
    np.savez(directory / "seeds.npz", allow_pickle=False, **arrays)


def read_curves(directory: Path) -> list[MeasuredCurve]:
    """Read what :func:`write_curves` wrote."""
    curves = [ClassCurve.from_dict(v) for v in json.loads((directory / "curves.json").read_text(encoding="utf-8"))]
    with open_arrays(directory / "seeds.npz") as arrays:
        measured = [MeasuredCurve(curve, arrays[str(index)]) for index, curve in enumerate(curves)]
    if any(found.seeds.ndim != 2 or len(found.seeds) != found.curve.grid[-1] for found in measured):
        raise ValueError("The seeds do not fit their curve.")
    return measured
