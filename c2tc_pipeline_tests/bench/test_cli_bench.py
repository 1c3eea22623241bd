"""``c2tc bench`` as people type it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from c2tc_pipeline_tests.tools.command_line import Run
from c2tc_pipeline_tests.tools.made_tables import mixed_table

GRID = "title: Mine\ntables: [people]\nratios: [0.1]\nmethods: [ours, random]\nmodels: [neighbour]\nseeds: 2\n"


@pytest.fixture
def mine(run: Run) -> list[str]:
    """A grid and a catalogue of one's own in the command's folder, as arguments."""
    Path("mine.yaml").write_text(GRID)
    mixed_table(200).to_parquet("people.parquet")
    Path("catalog.yaml").write_text("tables: {people: {source: people.parquet, label: outcome}}")
    return ["mine.yaml", "--catalogue", "catalog.yaml"]


def test_without_a_name_it_lists_what_there_is(run: Run) -> None:
    result = run("bench")
    assert result.exit_code == 0
    assert {"overall:", "scaling-rows:", "speed:"} <= {line.split(" ")[0] for line in result.stdout.splitlines()}


def test_a_grid_of_ones_own(run: Run, mine: list[str]) -> None:
    result = run("bench", *mine, "--jobs", 0)
    assert result.exit_code == 0, result.output
    out = Path("runs/bench/mine")
    assert f"Written: {out}" in result.stdout
    scores = pd.read_parquet(out / "scores.parquet")
    assert set(scores["method"]) == {"ours", "random", "whole"}
    assert (out / "manifest.json").is_file()
    assert "recipe 'default'" in (out / "table.md").read_text(encoding="utf-8")
    # A second run replaces its own directory, with what was asked for this time.
    changed = ["--seeds", 1, "--methods", "ours", "--recipe", "paper", "--spaces", "label", "--group-duplicates"]
    assert run("bench", *mine, "--jobs", 0, *changed, "--quiet").stdout == ""
    assert set(pd.read_parquet(out / "scores.parquet")["space"]) == {"label"}
    text = (out / "table.md").read_text(encoding="utf-8")
    assert "recipe 'paper'" in text
    assert "rows with equal features on one side" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["overal"], "overal"),
        (["overall"], "--data"),
        (["overall", "--data", "nowhere"], "electricity.parquet"),
        (["overall", "--data", ".", "--methods", "hurding"], "hurding"),
        (["overall", "--data", ".", "--ratios", "1%"], "--ratios"),
        (["overall", "--data", ".", "--models", "mpl"], "mpl"),
        (["overall", "--data", ".", "--spaces", "hfce"], "hfce"),
        (["overall", "--data", ".", "--without", "hurding"], "hurding"),
        (["overall", "--data", ".", "--recipe", "papper"], "papper"),
        (["overall", "--data", ".", "--parts", "search"], "--parts"),
        (["speed"], "--data"),
        (["speed", "--data", "."], "covertype.parquet, jannis.parquet"),
        (["speed", "--data", ".", "--parts", "sorting"], "sorting"),
        (["speed", "--data", ".", "--parts", "rivals"], "adult.parquet"),
        (["speed", "--data", ".", "--parts", "rivals", "--tables", "jannis"], "--tables"),
        (["speed", "--data", ".", "--tables", "people"], "people"),
        (["speed", "--data", ".", "--models", "mlp"], "--models"),
        (["speed", "--data", ".", "--spaces", "label"], "--spaces"),
        (["scale", "--tables", "adult"], "--tables"),
        (["scale", "--seeds", "2"], "--seeds"),
        (["scale", "--parts", "stages"], "--parts"),
        (["scale", "--jobs", "2"], "--jobs"),
        (["overall", "--data", ".", "--rows", "2000"], "--rows"),
    ],
)
def test_mistakes_are_one_sentence(run: Run, change: list[str], said: str) -> None:
    result = run("bench", *change)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert not Path("runs").exists()


def test_speed_is_measured_and_written(run: Run) -> None:
    mixed_table(200, words=True).rename(columns={"outcome": "class"}).to_parquet("adult.parquet")
    asked = ["speed", "--data", ".", "--parts", "autoencoder", "--tables", "adult", "--seeds", 1]
    result = run("bench", *asked)
    assert result.exit_code == 0, result.output
    out = Path("runs/bench/speed")
    assert f"Written: {out}" in result.stdout
    assert "autoencoder, adult: 10 epochs, factorised" in result.stderr
    rows = pd.read_parquet(out / "speed.parquet")
    assert rows[["part", "table", "repeats"]].to_numpy().tolist() == [["autoencoder", "adult", 1]]
    assert {"speed.md", "speed.json", "figures", "manifest.json"} <= {path.name for path in out.iterdir()}
    # A second run replaces its own directory, without a word if so asked.
    again = run("bench", *asked, "--quiet")
    assert again.exit_code == 0
    assert again.output == ""
