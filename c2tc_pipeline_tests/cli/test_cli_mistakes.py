"""Mistakes on the command line: one sentence, exit code 2, and an unchanged folder."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pandas as pd
import pytest

import c2tc_pipeline.reports.html
from c2tc_pipeline_tests.tools.command_line import Run, write_catalogue
from c2tc_pipeline_tests.tools.made_tables import everything_below


def assert_refused(run: Run, arguments: list[str], mentioned: str) -> str:
    """Expect one sentence on stderr that mentions what is wrong, exit code 2, and the folder as it was; return it."""
    before = everything_below(Path())
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    sentence = result.stderr.splitlines()[-1]
    assert re.fullmatch(r"Error: .*\.", sentence)
    assert result.stderr.count("Error") == 1
    assert "Traceback" not in result.stderr
    assert not re.search(r"[.?!] [A-Z]", sentence), "more than one sentence"
    assert mentioned in sentence
    assert everything_below(Path()) == before
    return sentence


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        ('{"tables": {"a": {"source": "a.csv"}}}', "'label'"),
        ("tables: [", "catalog.yaml"),
    ],
)
def test_broken_catalogue(run: Run, text: str, mentioned: str) -> None:
    write_catalogue()
    Path("data/catalog.yaml").write_text(text)
    for command in (["tables"], ["condense", "--table", "a", "--out", "small"]):
        assert_refused(run, command, mentioned)


@pytest.mark.parametrize("name", ["../people", "nobody", "people/.."])
def test_unknown_table(run: Run, name: str) -> None:
    write_catalogue(people={"source": "p.parquet", "label": "outcome"})
    assert_refused(run, ["condense", "--table", name, "--out", "small"], repr(name))


FILES = {
    "no such file": (["none.csv", "--label", "y"], "none.csv"),
    "a folder": (["..", "--label", "y"], "folder"),
    "unknown kind": (["people.xls", "--label", "y"], "people.xls"),
    "no such label": (["people.csv", "--label", "outcom"], "'outcom'"),
    "no label named": (["people.csv"], "--label"),
}
# A CSV file with the label "y", and what the message mentions.
TABLES = {
    "one class": (b"x,y\n1,a\n2,a\n", "'a'"),
    "infinities": (b"x,y\n1.5,a\ninf,b\n2.5,a\n", "row 2"),
    "ragged": (b"x,y\n1,a\n2,b,c\n", "row 2"),
}


@pytest.mark.parametrize("case", [*FILES, *TABLES])
def test_bad_tables(run: Run, people: Path, case: str) -> None:
    split = ["--split"] if case in ("one class", "all labels missing", "infinities") else []
    if case in FILES:
        arguments, mentioned = FILES[case]
    else:
        content, mentioned = TABLES[case]
        Path("bad.csv").write_bytes(content)
        arguments = ["bad.csv", "--label", "y"]
    assert_refused(run, ["condense", *arguments, "--out", "small", *split], mentioned)


@pytest.mark.parametrize(
    ("options", "mentioned"),
    [
        ("--ratio 1.5", "atio is 1.5"),
        ("--ratio little", "'little'"),
        ("--ratio 0,01", "0.01"),
        ("--ratio 200%", "2"),
        ("--split --seeds 3", "--evaluate"),
        ("--rows 2", "at least 3"),
        ("--rows 301", "at most 300"),
        ("--ratio 0.1 --rows 9", "--rows"),
        ("--evaluate", "--split"),
        ("--split --evaluate --seeds 0", "0"),
        ("--role age=colour", "'colour'"),
        ("--role aeg=code", "'age'"),
        ("--role outcome=code", "label"),
        ("--role age", "COLUMN=ROLE"),
        ("--role job=numeric", "'job'"),
        ("--gamma high", "gamma"),
        ("--allocation fair", "'fair'"),
        ("--seed -1", "-1"),
        ("--min-rows-per-condensed-row 0", "0"),
        ("--representative medoid --min-rows-per-condensed-row 2", "'medoid'"),
        ("--table people", "both"),
        ("--engine dask://127.0.0.1:9", "'dask://127.0.0.1:9'"),
        ("--engine spark://127.0.0.1:9", "'spark://127.0.0.1:9'"),
    ],
)
def test_bad_options(run: Run, people: Path, options: str, mentioned: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("c2tc_pipeline.clustering.dask_engine._CONNECT_SECONDS", 0.5)
    arguments = ["condense", str(people), "--label", "outcome", "--out", "small"]
    assert_refused(run, [*arguments, *options.split()], mentioned)


def test_missing_arguments(run: Run, people: Path) -> None:
    assert_refused(run, ["condense", str(people), "--label", "outcome"], "--out")
    assert_refused(run, ["condense", "--out", "small"], "FILE")


def test_a_ratio_in_percent(run: Run, people: Path) -> None:
    arguments = ["condense", str(people), "--label", "outcome", "--quiet", "--no-cache"]
    for out, ratio in (("share", "0.05"), ("percent", "5%")):
        assert run(*arguments, "--out", out, "--ratio", ratio).exit_code == 0
    first, second = (pd.read_parquet(f"{out}/condensed.parquet") for out in ("share", "percent"))
    pd.testing.assert_frame_equal(first, second)


def test_a_folder_that_may_not_be_written_to_is_noticed_before_rows_are_drawn(
    run: Run, people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("condense", str(people), "--label", "outcome", "--out", "small", "--no-cache").exit_code == 0

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    # A superuser may write everywhere.
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert_refused(run, ["expand", "small", "--out", "train.parquet"], "'train.parquet'")


def test_an_unknown_catalogue_is_named_without_options_of_other_commands(run: Run) -> None:
    result = run("tables", "none.yaml")
    assert result.exit_code == 2
    assert "none.yaml" in result.stderr
    assert "--catalogue" not in result.stderr


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_output_of_somebody_else(run: Run, people: Path, kind: str) -> None:
    if kind == "file":
        Path("small").write_text("mine")
    else:
        Path("elsewhere").mkdir()
        Path("elsewhere/thesis.tex").write_text("mine")
        Path("small").symlink_to("elsewhere") if kind == "link" else Path("elsewhere").rename("small")
    assert_refused(run, ["condense", str(people), "--label", "outcome", "--out", "small"], "small")


def test_foreign_file_in_our_output(run: Run, people: Path) -> None:
    arguments = ["condense", str(people), "--label", "outcome", "--out", "small"]
    assert run(*arguments).exit_code == 0
    Path("small/notes.txt").write_text("mine")
    assert_refused(run, arguments, "'notes.txt'")


@pytest.mark.parametrize(
    ("error", "code", "mentioned", "is_first"),
    [
        (KeyboardInterrupt(), 130, "Interrupted", True),
        (OSError(28, "No space left on device"), 1, "No space left on device", False),
        (MemoryError("Unable to allocate 11.3 MiB"), 1, "memory", True),
    ],
    ids=["interrupted", "disk full", "out of memory"],
)
def test_failure_while_writing_changes_nothing(
    run: Run,
    people: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    mentioned: str,
    is_first: bool,
) -> None:
    def fail(_: object) -> str:
        raise error

    arguments = ["condense", str(people), "--label", "outcome", "--out", "small", "--quiet"]
    if not is_first:
        assert run(*arguments).exit_code == 0
    before = everything_below(Path())
    monkeypatch.setattr(c2tc_pipeline.reports.html, "render_report", fail)
    result = run(*arguments)
    assert result.exit_code == code
    assert re.fullmatch(rf"Error: [^\n]*{mentioned}[^\n]*\n", result.stderr)
    assert everything_below(Path()) == before
