"""The speed benchmark as a document, a table and figures."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pandas as pd
import pytest

from c2tc_pipeline.bench.reports.speed import noise_sentence, speed_markdown, write_speed
from c2tc_pipeline.bench.speed.measuring import Noise, SpeedRow, to_frame
from c2tc_pipeline.bench.speed.run import SpeedRun

MACHINE = {"cores": 2, "processor": "an *abacus*", "system": "", "python": "3", "versions": {}, "torch_threads": 2}


SETTINGS = {"repeats": 3, "time_limit": 300.0}


@pytest.fixture
def done() -> SpeedRun:
    compared = SpeedRow(
        part="search",
        table="jannis",
        ratio=0.01,
        what="optimal",
        seconds=0.5,
        reference="theirs",
        reference_seconds=30.0,
        at_least=True,
        objective=7.0,
        reference_objective=8.0,
        aim="40 x",
        holds=True,
    )
    rows = [
        SpeedRow(part="stages", table="covertype", what="read|it", seconds=1.5, noisy=True, note="cold"),
        compared,
        SpeedRow(part="whole", what="all", seconds=3.0, reference="MLP", reference_seconds=2.0, aim="2 x", holds=False),
        SpeedRow(part="rivals", what="ours", seconds=3.0, reference="DM", aim="100 x"),
    ]
    return SpeedRun(to_frame(rows), Noise.of([0.05] * 8), MACHINE, SETTINGS, ("rivals: left out.",))


def test_the_document_says_what_holds(done: SpeedRun) -> None:
    text = speed_markdown(done, command="c2tc bench speed")
    lines = {line.split(" | ")[1]: line for line in text.splitlines() if line.startswith("| ") and "---" not in line}
    assert "1 of 3 aims are reached; 1 can't be told." in text
    assert r"read\|it" in next(name for name in lines if name.startswith("read"))
    assert "noisy; cold" in lines[r"read\|it"]
    assert "at least 60" in lines["optimal"]
    assert "objective 7 against 8" in lines["optimal"]
    assert "| yes |" in lines["optimal"]
    assert "| no |" in lines["all"]
    assert "can't be told" in lines["ours"]
    assert r"an \*abacus\*" in text
    assert "rivals\\: left out." in text
    assert "`c2tc bench speed`" in text


def test_a_noisy_run_says_so_first() -> None:
    assert noise_sentence(Noise.of([0.05] * 4)).startswith("The machine was steady")
    run = SpeedRun(to_frame([]), Noise.of([0.05, 0.05, 0.1, 0.1]), MACHINE, SETTINGS)
    assert speed_markdown(run).splitlines()[2].startswith("The machine was too noisy to tell")


@pytest.mark.parametrize(("load", "said"), [(None, False), (0.1, False), (1.9, True)])
def test_a_machine_that_others_use_is_told(done: SpeedRun, load: float | None, said: bool) -> None:
    busy = dataclasses.replace(done, machine={**MACHINE, "load_before": load})
    assert ("It was not idle: in the minute before, 1.9 processes" in speed_markdown(busy)) is said


def test_the_files(done: SpeedRun, tmp_path: Path) -> None:
    write_speed(done, tmp_path)
    assert (tmp_path / "figures/search.png").read_bytes()[:4] == b"\x89PNG"
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "speed.parquet"), done.rows)
    facts = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    assert facts["machine"]["cores"] == 2
    assert {path.stem for path in (tmp_path / "figures").iterdir()} == {"search", "whole"}
    assert facts["noise"]["too_much"] is False
    assert "(figures/search.png)" in (tmp_path / "speed.md").read_text(encoding="utf-8")


def test_without_a_comparison_there_is_no_picture(tmp_path: Path) -> None:
    rows = to_frame([SpeedRow(part="stages", what="read", seconds=1.0)])
    write_speed(SpeedRun(rows, Noise.of([]), MACHINE, SETTINGS), tmp_path)
    assert not (tmp_path / "figures").exists()
