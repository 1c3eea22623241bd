"""``c2tc condense`` and ``c2tc tables`` with valid input; mistakes are in ``test_cli_mistakes.py``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline import CondensedTable
from c2tc_pipeline.condensation.table import read_summary
from c2tc_pipeline.evaluation.training import RECIPES, Recipe
from c2tc_pipeline_tests.tools.command_line import Run, run_process, write_catalogue
from c2tc_pipeline_tests.tools.made_tables import data_hashes, everything_below, mixed_table

FILES = {
    *("condensed.parquet", "condensed_original.parquet", "membership.parquet", "projection.parquet"),
    *("spread.parquet", "correlation.parquet", "gaps.parquet", "category_shares.parquet"),
    *("summary.json", "timings.json", "report.html", "manifest.json"),
    *("encoder/encoder.json", "encoder/encoder.safetensors"),
}


def files_in(directory: str) -> set[str]:
    return {name for name, content in everything_below(Path(directory)).items() if content is not None}


def condense(run: Run, *options: object, out: str = "small") -> dict[str, Any]:
    """Condense ``people.csv`` and return the printed summary."""
    result = run("condense", "people.csv", "--label", "outcome", "--out", out, "--json", *options)
    assert result.exit_code == 0, result.output
    printed: dict[str, Any] = json.loads(result.stdout)
    return printed


def test_condense_writes_its_files_and_replaces_them(run: Run, people: Path) -> None:
    for rows in (6, 15):
        result = run("condense", people, "--label", "outcome", "--rows", rows, "--out", "small")
        assert result.exit_code == 0, result.output
        assert files_in("small") == FILES
    table = CondensedTable.load("small")
    assert (len(table), table.summary["table"]) == (15, "people")
    for shown in ("300 rows → 15", "class a", "bound", "small"):
        assert shown in result.stdout
    for stage in ("read", "prepare", "encode", "curves", "allocate", "cluster", "decode", "write"):
        assert stage in result.stderr
    assert Path("small/report.html").read_text(encoding="utf-8").startswith("<!")
    assert sorted(path.name for path in Path().iterdir()) == ["people.csv", "small"]


def test_json_and_quiet(run: Run, people: Path) -> None:
    result = run("condense", people, "--label", "outcome", "--out", "small", "--json", "--seed", 4)
    assert result.stderr == ""
    assert result.stdout.isascii()
    printed = json.loads(result.stdout)
    assert printed == read_summary(Path("small"))
    assert (printed["seed"], printed["rows_out"]) == (4, 3)
    assert set(printed["seconds"]) > {"read", "encode", "cluster"}
    result = run("condense", people, "--label", "outcome", "--out", "small", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_options_reach_the_core(run: Run, people: Path) -> None:
    chosen = {"strings": "target", "numeric": "minmax", "allocation": "fipc", "gamma": 0.5, "representative": "medoid"}
    options = [part for name, value in chosen.items() for part in (f"--{name}", value)]
    summary = condense(run, "--rows", 6, *options, "--device", "cpu", "--role", "age=code", "--role", "job=drop")
    assert summary["settings"].items() >= chosen.items()
    assert summary["allocation"]["counts"] == [2, 2, 2]
    assert {row["column"]: row["role"] for row in summary["roles"]}.items() >= {"age": "code", "job": "drop"}.items()


def test_notices_odd_labels_and_many_classes_are_shown(run: Run) -> None:
    mixed_table().assign(version="[bold]3[/]", outcome=[True, False] * 150).to_csv("t.csv", index=False)
    result = run("condense", "t.csv", "--label", "outcome", "--rows", 200, "--out", "small")
    printed = " ".join(result.stdout.split())
    assert "Column 'version': " in printed
    assert "of 200 condensed rows" in printed
    assert "True 150 50.0 %" in printed
    pd.DataFrame({"x": np.arange(250) % 83 / 7, "kind": np.arange(250) % 25}).to_csv("t.csv", index=False)
    assert "… 5 others" in run("condense", "t.csv", "--label", "kind", "--rows", 50, "--out", "small").stdout


def test_cache_options(run: Run, tmp_path: Path) -> None:
    mixed_table(120, words=True).to_csv("people.csv", index=False)
    hits = [condense(run, "--rows", 6, *more)["cache_hits"] for more in [("--no-cache",), (), (), ("--cache", "c")]]
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
    side = pd.read_parquet("small/split.parquet").set_index("source_row")["side"]
    assert side.index.tolist() == list(range(300))
    assert side.value_counts()[["train", "validation", "test"]].tolist() == pytest.approx([238, 30, 30], abs=2)
    assert side.index[side == "no label"].tolist() == [5, 250]
    table = CondensedTable.load("small")
    source, condensed = (table.membership[name].to_numpy() for name in ("source_row", "condensed_row"))
    assert source.tolist() == side.index[side == "train"].tolist()
    assert (table.y.to_numpy()[condensed] == frame["outcome"].to_numpy()[source]).all()
    np.testing.assert_allclose(table.original["amount"], frame.loc[source, "amount"].groupby(condensed).mean())

    # The values of test rows make no difference.
    frame.loc[side.index[side == "test"], "amount"] += 1000
    frame.to_parquet("t.parquet")
    assert run(*arguments, "--out", "changed").exit_code == 0
    assert data_hashes(Path("changed")) == data_hashes(Path("small"))


def test_evaluate(run: Run, people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECIPES, "default", Recipe("adamw", 0.01, 0.0, epochs=1, batch_size=2048))
    arguments = ("--rows", 9, "--split", "--evaluate", "--seeds", 1)
    result = run("condense", people, "--label", "outcome", "--out", "small", *arguments)
    assert result.exit_code == 0, result.output
    assert files_in("small") == FILES | {"split.parquet", "scores.parquet"}
    scores = pd.read_parquet("small/scores.parquet")
    sets = ["condensed", "condensed_bare", "random", "random_same_classes", "random_x5", "random_x20", "whole"]
    assert scores["training_set"].unique().tolist() == sets
    assert len(scores[scores["columns"] == "encoded"]) == len(sets) * 2
    assert not scores["cache_hit"].any()
    assert scores["accuracy"].between(0, 1).all()
    train = (pd.read_parquet("small/split.parquet")["side"] == "train").sum()
    assert scores.loc[scores["training_set"] == "whole", "rows"].unique().tolist() == [train]
    summary = CondensedTable.load("small").summary
    assert {(row["model"], row["training_set"], row["seeds"]) for row in summary["scores"]} == {
        (model, kind, 1) for model in ("mlp", "boosting") for kind in sets
    }
    assert summary["verdict"] in " ".join(result.stdout.split())
    assert list(summary["seconds"])[-1] == "evaluate"
    found = {row["training_set"]: row["accuracy"] for row in summary["scores"] if row["model"] == "mlp"}
    shown = [f"{100 * found[name]:.1f}" for name in ("condensed", "random", "whole")]
    assert "/".join(shown) in result.stdout
    page = Path("small/report.html").read_text(encoding="utf-8")
    assert all(f">{number}" in page for number in shown)
    assert condense(run, *arguments, out="again")["scores"] == summary["scores"]
    assert pd.read_parquet("again/scores.parquet")["cache_hit"].all()


def test_catalogue(run: Run) -> None:
    settings = {"allocation": "fipc", "seed": 3}
    people = {
        "source": "p.parquet",
        "label": "outcome",
        "ratios": [0.04],
        "description": "Survey.",
        "settings": settings,
    }
    write_catalogue(people={**people, "description": "Survey."})
    mixed_table().to_parquet("data/p.parquet")
    summary = json.loads(run("condense", "--table", "people", "--out", "small", "--json").stdout)
    assert summary["allocation"]["counts"] == [4, 4, 4]
    assert (summary["table"], summary["seed"]) == ("people", 3)
    options = ("--out", "s2", "--json", "--seed", 5, "--ratio", 0.02)
    again = json.loads(run("condense", "--table", "people", *options).stdout)
    assert (again["seed"], again["rows_out"]) == (5, 6)
    listed = run("tables")
    assert listed.exit_code == 0
    for shown in ("people", "'outcome'", "4 %", "300 rows", "7 columns", "Survey."):
        assert shown in listed.stdout
    assert json.loads(run("tables", "--json").stdout) == [
        {"name": "people", "problem": None, "rows": 300, "columns": 7, "label": "outcome"}
    ]


def test_the_catalogue_of_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed_table(60).to_parquet("data.parquet")
    write_catalogue(mine={"source": "../data.parquet", "label": "outcome", "ratios": [0.1]})
    Path("data").rename("elsewhere")
    assert run("tables").exit_code == 2
    monkeypatch.setenv("C2TC_CATALOGUE", "elsewhere/catalog.yaml")
    assert "mine" in run("tables").stdout
    assert run("condense", "--table", "mine", "--out", "small").exit_code == 0


def test_tables_names_the_problem_of_each(run: Run) -> None:
    label = {"label": "outcome"}
    write_catalogue(people={"source": "p.parquet", "label": "outcom"}, ghosts={"source": "ghosts.csv", **label})
    mixed_table().to_parquet("data/p.parquet")
    result = run("tables")
    assert result.exit_code == 2
    people, ghosts = result.stdout.splitlines()
    assert "PROBLEM: " in people
    assert "'outcom'" in people
    assert "PROBLEM: " in ghosts
    assert "data/ghosts.csv" in ghosts


def test_ascii_terminal(run: Run) -> None:
    mixed_table(120, classes=2).replace("class a", "café →").to_csv("t.csv", index=False)
    done = run_process("condense", "t.csv", "--label", "outcome", "--out", "small", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert b"caf\\xe9 \\u2192" in done.stdout
    assert files_in("small") == FILES
