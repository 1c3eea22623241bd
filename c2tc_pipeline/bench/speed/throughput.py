"""Part ``throughput``: a step of the clustering against a plain matrix product of the same shape.

Steps are those of a descent, one after the other from the third on: the same step again and again would move no row,
and what rows on the move cost would not show. Every row is compared with every centre, as in the product. Where a
descent would look at near centres only, a second row tells how long such a step takes; it leaves out most of the
product's work, so that its throughput says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from c2tc_pipeline.bench.experiments.grid import Shape
from c2tc_pipeline.bench.experiments.scaling import made_rows
from c2tc_pipeline.bench.speed.bench import Bench, Timed, beside
from c2tc_pipeline.bench.speed.row import SpeedRow
from c2tc_pipeline.clustering.kernels import CpuKernel


@dataclass(frozen=True)
class StepShape:
    """A clustering step: so many rows and columns, so many clusters.

    Parameters
    ----------
    columns, clusters : int
        Sizes.
    rows : int
        Made rows.
    least_share : float or None
        Which share of the matrix product's throughput it should reach.
    """

    columns: int
    clusters: int
    rows: int = 100_000
    least_share: float | None = None


STEPS = (StepShape(136, 500, least_share=0.6), StepShape(54, 200), StepShape(8, 150))
"""Steps of Microsoft's, Covertype's and Electricity's width."""


def measure_throughput(bench: Bench, *, steps: Sequence[StepShape] = STEPS) -> Iterator[SpeedRow]:
    """Time one Lloyd step on the CPU, and the product of the rows and the centres.

    Parameters
    ----------
    bench : Bench
        Measures.
    steps : sequence of StepShape
        What to measure.
    """
    for step in steps:
        X, _ = made_rows(Shape(rows=step.rows, columns=step.columns, classes=(0.5, 0.5)), seed=0)
        yield _measure_full_step(step, X, bench)
        if CpuKernel().uses_neighbours(step.rows, step.clusters):
            yield _measure_near_step(step, X, bench)


class _FullSteps(CpuKernel):
    """A kernel that compares every row with every centre, however many there are."""

    def uses_neighbours(self, rows: int, k: int) -> bool:
        return False


def _measure_full_step(step: StepShape, X: np.ndarray, bench: Bench) -> SpeedRow:
    ours, plain = _time_steps(_FullSteps(), step, X, bench)
    work = 2e-9 * step.rows * step.columns * step.clusters
    share = plain.seconds / ours.seconds
    return SpeedRow(
        part="throughput",
        what=f"Lloyd step, {_shape(step)}",
        **beside("a plain matrix product", plain, ours.columns()),
        amount=work / ours.seconds,
        reference_amount=work / plain.seconds,
        unit="GFLOP/s",
        aim="" if step.least_share is None else f"{100 * step.least_share:g} % of the product",
        holds=None if step.least_share is None else share >= step.least_share,
        note=f"{100 * share:.0f} % of the product's",
    )


def _measure_near_step(step: StepShape, X: np.ndarray, bench: Bench) -> SpeedRow:
    ours, plain = _time_steps(CpuKernel(), step, X, bench)
    return SpeedRow(
        part="throughput",
        what=f"Lloyd step among near centres, {_shape(step)}",
        **beside("a plain matrix product of all rows and centres", plain, ours.columns()),
        note="most of the product is left out",
    )


def _time_steps(kernel: CpuKernel, step: StepShape, X: np.ndarray, bench: Bench) -> tuple[Timed[None], Timed[Any]]:
    """Time the steps of a descent, and the product of the rows and the centres."""
    centers = X[np.random.default_rng(0).choice(len(X), step.clusters, replace=False)]
    product = np.empty((step.rows, step.clusters), dtype=np.float32)
    rows = kernel.load(X, None)

    def go_on() -> None:
        nonlocal centers
        centers, _ = kernel.update(rows, centers)

    # The first calls wake threads and touch memory for the first time.
    for _ in range(2):
        go_on()
    np.matmul(X, centers.T, out=product)
    ours = bench.time(go_on)
    return ours, bench.time(lambda: np.matmul(X, centers.T, out=product))


def _shape(step: StepShape) -> str:
    return f"{step.columns} columns, {step.clusters} clusters, {step.rows:,} made rows"
