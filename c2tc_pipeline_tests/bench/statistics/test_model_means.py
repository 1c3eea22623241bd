"""The mean of models counts every model once, and is no better than what was finished."""

from __future__ import annotations

import pytest

from c2tc_pipeline.bench.statistics.runs import MEAN_OF_MODELS, with_mean_of_models
from c2tc_pipeline.bench.statistics.runs import cell_scores
from c2tc_pipeline_tests.bench.statistics.made_scores import runs, together, unfinished


def test_means_by_hand() -> None:
    scores = together(
        runs("ours", [0.9, 0.7], model="mlp"),
        runs("ours", [0.5, 0.5], model="mlp", model_seed=1),
        runs("ours", [0.5, 0.2], model="tabr"),
        runs("dm", [0.6, 0.6], model="mlp"),
        unfinished("dm", "OOT", model="tabr"),
        # Only one of two models ever saw this.
        runs("gm", [0.9], model="mlp"),
    )
    found = with_mean_of_models(scores, ["accuracy", "macro_f1"])
    assert found.iloc[: len(scores)]["accuracy"].tolist() == pytest.approx(scores["accuracy"].tolist(), nan_ok=True)
    means = cell_scores(found[found["model"] == MEAN_OF_MODELS], "accuracy").set_index("contender")
    assert list(means.index) == ["ours", "dm"]
    # Split 0: (0.7 + 0.5) / 2, split 1: (0.6 + 0.2) / 2; a mean over all models alike would be 0.633 and 0.467.
    assert means.loc["ours", "mean"] == pytest.approx((0.6 + 0.4) / 2)
    assert means.loc["ours", "std"] == pytest.approx(0.1)
    assert (means.loc["dm", "status"], means.loc["dm", "runs"]) == ("OOT", 0)
