"""The paper's numbers are those it prints, each once, under the names that our scores have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
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


def test_architectures_are_what_the_paper_prints_and_agree_with_its_averages(printed: dict[str, Any]) -> None:
    numbers = paper_numbers("cross-architecture").set_index(["table", "method", "model"])["mean"]
    results = dict(printed["table_3_cross_architecture_accuracy_r0.1%"])
    models = results.pop("_columns")[:-1]
    for table, by_method in results.items():
        for method, (*values, average) in by_method.items():
            found = [100 * numbers[table, "ours" if method == "c2tc" else method, model] for model in models]
            assert found == pytest.approx(values)
            # The average is printed with one decimal, of values with more.
            assert np.mean(found) == pytest.approx(average, abs=0.15)


def test_ablations_are_what_the_paper_prints(printed: dict[str, Any]) -> None:
    allocation = by_key(paper_numbers("allocation"), "variant", "table", "metric")
    for variant, by_table in printed["table_4_allocation_r0.1%"].items():
        for table, pair in by_table.items() if isinstance(by_table, dict) else ():
            for metric, value in zip(("accuracy", "macro_f1"), pair, strict=True):
                found = allocation[variant, table, metric]
                assert 100 * found["mean"] == pytest.approx(value)
    encoding = by_key(paper_numbers("encoding"), "space", "table", "metric")
    for table, by_space in printed["table_6_encoding_r0.1%"].items():
        for space, pair in by_space.items() if isinstance(by_space, dict) else ():
            for metric, value in zip(("accuracy", "macro_f1"), pair, strict=True):
                found = encoding[space, table, metric]
                assert 100 * found["mean"] == pytest.approx(value)
    modules = by_key(paper_numbers("modules"), "variant", "table", "metric")
    variants = {
        "no_soft_step": "no soft step",
        "no_soft_allocation": "no soft allocation",
        "no_scale_factor": "no scale factor",
        "full": "full",
    }
    for name, by_table in printed["table_5_modules_r0.1%"].items():
        metric = "accuracy" if name.endswith("accuracy") else "macro_f1"
        for table, value in by_table.items():
            variant = variants[name.removesuffix(f"_{metric}")]
            found = modules[variant, table, metric]
            assert 100 * found["mean"] == pytest.approx(value)


def test_times_are_what_the_paper_says(printed: dict[str, Any]) -> None:
    times = printed["times_seconds_on_the_papers_a800_gpu"]
    numbers = by_key(paper_numbers("time"), "table", "metric")
    for table, value in times["autoencoder_10_epochs"].items():
        assert numbers[table, "encode_seconds"]["mean"] == value
    assert numbers["microsoft", "condense_seconds"]["mean"] == times["condensation_c2tc"]["microsoft"]
    bound = numbers["epsilon", "condense_seconds"]
    assert f"{bound['status']} {bound['mean']:g}" == times["condensation_c2tc"]["epsilon"]
    for experiment, what, size, name in (
        ("scaling-rows", "rows", 1_200_000, "microsoft_vary_rows"),
        ("scaling-columns", "columns", 2_000, "epsilon_vary_features_r0.01%"),
    ):
        scaling = by_key(paper_numbers(experiment), "variant", "method")
        for share, by_method in times[name].items():
            for method, value in by_method.items():
                variant = f"{what}={size * int(share[:-1]) // 100}"
                assert scaling[variant, "ours" if method == "c2tc" else method]["mean"] == value
