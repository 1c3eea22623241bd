"""Scores are averaged over model seeds first, and what did not finish is counted."""

from __future__ import annotations

import pytest

from c2tc_pipeline.bench.statistics.runs import cell_scores, run_scores
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.bench.statistics.made_scores import runs, together, unfinished


def test_a_run_with_more_models_counts_once() -> None:
    scores = together(
        runs("ours", [0.5, 0.8]),
        runs("ours", [0.7], model_seed=1),
        runs("ours", [0.9], model_seed=2),
    )
    cell = cell_scores(scores, "accuracy").iloc[0]
    # Split 0 has three models of mean 0.7; a mean over all four models would be 0.725.
    assert run_scores(scores, "accuracy")["score"].round(9).tolist() == [0.7, 0.8]
    assert cell["mean"] == pytest.approx(0.75)
    assert cell["std"] == pytest.approx(0.05)
    assert (cell["runs"], cell["unfinished"], cell["status"]) == (2, 0, "ok")


def test_endings_and_partly_finished_cells() -> None:
    scores = together(
        runs("ours", [0.5, 0.7]),
        unfinished("ours", splits=1, model_seed=1),
        unfinished("mtt", "OOT", splits=2),
        unfinished("mtt", "OOM", splits=1, model_seed=1),
        runs("gm", [float("nan")]),
    )
    cells = cell_scores(scores, "accuracy").set_index("contender")
    assert cells["status"].to_dict() == {"ours": "ok", "mtt": "OOT", "gm": "failed"}
    assert cells["unfinished"].to_dict() == {"ours": 1, "mtt": 2, "gm": 1}
    assert cells["runs"].to_dict() == {"ours": 2, "mtt": 0, "gm": 0}
    assert cells.loc["ours", "mean"] == pytest.approx(0.6)
    assert cells["mean"].isna().to_dict() == {"ours": False, "mtt": True, "gm": True}


def test_variants_are_contenders_and_missing_texts_are_empty() -> None:
    scores = together(runs("ours", [0.5]), runs("ours", [0.6], variant="gamma=1"))
    scores["variant"] = scores["variant"].replace("", None)
    assert cell_scores(scores, "accuracy")["contender"].tolist() == ["ours", "ours (gamma=1)"]


def test_a_frame_without_a_column_is_named() -> None:
    with pytest.raises(InputError, match="no column 'seed'"):
        cell_scores(runs("ours", [0.5]).drop(columns="seed"), "accuracy")
    with pytest.raises(InputError, match="no column 'auc'"):
        cell_scores(runs("ours", [0.5]), "auc")
