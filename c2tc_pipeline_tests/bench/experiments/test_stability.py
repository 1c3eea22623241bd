"""The default recipe on the default table: another seed, the same score but for a point or two."""

from __future__ import annotations

from pathlib import Path

import pytest

from c2tc_pipeline.bench.experiments.catalogue import tables_of
from c2tc_pipeline.bench.experiments.grid import Experiment, load_experiment
from c2tc_pipeline.bench.experiments.runner import run_experiment

CATALOGUE = Path(__file__).parents[3] / "data" / "catalog.yaml"
SEEDS = 5


@pytest.mark.slow
@pytest.mark.faults
def test_scores_of_seeds_are_within_two_points(tmp_path: Path) -> None:
    changes = {"tables": ("flights",), "methods": [{"method": "ours"}], "seeds": SEEDS}
    experiment = Experiment.model_validate({**load_experiment("allocation").model_dump(), **changes})
    specs = tables_of(experiment, data=None, catalogue=CATALOGUE)
    scores = run_experiment(experiment, specs, jobs=0, cache_dir=tmp_path)
    assert scores["status"].tolist() == ["ok"] * SEEDS
    for metric in ("accuracy", "macro_f1"):
        # Different splits, rows and starts: not one run told five times.
        assert scores[metric].nunique() == SEEDS
        assert scores[metric].std() < 0.02
