"""The paper's numbers are those it prints, each once, under the names that our scores have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


RATIOS = {"1%": 0.01, "0.1%": 0.001, "0.01%": 0.0001}
KEY = ["table", "ratio", "method", "space", "variant", "model", "metric"]


@pytest.fixture(scope="module")
def printed() -> dict[str, Any]:
    path = Path(__file__).parents[3] / "shared" / "paper" / "results.json"
    if not path.is_file():
        pytest.skip("the paper's results are not on this machine")
    results: dict[str, Any] = json.loads(path.read_text())
    return results


def by_key(numbers: pd.DataFrame, *names: str) -> dict[Any, dict[Any, Any]]:
    records = numbers.to_dict("records")
    found = {tuple(record[name] for name in names): record for record in records}
    assert len(found) == len(records)
    return found


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


def test_the_frame_can_be_changed_without_changing_the_numbers() -> None:
    numbers = paper_numbers("encoding")
    numbers["mean"] = 0.0
    assert (paper_numbers("encoding")["mean"] > 0).all()


def test_an_experiment_that_the_paper_does_not_have() -> None:
    assert grid.paper_numbers("choices") is None


def test_overall_is_what_the_paper_prints(printed: dict[str, Any]) -> None:
    numbers = by_key(paper_numbers("overall"), "table", "ratio", "method", "metric")
    for table, by_ratio in printed["table_2_overall_mlp"].items():
        for ratio, by_method in by_ratio.items():
            cells = {"whole": by_method} if ratio == "whole" else by_method
            for method, by_metric in cells.items():
                for metric, value in by_metric.items():
                    name = "ours" if method == "c2tc" else method
                    found = numbers[table, RATIOS.get(ratio, 1.0), name, metric]
                    if isinstance(value, str):
                        assert found["status"] == value
                    else:
                        assert [100 * found["mean"], 100 * found["std"]] == pytest.approx(value)
