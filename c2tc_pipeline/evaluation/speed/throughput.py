"""Part ``throughput``: a step of the clustering against a plain matrix product of the same shape.

Steps are those of a descent, one after the other from the third on: the same step again and again would move no row,
and what rows on the move cost would not show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from c2tc_pipeline.clustering import make_engine
from c2tc_pipeline.evaluation.experiments.grid import Shape
from c2tc_pipeline.evaluation.experiments.scaling import made_rows
from c2tc_pipeline.evaluation.speed.bench import Bench, beside
from c2tc_pipeline.evaluation.speed.row import SpeedRow


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
        yield _measure_step(step, bench)


def _measure_step(step: StepShape, bench: Bench) -> SpeedRow:
    X, _ = made_rows(Shape(rows=step.rows, columns=step.columns, classes=(0.5, 0.5)), seed=0)
    centers = X[np.random.default_rng(0).choice(len(X), step.clusters, replace=False)]
    product = np.empty((step.rows, step.clusters), dtype=np.float32)
    engine = make_engine("cpu")
    rows = engine.load(X, None)

    def go_on() -> None:
        nonlocal centers
        centers, _ = engine.update(rows, centers)

    # The first calls wake threads and touch memory for the first time.
    for _ in range(2):
        go_on()
    np.matmul(X, centers.T, out=product)
    ours = bench.time(go_on)
    plain = bench.time(lambda: np.matmul(X, centers.T, out=product))
    work = 2e-9 * step.rows * step.columns * step.clusters
    share = plain.seconds / ours.seconds
    return SpeedRow(
        part="throughput",
        what=f"Lloyd step, {step.columns} columns, {step.clusters} clusters, {step.rows:,} made rows",
        **beside("a plain matrix product", plain, ours.columns()),
        amount=work / ours.seconds,
        reference_amount=work / plain.seconds,
        unit="GFLOP/s",
        aim="" if step.least_share is None else f"{100 * step.least_share:g} % of the product",
        holds=None if step.least_share is None else share >= step.least_share,
        note=f"{100 * share:.0f} % of the product's",
    )
