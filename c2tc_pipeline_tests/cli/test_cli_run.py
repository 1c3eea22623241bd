"""``c2tc run`` and ``c2tc ui``: what is printed, where results are, exit codes."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from c2tc_pipeline import CondensedTable
from c2tc_pipeline.cli.main import main
from c2tc_pipeline.pipeline import runner
from c2tc_pipeline.pipeline.instance import open_instance
from c2tc_pipeline.pipeline.run_events import RunEvent
from c2tc_pipeline.pipeline.runner import TableRun
from c2tc_pipeline.pipeline.versioning import PARENTS
from c2tc_pipeline.storage.artefact import verify_directory
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline_tests.pipeline.pipeline_rig import without_pictures
from c2tc_pipeline_tests.tools.command_line import Run, write_catalogue
from c2tc_pipeline_tests.tools.made_tables import everything_below, mixed_table

PEOPLE = {
    "source": "p.parquet",
    "label": "outcome",
    "ratios": [0.1, 0.05],
    "evaluation": {"seeds": 1, "models": ["logistic"]},
    # Real rows, so that a check has something to warn about.
    "settings": {"representative": "medoid"},
    "checks": {"repeated_rows": 0.0},
}


@dataclass
class TwoRuns:
    """All of a catalogue with a good and a bad table, then one ratio of the good one: kept and forced."""

    folder: Path
    first: Result
    kept: Result
    again: Result


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoRuns]:
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        without_pictures(patch)
        patch.setenv("C2TC_CACHE_DIR", str(folder / "cache"))
        for name in ("C2TC_CATALOGUE", "C2TC_STORAGE", "DAGSTER_HOME"):
            patch.delenv(name, raising=False)
        write_catalogue(people=PEOPLE, visits={"source": "v.parquet", "label": "outcome"})
        mixed_table().to_parquet("data/p.parquet")
        mixed_table().drop(columns="outcome").to_parquet("data/v.parquet")
        first = CliRunner().invoke(main, ["run"])
        one = ["run", "--table", "people", "--ratio", "0.1"]
        kept = CliRunner().invoke(main, [*one, "--out", "elsewhere"])
        yield TwoRuns(folder, first, kept, CliRunner().invoke(main, [*one, "--force"]))


def lines(result: Result) -> list[list[str]]:
    """Return mark, asset and partition of each line about an asset."""
    return [line.split()[:3] for line in result.stderr.splitlines() if line[:1] in "✓✗"]


def test_progress(two_runs: TwoRuns) -> None:
    """A line for each asset, a line for each warning of a check, and nothing of Dagster's own log."""
    *made, board, overview = lines(two_runs.first)
    # The order of ratios is Dagster's.
    assert sorted(made) == sorted(
        [
            *(["✓", asset, "people"] for asset in ("raw_table", "validated_table", "encoder", "encoded_table")),
            *(
                ["✓", asset, f"people|{ratio}"]
                for asset in ("cluster_allocation", "condensed_table", "training_rows", "evaluation_scores")
                for ratio in (0.05, 0.1)
            ),
            ["✓", "report", "people"],
            ["✓", "raw_table", "visits"],
            ["✗", "validated_table", "visits"],
        ]
    )
    assert (board[:2], overview[:2]) == (["✓", "leaderboard"], ["✓", "ops_overview"])
    assert not re.search(r"DEBUG|INFO|Traceback|STEP_|Warning", two_runs.first.output)
    assert re.search(r"(?m)^! .*few_repeated_rows", two_runs.first.stderr)


def test_a_bad_table_does_not_stop_the_others(two_runs: TwoRuns) -> None:
    assert two_runs.first.exit_code == 2
    [error] = [line for line in two_runs.first.stderr.splitlines() if line.startswith("Error: ")]
    assert "outcome" in error
    results = two_runs.folder / "runs" / "results"
    assert not (results / "visits").exists()
    page = (results / "overview.html").read_text(encoding="utf-8")
    assert 0 < page.index("<td>visits") < page.index('href="people/report.html"')


def test_results(two_runs: TwoRuns) -> None:
    folder = two_runs.folder / "runs" / "results" / "people"
    printed = two_runs.first.stdout
    for ratio, rows in ((0.1, 24), (0.05, 12)):
        scores = pd.read_parquet(folder / repr(ratio) / "scores.parquet")
        by_set = scores[scores["columns"] == "encoded"].set_index("training_set")
        shown = [
            "/".join(f"{100 * by_set[metric][kind]:.1f}" for kind in ("condensed", "random", "whole"))
            for metric in ("accuracy", "auc")
        ]
        assert re.search(rf"{100 * ratio:g} % +{rows} +logistic +{shown[0]} +{shown[1]} +\S", printed), printed
        assert len(CondensedTable.load(folder / repr(ratio))) == rows
        assert f"runs/results/people/{ratio}/condensed_original.parquet" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert "runs/results/people/report.html" in printed
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!")
    verify_directory(folder, kind="pipeline-results")


