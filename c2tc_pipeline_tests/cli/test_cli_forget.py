"""``c2tc forget``: rows by position and by key, what is rewritten, and mistakes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from c2tc_pipeline import CondensedTable
from c2tc_pipeline.cli import job
from c2tc_pipeline.cli.main import main
from c2tc_pipeline.condensation.forget import forget_rows
from c2tc_pipeline.reports import html
from c2tc_pipeline_tests.cli.test_cli_mistakes import assert_refused
from c2tc_pipeline_tests.condensation.test_forget import check_forgotten
from c2tc_pipeline_tests.tools.command_line import Run
from c2tc_pipeline_tests.tools.made_tables import everything_below, mixed_table


@pytest.fixture(scope="module")
def condensed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``people.csv``, which has a key column, and ``small``, which was made from it."""
    folder = tmp_path_factory.mktemp("condensed")
    frame = mixed_table(200).assign(person=[f"p{i // 2:04}@example.org" for i in range(200)])
    frame.to_csv(folder / "people.csv", index=False)
    options = ["--label", "outcome", "--ratio", "0.1", "--out", "small", "--quiet", "--no-cache"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(main, ["condense", "people.csv", *options])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def small(run: Run, condensed: Path) -> None:
    """A copy of that folder to work in."""
    shutil.copytree(condensed, ".", dirs_exist_ok=True)


def ids(*values: object) -> Path:
    path = Path("ids.txt")
    path.write_text("".join(f"{value}\n" for value in values), encoding="utf-8")
    return path


def left() -> set[int]:
    """Return the source rows that the directory still stands for."""
    return set(CondensedTable.load("small").membership["source_row"])


def test_rows_by_position(run: Run, small: None) -> None:
    before = CondensedTable.load("small")
    result = run("forget", "small", "--ids", ids(3, 77, "", 150))
    assert result.exit_code == 0, result.output
    assert "3 source rows" in result.stdout
    after = CondensedTable.load("small")
    assert len(after.membership) == 197
    assert after.summary["forgotten"] == {"rows": 3, "times": 1}
    assert after.summary["repeated_rows"]["total"] >= after.summary["singletons"]
    assert set(before.summary) <= set(after.summary)
    frame = pd.read_csv("people.csv", parse_dates=["since"])
    found = forget_rows(before, frame, np.array([3, 77, 150]))
    check_forgotten(before, frame, [3, 77, 150], found)
    pd.testing.assert_frame_equal(found.table.X, after.X)
    pd.testing.assert_frame_equal(found.table.membership, after.membership)
    assert "3 source rows" in Path("small/report.html").read_text(encoding="utf-8")
    assert sorted(path.name for path in Path().iterdir()) == ["ids.txt", "people.csv", "small"]


def test_repeated_calls(run: Run, small: None) -> None:
    assert run("forget", "small", "--ids", ids(3)).exit_code == 0
    once = everything_below(Path("small"))
    assert run("forget", "small", "--ids", ids(3)).exit_code == 0
    assert everything_below(Path("small")) == once
    assert run("forget", "small", "--ids", ids(77)).exit_code == 0
    assert CondensedTable.load("small").summary["forgotten"] == {"rows": 2, "times": 2}


def test_rows_by_key(run: Run, small: None) -> None:
    result = run("forget", "small", "--ids", ids("p0007@example.org"), "--key", "person", "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert (printed["rows"], printed["rows_in"]) == (2, 198)
    assert left() == set(range(200)) - {14, 15}


def test_split(run: Run, small: None) -> None:
    options = ("--label", "outcome", "--ratio", 0.1, "--quiet", "--split", "--out", "parted")
    assert run("condense", "people.csv", *options).exit_code == 0
    split = pd.read_parquet("parted/split.parquet").set_index("source_row")["side"]
    train, test = (int(split.index[split == side][0]) for side in ("train", "test"))
    assert run("forget", "parted", "--ids", ids(train, test)).exit_code == 0
    assert set(pd.read_parquet("parted/split.parquet")["source_row"]) == set(range(200)) - {train, test}
    assert CondensedTable.load("parted").summary["forgotten"]["rows"] == 1


def test_moved_source(run: Run, small: None) -> None:
    Path("people.csv").rename("moved.csv")
    assert_refused(run, ["forget", "small", "--ids", str(ids(3))], "people.csv")
    assert run("forget", "small", "--ids", "ids.txt", "--source", "moved.csv").exit_code == 0


def test_standard_input_needs_a_source(run: Run, small: None) -> None:
    options = ["--label", "outcome", "--ratio", "0.1", "--out", "piped", "--quiet", "--no-cache"]
    piped = CliRunner().invoke(main, ["condense", "-", *options], input=Path("people.csv").read_bytes())
    assert piped.exit_code == 0, piped.output
    assert_refused(run, ["forget", "piped", "--ids", str(ids(3))], "--source")
    assert run("forget", "piped", "--ids", "ids.txt", "--source", "people.csv").exit_code == 0


def change_source() -> None:
    text = Path("people.csv").read_text(encoding="utf-8")
    Path("people.csv").write_text(text.replace("class a", "class b", 1), encoding="utf-8")


def damage_directory() -> None:
    path = Path("small/condensed.parquet")
    path.write_bytes(path.read_bytes()[:-1] + b"x")


def remove_digest() -> None:
    table = CondensedTable.load("small")
    del table.summary["source_digest"]
    table.save("small", replace=True)


def make_folder() -> None:
    Path("ids.txt").unlink()
    Path("ids.txt").mkdir()


def keep_one_class() -> None:
    frame = pd.read_csv("people.csv")
    ids(*frame.index[frame["outcome"] != "class a"])


@pytest.mark.parametrize(
    ("prepare", "options", "mentioned"),
    [
        (change_source, [], "people.csv"),
        (lambda: ids(3, 200), [], "Line 2 of ids.txt"),
        (lambda: ids("9" * 5_000), [], "ids.txt"),
        (lambda: ids(-1), [], "Line 1 of ids.txt"),
        (lambda: ids("ann"), [], "--key"),
        (lambda: ids("p0001@example.org", "secret@example.org", "x"), ["--key", "person"], "line 2 of ids.txt"),
        (lambda: ids(3), ["--key", "persn"], "'persn'"),
        (lambda: ids(""), [], "ids.txt"),
        (lambda: Path("ids.txt").unlink(), [], "ids.txt"),
        (lambda: Path("ids.txt").write_bytes(b"\xff\xfe\x00"), [], "UTF-8"),
        (make_folder, [], "ids.txt"),
        (damage_directory, [], "condensed.parquet"),
        (remove_digest, [], "small"),
        (keep_one_class, [], "class"),
    ],
)
def test_mistakes(run: Run, small: None, prepare: Callable[[], object], options: list[str], mentioned: str) -> None:
    ids(3)
    prepare()
    sentence = assert_refused(run, ["forget", "small", "--ids", "ids.txt", *options], mentioned)
    assert "secret@example.org" not in sentence


def test_not_a_condensed_table(run: Run) -> None:
    ids(3)
    assert_refused(run, ["forget", "none", "--ids", "ids.txt"], "'none'")
    Path("mine").mkdir()
    Path("mine/diary.txt").write_text("dear diary")
    assert_refused(run, ["forget", "mine", "--ids", "ids.txt"], "mine")


def test_concurrent_forget_is_not_undone(run: Run, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("other.txt").write_text("150\n")
    reports: list[str] = []

    def report(table: CondensedTable, really: Callable[[CondensedTable], str] = html.render_report) -> str:
        reports.append("begun")
        if len(reports) == 1:
            job.forget_in_directory(Path("small"), {1: "150"}, Path("other.txt"))
        return really(table)

    monkeypatch.setattr(html, "render_report", report)
    assert run("forget", "small", "--ids", ids(3)).exit_code == 2
    assert reports == ["begun", "begun"]
    assert [150 in left(), 3 in left()] == [False, True]
    assert run("forget", "small", "--ids", "ids.txt").exit_code == 0
    assert [150 in left(), 3 in left()] == [False, False]
    assert sorted(path.name for path in Path().iterdir()) == ["ids.txt", "other.txt", "people.csv", "small"]


@pytest.mark.parametrize(("is_removed", "code"), [(True, 2), (False, 1)])
def test_removed_directory_or_failure(
    run: Run, small: None, monkeypatch: pytest.MonkeyPatch, is_removed: bool, code: int
) -> None:
    """A directory that is removed meanwhile does not come back; after a failure it is unchanged."""

    def report(table: CondensedTable) -> str:
        if not is_removed:
            raise RuntimeError("no report")
        shutil.rmtree("small")
        return ""

    ids(3)
    before = everything_below(Path())
    monkeypatch.setattr(html, "render_report", report)
    assert run("forget", "small", "--ids", "ids.txt").exit_code == code
    if is_removed:
        assert sorted(path.name for path in Path().iterdir()) == ["ids.txt", "people.csv"]
    else:
        assert everything_below(Path()) == before
