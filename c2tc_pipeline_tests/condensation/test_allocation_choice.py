"""Allocators and gammas that condensing offers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline import Condenser, condense
from c2tc_pipeline.allocation.hfils import HfilsAllocator
from c2tc_pipeline.condensation.clusters import SingletonWarning
from c2tc_pipeline.condensation.plan import CANDIDATES
from c2tc_pipeline_tests.tools.made_tables import mixed_table

ALLOCATORS = ("hfils", "optimal", "ratio", "fipc")

pytestmark = pytest.mark.filterwarnings("ignore::c2tc_pipeline.condensation.clusters.SingletonWarning")


def imbalanced_mixture(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Make three classes of very different sizes and shapes: one spread out, one in lumps, one nearly a point."""
    rng = np.random.default_rng(seed)
    lumps = rng.random((12, 4))
    parts = [
        rng.random((3000, 4)),
        lumps[rng.integers(0, 12, 400)] + rng.normal(0, 0.01, (400, 4)),
        0.5 + rng.normal(0, 0.002, (60, 4)),
    ]
    return np.vstack(parts).astype(np.float32), np.repeat([0, 1, 2], [3000, 400, 60])


@pytest.mark.parametrize("gamma", [0.0, 0.25, 1.0])
def test_the_optimal_allocation_is_no_worse_than_fixed_ones(gamma: float) -> None:
    X, y = imbalanced_mixture()
    objective = {}
    for allocation in ALLOCATORS:
        condenser = Condenser(0.02, allocation=allocation, gamma=gamma)
        condenser.fit_resample(X, y)
        objective[allocation] = condenser.allocation_.objective
    # K-means finds local optima, which differ by a little.
    assert objective["optimal"] <= 1.02 * min(objective["ratio"], objective["fipc"])
    assert objective["hfils"] <= 1.05 * min(objective["ratio"], objective["fipc"])
    assert objective["ratio"] != objective["fipc"]


@pytest.mark.parametrize("allocation", ALLOCATORS)
def test_every_allocator(allocation: str) -> None:
    frame = mixed_table(150)
    small = condense(frame, "outcome", rows=12, allocation=allocation)
    assert int(small.allocation.counts.sum()) == 12
    assert small.allocation.method == allocation
    assert small.allocation.evaluations == sum(len(curve.grid) for curve in small.curves)
    assert small.summary["kmeans_runs"] == small.allocation.evaluations + 3
    best = [step.best for step in small.allocation.trace]
    assert best == sorted(best, reverse=True)


def test_an_allocator_object() -> None:
    X, y = imbalanced_mixture()
    given = Condenser(0.02, allocation=HfilsAllocator())
    named = Condenser(0.02, allocation="hfils")
    np.testing.assert_array_equal(given.fit_resample(X, y)[0], named.fit_resample(X, y)[0])


def test_a_given_gamma_is_used_and_recorded() -> None:
    small = condense(mixed_table(150), "outcome", rows=12, gamma=0.5)
    assert small.allocation.gamma == small.summary["gamma"] == 0.5
    assert small.summary["gamma_scores"] == []


def test_gamma_favours_small_classes() -> None:
    X, y = imbalanced_mixture()
    counts = {}
    for gamma in (0.0, 1.0):
        condenser = Condenser(0.02, allocation="optimal", gamma=gamma)
        condenser.fit_resample(X, y)
        counts[gamma] = condenser.allocation_.counts
    assert counts[1.0][0] < counts[0.0][0]
    assert counts[1.0][1] > counts[0.0][1]


@pytest.mark.parametrize(("allocation", "with_validation"), [("hfils", True), ("fipc", False)])
def test_auto_gamma(allocation: str, with_validation: bool) -> None:
    frame = mixed_table(400, seed=1)
    held = mixed_table(100, seed=2) if with_validation else None

    def run() -> Any:
        return condense(frame, "outcome", rows=12, gamma="auto", allocation=allocation, validation=held)

    small = run()
    scores = pd.DataFrame(small.summary["gamma_scores"])
    assert tuple(scores["gamma"]) == CANDIDATES
    assert all(sum(counts) == 12 for counts in scores["counts"])
    means = (scores["accuracy"] + scores["macro_f1"]) / 2
    assert small.allocation.gamma == scores["gamma"].iloc[int(means.argmax())]
    again = run()
    assert again.summary["gamma_scores"] == small.summary["gamma_scores"]
    pd.testing.assert_frame_equal(again.X, small.X)


def test_validation_rows_decide() -> None:
    frame = mixed_table(400, seed=1)
    scored = {
        seed: condense(
            frame, "outcome", rows=12, gamma="auto", validation=None if seed is None else mixed_table(100, seed=seed)
        ).summary["gamma_scores"]
        for seed in (None, 2, 3)
    }
    assert scored[2] != scored[3]
    assert scored[2] != scored[None]


def test_validation_rows_change_nothing_but_gamma_and_column_weights() -> None:
    frame = mixed_table(400, seed=1)
    alike: dict[str, Any] = {"rows": 12, "column_weights": "none"}
    chosen = condense(frame, "outcome", gamma="auto", validation=mixed_table(100, seed=2), **alike)
    given = condense(frame, "outcome", gamma=chosen.allocation.gamma, **alike)
    pd.testing.assert_frame_equal(chosen.X, given.X)
    assert chosen.membership["source_row"].tolist() == list(range(400))


def test_auto_gamma_with_a_class_of_one_row() -> None:
    frame = mixed_table(60, classes=2).assign(outcome=["rare"] + ["usual"] * 59)
    with pytest.warns(SingletonWarning):
        small = condense(frame, "outcome", rows=6, gamma="auto")
    assert small.allocation.counts.tolist() == [1, 5]
