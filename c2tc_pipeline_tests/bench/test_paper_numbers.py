"""The paper's numbers are those it prints, each once, under the names that our scores have."""

from __future__ import annotations

import pandas as pd
import pytest

from c2tc_pipeline.bench.experiments import grid

EXPERIMENTS = {
    "overall": 10 * (3 * 7 + 1) * 2,
    "cross-architecture": (3 * 5 + 2 + 4) * 6,
    "allocation": 3 * 5 * 2,
    "modules": 5 + 4 + 6 + 5 + 6,
    "encoding": 3 * 4 * 2,
    "time": 5,
    "scaling-rows": 8,
    "scaling-columns": 4,
}


def paper_numbers(experiment: str) -> pd.DataFrame:
    found = grid.paper_numbers(experiment)
    assert found is not None
    return found


KEY = ["table", "ratio", "method", "space", "variant", "model", "metric"]


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_number_is_there_once_and_is_one(experiment: str) -> None:
    numbers = paper_numbers(experiment)
    assert len(numbers) == EXPERIMENTS[experiment]
    assert not numbers.duplicated(KEY).any()
    assert set(numbers["status"]) <= {"ok", "OOT", "OOM", "under"}
    assert (numbers["mean"].isna() == numbers["status"].isin(["OOT", "OOM"])).all()
    scores = numbers[numbers["metric"].isin(["accuracy", "macro_f1"])]
    assert scores["mean"].dropna().between(0.05, 1).all()
    assert not numbers[["table", "method", "space", "variant", "model"]].isna().any(axis=None)


def test_an_experiment_that_the_paper_does_not_have() -> None:
    assert grid.paper_numbers("choices") is None
