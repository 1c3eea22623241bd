"""The command line when all goes well: files, summaries, splits, catalogues.

What happens to mistakes is in ``test_cli_mistakes.py``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline import CondensedTable
from c2tc_pipeline.condensation.table import read_summary
from c2tc_pipeline_tests.tools.command_line import Run, run_process, write_catalogue
from c2tc_pipeline_tests.tools.made_tables import data_hashes, everything_below, mixed_table

FILES = {
    *("condensed.parquet", "condensed_original.parquet", "membership.parquet", "projection.parquet"),
    *(
        "summary.json",
        "timings.json",
        "report.html",
        "manifest.json",
        "encoder/encoder.json",
        "encoder/encoder.safetensors",
    ),
}


def files_in(directory: str | Path) -> set[str]:
    return {name for name, content in everything_below(Path(directory)).items() if content is not None}


def test_condense_writes_its_files(run: Run, people: Path) -> None:
    result = run("condense", people, "--label", "outcome", "--ratio", "0.05", "--out", "small")
    assert result.exit_code == 0, result.output
    assert files_in("small") == FILES
    table = CondensedTable.load("small")
    assert len(table) == 15
    assert table.summary["table"] == "people"
    for shown in ("300 rows → 15", "class a", "Objective", "bound", "Seconds: read", "total", "Written: small"):
        assert shown in result.stdout
    for stage in ("read", "prepare", "encode", "curves", "allocate", "cluster", "decode", "write"):
        assert stage in result.stderr
    assert Path("small/report.html").read_text(encoding="utf-8").startswith("<!")


def test_json_is_the_summary_and_nothing_else(run: Run, people: Path) -> None:
    result = run("condense", people, "--label", "outcome", "--out", "small", "--json", "--seed", 4)
    assert result.exit_code == 0
    printed = json.loads(result.stdout)
    assert set(printed) > set(json.loads(Path("small/summary.json").read_text(encoding="utf-8")))
    assert printed == read_summary(Path("small"))
    assert result.stdout.isascii()
    assert result.stderr == ""
    assert printed["seed"] == 4
    assert printed["rows_out"] == 3
    assert set(printed["seconds"]) > {"read", "encode", "cluster"}


def test_quiet(run: Run, people: Path) -> None:
    result = run("condense", people, "--label", "outcome", "--out", "small", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_formats_give_the_same_classes(run: Run, suffix: str) -> None:
    frame = mixed_table()
    frame.to_parquet(f"t{suffix}") if suffix == ".parquet" else frame.to_csv(f"t{suffix}", index=False)
    assert run("condense", f"t{suffix}", "--label", "outcome", "--rows", 6, "--out", "small").exit_code == 0
    assert CondensedTable.load("small").class_rows == frame["outcome"].value_counts().sort_index().tolist()


def test_options_reach_the_core(run: Run, people: Path) -> None:
    options = "--strings target --numeric minmax --allocation fipc --gamma 0.5 --representative medoid --device cpu"
    roles = ("--role", "age=code", "--role", "job=drop")
    result = run(
        "condense", people, "--label", "outcome", "--rows", 6, "--out", "s", *options.split(), *roles, "--json"
    )
    summary = json.loads(result.stdout)
    assert summary["settings"] == {
        "encoder": "HybridEncoder",
        "strings": "target",
        "numeric": "minmax",
        "allocation": "fipc",
        "gamma": 0.5,
        "losses": "curves",
        "representative": "medoid",
        "min_rows_per_condensed_row": 1,
    }
    assert summary["allocation"]["counts"] == [2, 2, 2]
    assert {row["column"]: row["role"] for row in summary["roles"]}.items() >= {"age": "code", "job": "drop"}.items()


def test_notices_and_odd_labels_are_shown(run: Run) -> None:
    frame = mixed_table().assign(version="[bold]3[/]", outcome=[True, False] * 150)
    frame.to_csv("t.csv", index=False)
    result = run("condense", "t.csv", "--label", "outcome", "--rows", 200, "--out", "small")
    assert result.exit_code == 0, result.output
    printed = " ".join(result.stdout.split())
    assert "Column 'version': holds the same value in every row" in printed
    assert re.search(r"\d+ of 200 condensed rows stand for a single source row", printed)
    assert "True 150 50.0%" in printed


def test_many_classes_are_summed_up(run: Run) -> None:
    pd.DataFrame({"x": np.arange(250) % 83 / 7, "kind": np.arange(250) % 25}).to_csv("t.csv", index=False)
    result = run("condense", "t.csv", "--label", "kind", "--rows", 50, "--out", "small")
    assert "… 5 others" in result.stdout


def test_a_second_run_replaces_the_first(run: Run, people: Path) -> None:
    for rows in (6, 9):
        assert run("condense", people, "--label", "outcome", "--rows", rows, "--out", "small").exit_code == 0
    assert len(CondensedTable.load("small")) == 9
    assert sorted(path.name for path in Path().iterdir()) == ["people.csv", "small"]


def test_the_same_seed_gives_the_same_bytes(run: Run, people: Path) -> None:
    for out, seed in (("one", 1), ("two", 1), ("three", 2)):
        assert (
            run("condense", people, "--label", "outcome", "--ratio", 0.1, "--seed", seed, "--out", out).exit_code == 0
        )
    assert data_hashes(Path("one")) == data_hashes(Path("two"))
    assert data_hashes(Path("one"))["condensed.parquet"] != data_hashes(Path("three"))["condensed.parquet"]


def test_the_cache_can_be_chosen_or_left_out(run: Run, tmp_path: Path) -> None:
    mixed_table(words=True).to_csv("people.csv", index=False)
    common = ("condense", "people.csv", "--label", "outcome", "--rows", 6, "--out", "small", "--json")
    hits = [
        json.loads(run(*common, *more).stdout)["cache_hits"] for more in [("--no-cache",), (), (), ("--cache", "c")]
    ]
    assert [hit["autoencoder"] for hit in hits] == [False, False, True, False]
    assert [hit["loss_curves"] for hit in hits] == [None, False, True, False]
    assert (tmp_path / "cache").is_dir()
    assert Path("c").is_dir()


def test_split(run: Run) -> None:
    frame = mixed_table()
    frame.loc[[5, 250], "outcome"] = None
    frame.to_parquet("t.parquet")
    arguments = ("condense", "t.parquet", "--label", "outcome", "--rows", 9, "--gamma", "auto", "--split")
    assert run(*arguments, "--out", "small").exit_code == 0
    assert files_in("small") == FILES | {"split.parquet"}
    split = pd.read_parquet("small/split.parquet")
    assert split["source_row"].tolist() == list(range(300))
    assert split["side"].isin(["train", "validation", "test", "no label"]).all()
    assert split["side"].value_counts()[["train", "validation", "test"]].tolist() == pytest.approx([238, 30, 30], abs=2)
    assert split.loc[split["side"] == "no label", "source_row"].tolist() == [5, 250]
    table = CondensedTable.load("small")
    train = split.loc[split["side"] == "train", "source_row"]
    assert table.membership["source_row"].tolist() == train.tolist()
    own = frame["outcome"].to_numpy()[table.membership["source_row"]]
    assert (table.y.to_numpy()[table.membership["condensed_row"]] == own).all()
    means = (
        frame.loc[table.membership["source_row"], "amount"].groupby(table.membership["condensed_row"].to_numpy()).mean()
    )
    np.testing.assert_allclose(table.original["amount"], means)

    # What is in the test rows makes no difference.
    test_rows = split.loc[split["side"] == "test", "source_row"]
    frame.loc[test_rows, "amount"] += 1000
    frame.to_parquet("t.parquet")
    assert run(*arguments, "--out", "changed").exit_code == 0
    assert data_hashes(Path("changed")) == data_hashes(Path("small"))


def test_evaluate(run: Run) -> None:
    frame = mixed_table()
    frame.to_parquet("t.parquet")
    arguments = ("condense", "t.parquet", "--label", "outcome", "--rows", 9, "--split", "--evaluate", "--seeds", 2)
    result = run(*arguments, "--out", "small")
    assert result.exit_code == 0, result.output
    assert files_in("small") == FILES | {"split.parquet", "scores.parquet"}
    scores = pd.read_parquet("small/scores.parquet")
    assert len(scores) == 3 * 2 * 2
    assert not scores["cache_hit"].any()
    assert scores["accuracy"].between(0, 1).all()
    split = pd.read_parquet("small/split.parquet")["side"].value_counts()
    assert scores.loc[scores["training_set"] == "whole", "rows"].unique().tolist() == [split["train"]]
    summary = CondensedTable.load("small").summary
    assert [(row["model"], row["training_set"], row["seeds"]) for row in summary["scores"]] == [
        (model, kind, 2) for model in ("mlp", "boosting") for kind in ("condensed", "random", "whole")
    ]
    stages = list(summary["seconds"])
    assert (stages[0], stages[-1]) == ("read", "evaluate")
    shown = f"{100 * summary['scores'][0]['accuracy']:.1f} ± "
    assert "Scores on test rows" in result.stdout
    assert "evaluate" in result.stderr
    for page in (result.stdout, Path("small/report.html").read_text(encoding="utf-8")):
        assert shown in page
    again = run(*arguments, "--out", "again", "--json")
    assert pd.read_parquet("again/scores.parquet")["cache_hit"].all()
    assert json.loads(again.stdout)["scores"] == summary["scores"]


def test_split_with_a_role_for_the_only_column(run: Run) -> None:
    pd.DataFrame({"id": range(200), "y": ["a", "b"] * 100}).to_csv("t.csv", index=False)
    result = run("condense", "t.csv", "--label", "y", "--out", "small", "--split", "--role", "id=numeric")
    assert result.exit_code == 0, result.output


def test_a_table_of_the_catalogue(run: Run) -> None:
    settings = {"allocation": "fipc", "seed": 3}
    write_catalogue(
        people={
            "source": "p.parquet",
            "label": "outcome",
            "ratios": [0.04],
            "roles": {"age": "code"},
            "settings": settings,
        }
    )
    mixed_table().to_parquet("data/p.parquet")
    summary = json.loads(run("condense", "--table", "people", "--out", "small", "--json").stdout)
    assert summary["allocation"]["counts"] == [4, 4, 4]
    assert (summary["table"], summary["seed"]) == ("people", 3)
    again = json.loads(
        run("condense", "--table", "people", "--out", "s2", "--json", "--seed", 5, "--ratio", 0.02).stdout
    )
    assert (again["seed"], again["rows_out"]) == (5, 6)


def test_tables_are_listed(run: Run) -> None:
    write_catalogue(people={"source": "p.parquet", "label": "outcome", "description": "Who and what."})
    mixed_table().to_parquet("data/p.parquet")
    result = run("tables")
    assert result.exit_code == 0
    assert result.stdout == (
        "people: label 'outcome', ratios 0.01, 0.001, 0.0001; 300 rows, 7 columns\n    Who and what.\n"
    )
    assert json.loads(run("tables", "--json").stdout) == [
        {"name": "people", "problem": None, "rows": 300, "columns": 7, "label": "outcome"}
    ]


def test_a_table_with_a_problem_is_named(run: Run) -> None:
    write_catalogue(
        people={"source": "p.parquet", "label": "outcom"}, ghosts={"source": "ghosts.csv", "label": "outcome"}
    )
    mixed_table().to_parquet("data/p.parquet")
    result = run("tables")
    assert result.exit_code == 2
    people, ghosts = result.stdout.splitlines()
    assert "people" in people
    assert "PROBLEM: There is no label column 'outcom'" in people
    assert "PROBLEM: There is no file data/ghosts.csv" in ghosts


def test_a_terminal_that_knows_ascii_only(run: Run) -> None:
    mixed_table(120, classes=2).replace("class a", "café →").to_csv("t.csv", index=False)
    done = run_process("condense", "t.csv", "--label", "outcome", "--out", "small", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert b"caf\\xe9 \\u2192" in done.stdout
    assert files_in("small") == FILES
