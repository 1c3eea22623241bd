"""``c2tc run`` and ``c2tc ui`` at a prompt: what is printed, where results are, exit codes.

Which runs follow which is in ``orchestration/test_runner.py``.
"""

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
from c2tc_pipeline_tests.tools.command_line import Run, write_catalogue
from c2tc_pipeline_tests.tools.made_tables import everything_below, mixed_table

PEOPLE = {
    "source": "p.parquet",
    "label": "outcome",
    "ratios": [0.1, 0.05],
    "evaluation": {"seeds": 1, "models": ["boosting"]},
    # Real rows, so that a check has something to warn about.
    "settings": {"representative": "medoid"},
    "checks": {"repeated_rows": 0.0},
}


@dataclass
class TwoRuns:
    """All of a catalogue with a good and a bad table, then one ratio of the good one: kept, forced, with a setting."""

    folder: Path
    first: Result
    kept: Result
    again: Result
    changed: Result


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoRuns]:
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("C2TC_CACHE_DIR", str(folder / "cache"))
        for name in ("C2TC_CATALOGUE", "C2TC_STORAGE", "DAGSTER_HOME"):
            patch.delenv(name, raising=False)
        # More rows than clusters of one can swallow, fewer than a test should wait for.
        write_catalogue(people=PEOPLE, visits={"source": "v.parquet", "label": "outcome"})
        mixed_table().to_parquet("data/p.parquet")
        mixed_table().drop(columns="outcome").to_parquet("data/v.parquet")
        first = CliRunner().invoke(main, ["run"])
        one = ["run", "--table", "people", "--ratio", "0.1"]
        kept, again = CliRunner().invoke(main, one), CliRunner().invoke(main, [*one, "--force"])
        write_catalogue(people={**PEOPLE, "evaluation": {"seeds": 2, "models": ["boosting"]}})
        yield TwoRuns(folder, first, kept, again, CliRunner().invoke(main, [*one, "--out", "elsewhere"]))


def lines(result: Result) -> list[list[str]]:
    """Return mark, asset and partition of each line about an asset."""
    return [line.split()[:3] for line in result.stderr.splitlines() if line[:1] in "✓✗"]


def test_a_line_for_each_asset_and_nothing_of_dagster(two_runs: TwoRuns) -> None:
    assert lines(two_runs.first) == [
        *(["✓", asset, "people"] for asset in ("raw_table", "validated_table", "encoder", "encoded_table")),
        *(
            ["✓", asset, f"people|{ratio}"]
            for ratio in (0.1, 0.05)
            for asset in ("cluster_allocation", "condensed_table", "evaluation_scores")
        ),
        ["✓", "report", "people"],
        ["✓", "raw_table", "visits"],
        ["✗", "raw_table_fits_schema", "visits"],
        ["✓", "leaderboard", *lines(two_runs.first)[-1][2:]],
    ]
    assert not re.search(r"DEBUG|INFO|Traceback|STEP_|Warning", two_runs.first.output)


def test_warnings_of_checks_are_shown(two_runs: TwoRuns) -> None:
    warned = [line for line in two_runs.first.stderr.splitlines() if line.startswith("! ")]
    assert [line for line in warned if "few_repeated_rows" in line and "condensed rows repeat a source row" in line]


def test_a_bad_table_is_one_sentence_and_the_other_goes_on(two_runs: TwoRuns) -> None:
    assert two_runs.first.exit_code == 2
    [error] = [line for line in two_runs.first.stderr.splitlines() if line.startswith("Error: ")]
    assert "outcome" in error
    assert error == two_runs.first.stderr.splitlines()[-1]
    assert not (two_runs.folder / "runs" / "results" / "visits").exists()


def test_the_table_at_the_end(two_runs: TwoRuns) -> None:
    printed = two_runs.first.stdout
    for ratio, rows in ((0.1, 24), (0.05, 12)):
        scores = pd.read_parquet(two_runs.folder / "runs" / "results" / "people" / repr(ratio) / "scores.parquet")
        by_set = scores.set_index("training_set")
        shown = [
            " / ".join(f"{100 * by_set[metric][kind]:.1f}" for kind in ("condensed", "random", "whole"))
            for metric in ("accuracy", "macro_f1")
        ]
        assert re.search(rf"{ratio} +241 → {rows} +boosting +{shown[0]} +{shown[1]} +\d+ s", printed), printed
    assert max(map(len, printed.splitlines())) <= 80


def test_the_results_can_be_opened(two_runs: TwoRuns) -> None:
    folder = two_runs.folder / "runs" / "results" / "people"
    assert two_runs.first.stdout.splitlines()[-3:] == [
        "Report: runs/results/people/report.html",
        "Condensed: runs/results/people/0.1/condensed_original.parquet",
        "Condensed: runs/results/people/0.05/condensed_original.parquet",
    ]
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!")
    assert [len(CondensedTable.load(folder / name)) for name in ("0.1", "0.05")] == [24, 12]
    verify_directory(folder, kind="pipeline-results")