def test_what_is_up_to_date_is_not_made_again(two_runs: TwoRuns) -> None:
    result = two_runs.kept
    assert result.exit_code == 0, result.stderr
    assert lines(result) == []
    assert {line.split()[1] for line in result.stderr.splitlines() if line.startswith("= ")} == set(PARENTS)
    assert not re.search(r"0\.05|^5 %", result.stdout, re.MULTILINE)
    assert "people/report.html" in result.stdout


def test_one_ratio_again(two_runs: TwoRuns) -> None:
    assert two_runs.again.exit_code == 0, two_runs.again.stderr
    cached = [line.split()[1] for line in two_runs.again.stderr.splitlines() if line.endswith("cached")]
    assert cached == ["cluster_allocation", "evaluation_scores"]
    assert not re.search(r"0\.05|^5 %", two_runs.again.stdout, re.MULTILINE)
    store = ArtefactStore(two_runs.folder / "runs" / "store")
    assert [store.newest_version(f"condensed_table/people|{ratio}") for ratio in (0.1, 0.05)] == [2, 1]
    # The report is about both ratios, and so is the folder.
    assert (two_runs.folder / "runs" / "results" / "people" / "0.05" / "condensed.parquet").is_file()
    with open_instance(two_runs.folder / "runs" / "dagster") as instance:
        found = [run.job_name for run in reversed(instance.get_runs())]
        assert found[-3:] == ["condense_job", "report_job", "leaderboard_job"]


def no_catalogue() -> list[str]:
    Path("data/catalog.yaml").unlink()
    return ["run"]


def taken_folder() -> list[str]:
    Path("mine/people").mkdir(parents=True)
    Path("mine/people/thesis.tex").write_text("In the beginning")
    return ["run", "--out", "mine"]


def home_is_a_file() -> list[str]:
    Path("file").write_text("")
    return ["run", "--home", "file"]


@pytest.mark.parametrize(
    ("arrange", "mentioned"),
    [
        (lambda: ["run", "--table", "peple"], "'peple'"),
        (lambda: ["run", "--ratio", "0.5"], "0.5"),
        (lambda: ["run", "--storage", "ftp://host/store"], "storage root"),
        (lambda: ["run", "--storage", "s3://user:secret@bucket"], "credentials"),
        (no_catalogue, "data/catalog.yaml"),
        (taken_folder, "mine"),
        (home_is_a_file, "DAGSTER_HOME"),
        (lambda: ["ui", "--storage", "memory://short"], "memory://"),
        (lambda: ["ui", "--catalogue", "none.yaml"], "none.yaml'"),
        (lambda: ["ui", "--host", "192.0.2.1"], "192.0.2.1:3000"),
    ],
)
def test_mistakes(run: Run, arrange: Callable[[], list[str]], mentioned: str) -> None:
    write_catalogue(people=PEOPLE)
    arguments = arrange()
    before = everything_below(Path())
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert re.fullmatch(r"Error: [^\n]*\.\n", result.stderr)
    assert mentioned in result.stderr
    assert "secret" not in result.output
    assert everything_below(Path()) == before


def test_ui_needs_a_free_port_and_the_webserver(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write_catalogue(people=PEOPLE)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = run("ui", "--port", port)
    assert result.exit_code == 2
    assert f"127.0.0.1:{port}" in result.stderr
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = run("ui")
    assert result.exit_code == 2
    assert "c2tc_pipeline[ui]" in result.stderr


@pytest.mark.parametrize(("mistakes", "code"), [([True], 2), ([False], 1), ([True, False], 1), ([], 130)])
def test_exit_codes(run: Run, monkeypatch: pytest.MonkeyPatch, mistakes: list[bool], code: int) -> None:
    failures = [RunEvent("failed", "people__encoder", "RuntimeError: [boom]", mistake=mistake) for mistake in mistakes]

    def run_tables(*_: object, **__: object) -> tuple[list[TableRun], list[RunEvent]]:
        if not failures:
            raise KeyboardInterrupt
        return [TableRun("people", failures=failures)], []

    write_catalogue(people=PEOPLE)
    monkeypatch.setattr(runner, "run_tables", run_tables)
    result = run("run")
    assert result.exit_code == code
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == max(1, len(mistakes))
    for line, mistake in zip(result.stderr.splitlines(), mistakes, strict=False):
        assert line.startswith("Error: ")
        assert "RuntimeError: [boom]" in line
        assert ("c2tc ui" in line) is not mistake
