"""The paper's tables condense with defaults, at every ratio, and warn of nothing that their owner can't act on.

A table is encoded once: the first ratio runs the whole way, the others start from its encoded rows, of which the
largest ratio takes a sample, because it takes a minute on the largest tables.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c2tc_pipeline import Condenser, condense
from c2tc_pipeline.condensation.clusters import SingletonWarning
from c2tc_pipeline.tables.blocks import read_table

TABLES = (
    *("electricity", "electricity_full", "adult", "diabetes130us", "airlines", "covertype", "jannis", "higgs"),
    *("microsoft", "road_safety", "road_safety_full"),
)
LARGEST = {"covertype", "road_safety_full"}
"""They take a minute together, and wait for the long tests."""
WHOLE_WAY, FROM_ENCODED = 0.001, {0.01: 20_000, 0.0001: None}
"""The ratios, and of how many rows at most those are taken that start from encoded ones."""

pytestmark = [pytest.mark.shared_data, pytest.mark.slow]


@pytest.fixture(scope="module")
def described(shared_data: Path) -> dict[str, Any]:
    tables: dict[str, Any] = json.loads((shared_data / "datasets.json").read_text())["datasets"]
    return tables


def test_no_table_is_forgotten(described: dict[str, Any]) -> None:
    assert set(TABLES) == set(described)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.faults] if name in LARGEST else []) for name in TABLES]
)
def test_a_table_at_every_ratio(shared_data: Path, described: dict[str, Any], name: str) -> None:
    label = described[name]["label"]
    frame = read_table(shared_data / described[name]["file"])
    sizes = sorted(described[name]["class_counts"].values())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SingletonWarning)
        small = condense(frame, label, WHOLE_WAY)
        encoded = np.asarray(small.encoder.transform(frame))
        check(small.weight.to_numpy(), small.allocation.counts, small.class_rows, WHOLE_WAY)
        assert small.allocation.bound is not None
        for ratio, most in FROM_ENCODED.items():
            step = 1 if most is None else -(-len(frame) // most)
            labels = frame[label].iloc[::step]
            condenser = Condenser(ratio)
            condenser.fit_resample(encoded[::step], labels)
            sizes_here = labels.value_counts().reindex(condenser.classes_).tolist()
            check(condenser.weights_, condenser.allocation_.counts, sizes_here, ratio)
    assert sorted(small.class_rows) == sizes
    assert len(small.original) == len(small)


def check(weights: np.ndarray, counts: np.ndarray, class_rows: list[int], ratio: float) -> None:
    rows = sum(class_rows)
    assert int(counts.sum()) == len(weights) == max(len(class_rows), round(ratio * rows))
    assert (counts >= 1).all()
    assert (counts <= class_rows).all()
    assert int(weights.sum()) == rows