def test_what_is_up_to_date_is_not_made_again(two_runs: TwoRuns) -> None:
    for result, made in ((two_runs.kept, []), (two_runs.changed, ["evaluation_scores", "report", "leaderboard"])):
        assert result.exit_code == 0, result.stderr
        assert [line[1] for line in lines(result)] == made
        kept = [line.split()[1] for line in result.stderr.splitlines() if line.startswith("= ")]
        assert [*kept, *made] == sorted([*kept, *made], key=list(PARENTS).index)
        assert set(kept) | set(made) == set(PARENTS)
        assert "0.05" not in result.stdout
        assert "people/report.html" in result.stdout


def test_one_ratio_again(two_runs: TwoRuns) -> None:
    assert two_runs.again.exit_code == 0, two_runs.again.stderr
    assert [line.split()[1] for line in two_runs.again.stderr.splitlines() if line.endswith("cached")] == [
        "cluster_allocation",
        "evaluation_scores",
    ]
    assert "0.05" not in two_runs.again.stdout
    store = ArtefactStore(two_runs.folder / "runs" / "store")
    assert [store.newest_version(f"condensed_table/people|{ratio}") for ratio in (0.1, 0.05)] == [2, 1]
    # The report is about both, and so is the folder.
    assert (two_runs.folder / "runs" / "results" / "people" / "0.05" / "condensed.parquet").is_file()


def test_runs_are_on_the_instance_that_the_dashboard_shows(two_runs: TwoRuns) -> None:
    with open_instance(two_runs.folder / "runs" / "dagster") as instance:
        forced = [("ingest_job", "people"), ("condense_job", "people|0.1"), ("report_job", "people")]
        found = [(run.job_name, run.tags.get("dagster/partition")) for run in reversed(instance.get_runs())]
        assert found[-7:] == [*forced, ("leaderboard_job", None), *forced[1:], ("leaderboard_job", None)]


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
    ("arrange", "message"),
    [
        (lambda: ["run", "--table", "peple"], "There is no table 'peple'"),
        (lambda: ["run", "--ratio", "0.5"], "Table 'people' is not condensed to the ratio 0.5; choose one of"),
        (lambda: ["run", "--storage", "ftp://host/store"], "The storage root has an unknown form"),
        (lambda: ["run", "--storage", "s3://user:secret@bucket"], "credentials belong into"),
        (no_catalogue, "There is no catalogue 'data/catalog.yaml' here"),
        (taken_folder, "was not made by c2tc"),
        (home_is_a_file, "set DAGSTER_HOME to another"),
        (lambda: ["ui", "--storage", "memory://short"], "memory:// ends with the process"),
        (lambda: ["ui", "--catalogue", "none.yaml"], "There is no catalogue 'none.yaml' here"),
        (lambda: ["ui", "--host", "192.0.2.1"], "The address 192.0.2.1:3000 can't be used"),
    ],
)
def test_mistakes_are_refused_before_anything_runs(run: Run, arrange: Callable[[], list[str]], message: str) -> None:
    write_catalogue(people=PEOPLE)
    arguments = arrange()
    before = everything_below(Path())
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert re.fullmatch(r"Error: [^\n]*\.\n", result.stderr)
    assert message in result.stderr
    assert "secret" not in result.output
    assert everything_below(Path()) == before


def test_a_port_that_is_taken(run: Run) -> None:
    write_catalogue(people=PEOPLE)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = run("ui", "--port", port)
    assert result.exit_code == 2
    assert re.fullmatch(
        rf"Error: The address 127.0.0.1:{port} can't be used \(.*\); choose another.*\.\n", result.stderr
    )


def test_without_the_webserver(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write_catalogue(people=PEOPLE)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = run("ui")
    assert result.exit_code == 2
    assert "pip install 'c2tc_pipeline[ui]'" in result.stderr


@pytest.mark.parametrize(
    ("mistakes", "code"), [([True], 2), ([False], 1), ([True, False], 1)], ids=["mistake", "fault", "both"]
)
def test_exit_codes(run: Run, monkeypatch: pytest.MonkeyPatch, mistakes: list[bool], code: int) -> None:
    write_catalogue(people=PEOPLE)
    failures = [RunEvent("failed", "encoder", "RuntimeError: [boom]", mistake=mistake) for mistake in mistakes]
    monkeypatch.setattr(runner, "run_tables", lambda *_, **__: ([TableRun("people", failures=failures)], []))
    result = run("run")
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "Error: RuntimeError: [boom]"
        if mistake
        else "Error: encoder failed (RuntimeError: [boom]); c2tc ui shows its log."
        for mistake in mistakes
    ]


def test_interrupted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write_catalogue(people=PEOPLE)

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_tables", interrupt)
    result = run("run")
    assert result.exit_code == 130
    assert result.stderr == "Error: Interrupted; what was finished before is stored, and nothing of the rest.\n"
