"""A run as a whole: which parts are measured, what is marked, and the files that come out."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd
import pytest

from c2tc_pipeline.bench.reports.speed import noise_sentence, speed_markdown, write_speed
from c2tc_pipeline.bench.speed import run as module
from c2tc_pipeline.bench.speed.bench import Bench
from c2tc_pipeline.bench.speed.noise import Noise, NoiseProbe
from c2tc_pipeline.bench.speed.row import SpeedRow, to_frame
from c2tc_pipeline.bench.speed.run import PARTS, SpeedRun, measure_speed
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.tools.made_tables import mixed_table

MACHINE = {"cores": 2, "processor": "an *abacus*", "system": "", "python": "3", "versions": {}, "torch_threads": 2}
Names = Sequence[str]
SETTINGS = {"repeats": 3, "time_limit": 300.0}


def never(*_: object) -> NoReturn:
    raise AssertionError("nothing is condensed from files here")


def measure(data: Path | None, bench: Bench | None = None, *, parts: Names = (), tables: Names = ()) -> SpeedRun:
    bench = bench or Bench(repeats=1, probe=NoiseProbe(lambda: None))
    return measure_speed(data, condense_file=never, bench=bench, parts=parts, tables=tables)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with one of the tables, far too small."""
    folder = tmp_path / "tables"
    folder.mkdir()
    mixed_table(200).rename(columns={"outcome": "Delay"}).to_parquet(folder / "airlines.parquet")
    return folder


def test_parts_without_tables_are_left_out_with_a_sentence(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "warm_up", lambda *_: None)
    told: list[str] = []
    ticks = iter(range(10**6))
    bench = Bench(
        repeats=1, time_limit=0.5, report=told.append, clock=lambda: next(ticks), probe=NoiseProbe(lambda: None)
    )
    done = measure(data, bench, parts=["search", "rivals"])
    assert set(done.rows["part"]) == {"search"}
    assert done.left_out == (
        "search: left out for want of covertype.parquet, jannis.parquet.",
        "rivals: left out for want of adult.parquet.",
    )
    measured = [line for line in told if "times as fast" in line]
    assert len(measured) == len(done.rows)
    assert told[-1] == done.left_out[-1]


def test_rows_of_noisy_moments_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(repeats=1, probe=NoiseProbe(lambda: None))
    rows = [SpeedRow(part="throughput", what=str(p), probe_seconds=p) for p in (0.05, 0.2)]
    monkeypatch.setattr(module, "warm_up", lambda bench, _: bench.probe.times.extend([0.05] * 9 + [0.2]))
    monkeypatch.setitem(PARTS, "throughput", module.Part((), lambda t, b, f: iter(rows)))
    done = measure(None, bench, parts=["throughput"])
    assert done.rows["noisy"].tolist() == [False, True]
    assert "load_before" in done.facts()["machine"]
    assert not done.noise.too_much


def test_warming_up_leaves_no_trace(tmp_path: Path) -> None:
    bench = Bench(probe=NoiseProbe(lambda: None))
    module.warm_up(bench, None)
    assert bench.probe.times == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"parts": ["serch"]}, "no part 'serch'; choose among: stages, search"),
        ({"tables": ["higgs"]}, "no table 'higgs'; choose among: covertype"),
        ({"parts": ["rivals"]}, r"has none of adult\.parquet"),
        ({"tables": ["jannis"]}, r"has none of jannis\.parquet"),
        ({"parts": ["rivals"], "tables": ["jannis"]}, "choose more of either"),
    ],
)
def test_mistakes_are_told_before_anything_runs(data: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        measure(data, **options)
    assert str(caught.value).count("\n") == 0


def test_every_table_that_is_looked_for_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        measure(tmp_path)
    assert all(f"{name}.parquet" in str(caught.value) for part in PARTS.values() for name in part.tables)
    with pytest.raises(InputError, match="--data"):
        measure(None)


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
