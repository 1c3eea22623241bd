"""Results are written whatever came of the runs: statistics and figures as far as there is something to say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from c2tc_pipeline.bench.experiments.grid import Experiment, load_experiment
from c2tc_pipeline.bench.job import layout_of, write_experiment
from c2tc_pipeline.bench.reports.protocol import most_test_to_train, protocol
from c2tc_pipeline.bench.reports.table import experiment_table_markdown
from c2tc_pipeline.bench.statistics.comparisons import compare
from c2tc_pipeline.tables.spec import SplitSettings
from c2tc_pipeline_tests.bench.statistics.made_scores import runs, together, unfinished

FRAME = runs("ours", [0.8])


def grid(**fields: Any) -> Experiment:
    given = {"name": "own", "title": "Own", "tables": ["t"], "ratios": [0.01], "methods": ["ours", "random"], **fields}
    return Experiment.model_validate(given)


def timed(scores: pd.DataFrame) -> pd.DataFrame:
    return scores.assign(condense_seconds=1.0, fit_seconds=1.0, objective=1.0)


def written(experiment: Experiment, scores: pd.DataFrame, out: Path, **given: Any) -> tuple[str, set[str]]:
    """Return the text of the tables, without what escapes, and the names of all files."""
    write_experiment(experiment, timed(scores), out, **given)
    names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    return (out / "table.md").read_text(encoding="utf-8").replace("\\", ""), names


def table_of(name: str, scores: pd.DataFrame) -> list[str]:
    experiment = load_experiment(name)
    return experiment_table_markdown(timed(scores), layout_of(experiment, timed(scores))).splitlines()


def test_a_sweep_of_ours_beside_a_rival_has_ranks_and_no_comparisons(tmp_path: Path) -> None:
    experiment = grid(methods=[{"method": "ours", "sweep": {"gamma": [0.5, 1]}}, "random"])
    scores = together(
        *(runs("ours", [a, a], variant=f"gamma={g}") for g, a in (("0.5", 0.8), ("1", 0.7))),
        runs("random", [0.6, 0.6]),
        runs("whole", [0.9, 0.9], ratio=1.0),
    )
    text, names = written(experiment, scores, tmp_path)
    assert "| ours (gamma=0.5) | 1.00 | 0 |" in text
    assert "## Relative regret, accuracy" in text
    assert "Ours against each rival" not in text
    assert "statistics.parquet" not in names
    assert "figures/mean-ranks-accuracy.png" in names


def test_an_imbalance_with_two_methods_never_ranks_the_whole_table(tmp_path: Path) -> None:
    levels = ("1:1", "10:1")
    scores = together(
        *(runs(m, [a, a], variant=v) for m, a in (("ours", 0.8), ("random", 0.7)) for v in levels),
        *(runs("whole", [0.9, 0.9], variant=v, ratio=1.0) for v in levels),
    )
    experiment = grid(imbalance={"columns": {"t": "x"}, "levels": [1, 10]}, show={"columns": ["method", "variant"]})
    text, names = written(experiment, scores, tmp_path)
    ranks = text.split("## Mean ranks, accuracy")[1].split("##")[0]
    assert "ours (10:1)" in ranks
    assert "whole" not in ranks
    assert "whole / 10:1" in text
    assert {"report.html", "scores.parquet"} <= names


def test_methods_that_share_no_table_are_shown_without_ranks(tmp_path: Path) -> None:
    scores = together(runs("ours", [0.8, 0.8]), runs("random", [0.7, 0.7], table="b"))
    text, names = written(grid(tables=["t", "b"]), scores, tmp_path)
    assert "Mean ranks" not in text
    assert "First, tied or behind" in text
    assert "statistics.parquet" in names


@pytest.mark.parametrize("figure", ["seconds", "ratios", "bars"])
def test_when_nothing_finished_the_table_says_so(figure: str, tmp_path: Path) -> None:
    show = {"metrics": ["condense_seconds" if figure == "seconds" else "accuracy"], "figure": figure}
    text, names = written(grid(show=show), together(unfinished("ours"), unfinished("random", "OOM")), tmp_path)
    assert "| OOT | OOM |" in text
    assert "report.html" in names
    assert any(name.startswith("figures/") for name in names) == (figure != "seconds")


def test_the_time_on_all_rows_is_seen_beside_that_on_condensed_ones() -> None:
    models = ("mlp", "tabr")
    scores = together(*(runs(m, [0.8], model=j, ratio=r) for j in models for m, r in (("ours", 0.01), ("whole", 1.0))))
    head, _, *body = table_of("training-time", scores)
    assert head == "| table | ratio | model | metric | ours | whole |"
    assert body[0] == "| t | 1 % | mlp | seconds to fit | 1 | 1 |"


def test_a_whole_table_that_no_column_shows_has_rows() -> None:
    scores = together(*(runs("ours", [0.8], variant=v) for v in ("ratio", "hfils")), runs("whole", [0.9], ratio=1.0))
    assert "| t | 1 % | whole | accuracy | — | — | 90.0 |" in table_of("allocation", scores)


def test_architectures_judge_methods_and_are_averaged(tmp_path: Path) -> None:
    cells = (("ours", "mlp", 0.6), ("ours", "tabr", 0.9), ("random", "mlp", 0.7), ("random", "tabr", 0.5))
    scores = together(*(runs(m, [a, a], model=j) for m, j, a in cells))
    experiment = load_experiment("cross-architecture")
    text, _ = written(experiment, scores, tmp_path)
    accuracies = [line for line in text.split("##")[0].splitlines() if "| accuracy |" in line]
    assert accuracies == [
        "| t | 1 % | mlp | accuracy | <u>60.0 ± 0.0</u> | **70.0 ± 0.0** |",
        "| t | 1 % | tabr | accuracy | **90.0 ± 0.0** | <u>50.0 ± 0.0</u> |",
        "| t | 1 % | mean of models | accuracy | **75.0 ± 0.0** | <u>60.0 ± 0.0</u> |",
    ]
    # The mean is for the eye: it is no model of its own in any test.
    assert "mean of models" not in text.split("## First, tied or behind")[1]
    assert "mean of models" not in set(pd.read_parquet(tmp_path / "scores.parquet")["model"])


def test_the_protocol_claims_no_more_than_it_is_given() -> None:
    split, other = SplitSettings(), SplitSettings(test=0.3)
    told = protocol(grid(), FRAME, splits={"t": split}, jobs=2)
    assert "80 % training, 10 % validation, 10 % test rows" in told
    assert "2 processes" in told
    assert "60 % training, 10 % validation, 30 % test rows" in protocol(grid(), FRAME, splits={"t": other})
    assert "test rows" not in protocol(grid(), FRAME, splits={"t": split, "u": other})
    grouped = {"t": SplitSettings(group_duplicates=True), "u": split}
    assert "rows of t with equal features" in protocol(grid(), FRAME, splits=grouped)
    assert "rows with equal features" in protocol(grid(group_duplicates=True), FRAME)


@pytest.mark.parametrize(
    ("name", "said", "unsaid"),
    [
        ("scaling-rows", "1,200,000 rows and 136 columns", ["its own", "start of the models", "side by side"]),
        ("time", "one after the other", ["recipe", "start of the models", "side by side"]),
    ],
)
def test_the_protocol_of_runs_that_train_or_split_nothing(name: str, said: str, unsaid: list[str]) -> None:
    told = protocol(load_experiment(name), FRAME, jobs=4)
    assert said in told
    assert not any(part in told for part in unsaid)


def test_tests_allow_for_the_split_of_the_tables(tmp_path: Path) -> None:
    scores = together(runs("ours", [0.8, 0.9, 0.85]), runs("random", [0.7, 0.6, 0.7]))
    splits = {"t": SplitSettings(test=0.3), "u": SplitSettings()}
    text, _ = written(grid(), scores, tmp_path, splits=splits)
    assert "1/n + test/train with 0.5 for test/train" in text
    found = pd.read_parquet(tmp_path / "statistics.parquet")
    assert found["t_p"].tolist() == compare(scores, test_to_train=0.5)["t_p"].tolist()
    assert most_test_to_train(splits) == 0.5
    assert most_test_to_train(None) == most_test_to_train({"u": SplitSettings()}) == 0.125
