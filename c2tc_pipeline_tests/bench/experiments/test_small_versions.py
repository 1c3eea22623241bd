"""Every experiment of the package in small: from its grid to its page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from c2tc_pipeline.bench import job as experiment_job
from c2tc_pipeline.bench.experiments.grid import Experiment, experiment_names, load_experiment
from c2tc_pipeline.bench.experiments.runner import run_experiment
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline_tests.tools.made_tables import mixed_table

# The costly rivals with as little of their cost as shows that they take part.
SHORT = {
    "dm": {"steps": 3},
    "gm": {"steps": 3},
    "mtt": {"steps": 3, "experts": 1, "epochs": 3, "last_start": 1, "ahead": 1, "student_steps": 2},
}


# One experiment of every kind of figure; drawing the same kind again takes seconds and shows nothing new.
DRAWN = {load_experiment(name).show.figure: name for name in reversed(experiment_names())}


def shrunk(name: str) -> Experiment:
    """Return an experiment with one small table, one ratio, one seed, two models and a recipe of a hundred steps."""
    full = load_experiment(name)
    # Every model learns in a test of its own; two show that an experiment takes several.
    changes: dict[str, Any] = {"ratios": (0.1,), "seeds": 1, "recipe": "paper", "models": full.models[:2]}
    if full.scaling is not None:
        shape = {"rows": 1500, "columns": 10, "classes": full.scaling.shape.classes}
        changes["scaling"] = {**full.scaling.model_dump(), "shape": shape, "shares": (0.5, 1.0)}
    else:
        changes["tables"] = ("people",)
    if full.imbalance is not None:
        changes["imbalance"] = {"columns": {"people": "insured"}, "levels": full.imbalance.levels[::3]}
    changes["methods"] = [
        {**contender.model_dump(), "settings": {**contender.settings, **SHORT.get(contender.method, {})}}
        for contender in full.methods
    ]
    return Experiment.model_validate({**full.model_dump(), **changes})


@pytest.fixture
def spec(tmp_path: Path) -> TableSpec:
    path = tmp_path / "people.parquet"
    mixed_table(150, seed=3).to_parquet(path)
    return TableSpec(name="people", source=str(path), label="outcome")


@pytest.mark.slow
@pytest.mark.parametrize("name", experiment_names())
def test_a_small_version_of_every_experiment(
    name: str, spec: TableSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = shrunk(name)
    drawn = DRAWN[experiment.show.figure] == name
    if not drawn:
        monkeypatch.setattr(experiment_job, "experiment_exhibits", lambda *_: [])
    scores = run_experiment(experiment, {"people": spec}, jobs=0, cache_dir=tmp_path / "cache")
    assert set(scores["status"]) == {"ok"}, scores[["method", "reason"]]
    assert set(scores["method"]) - {"whole"} == {contender.method for contender in experiment.methods}
    assert set(scores["model"]) == set(experiment.models or ("",))
    out = tmp_path / "out"
    out.mkdir()
    experiment_job.write_experiment(
        experiment, scores, out, command=f"c2tc bench {name}", splits={"people": spec.split}, jobs=0
    )
    pd.testing.assert_frame_equal(pd.read_parquet(out / "scores.parquet"), scores, check_dtype=False)
    text = (out / "table.md").read_text(encoding="utf-8")
    assert experiment.title in text
    assert f"c2tc bench {name}" in text
    assert ("80 % training, 10 % validation, 10 % test rows" in text) == (experiment.scaling is None)
    # What was trained is shown.
    head = next(line for line in text.splitlines() if line.startswith("| table"))
    assert ("| whole " in head) == ("whole" in set(scores["method"])) == (experiment.whole and bool(experiment.models))
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    figures = list((out / "figures").iterdir())
    assert not drawn or bool(figures) == (
        experiment.show.figure != "none" or len(set(scores["method"]) - {"whole"}) > 1
    )
    if len({contender.method for contender in experiment.methods}) > 1 and experiment.models:
        found = pd.read_parquet(out / "statistics.parquet")
        assert {"t_p_holm", "wilcoxon_p_holm"} <= set(found.columns)
