"""A small table on disk and an experiment over it."""

from __future__ import annotations

from pathlib import Path

import pytest

from c2tc_pipeline.bench.experiments.grid import Experiment
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline_tests.tools.made_tables import mixed_table


@pytest.fixture
def spec(tmp_path: Path) -> TableSpec:
    path = tmp_path / "people.parquet"
    mixed_table(600, seed=3).to_parquet(path)
    return TableSpec(name="people", source=str(path), label="outcome")


@pytest.fixture
def small() -> Experiment:
    """Two methods and two quick models on one table."""
    return Experiment.model_validate(
        {
            "name": "small",
            "title": "Small",
            "tables": ["people"],
            "ratios": [0.05, 0.02],
            "methods": ["ours", "random"],
            "models": ["logistic", "neighbour"],
            "seeds": 2,
        }
    )
