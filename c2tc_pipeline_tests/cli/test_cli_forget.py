"""``c2tc forget``: rows by position and by key, what is rewritten, and mistakes in one sentence."""

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
from c2tc_pipeline.cli import forgetting
from c2tc_pipeline.cli.main import main
from c2tc_pipeline_tests.cli.test_cli_mistakes import assert_refused
from c2tc_pipeline_tests.condensation.test_forget import check_forgotten
from c2tc_pipeline_tests.tools.command_line import Run
from c2tc_pipeline_tests.tools.made_tables import data_hashes, everything_below, mixed_table


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
    assert result.stdout.startswith("Forgot 3 source rows of small: ")
    assert "What the encoder learnt from the rows stays" in result.stdout
    after = CondensedTable.load("small")
    assert len(after.membership) == 197
    assert after.summary["forgotten"] == {"rows": 3, "times": 1}
    assert after.summary["repeated_rows"]["total"] >= after.summary["singletons"]
    assert set(before.summary) <= set(after.summary)
    frame = pd.read_csv("people.csv", parse_dates=["since"])
    found = forgetting.forget_rows(before, frame, np.array([3, 77, 150]))
    check_forgotten(before, frame, [3, 77, 150], found)
    pd.testing.assert_frame_equal(found.table.X, after.X)
    pd.testing.assert_frame_equal(found.table.membership, after.membership)
    page = Path("small/report.html").read_text(encoding="utf-8")
    assert "3 source rows were forgotten after condensing" in page
    assert sorted(path.name for path in Path().iterdir()) == ["ids.txt", "people.csv", "small"]


def test_the_same_twice_and_one_after_the_other(run: Run, small: None) -> None:
    assert run("forget", "small", "--ids", ids(3)).exit_code == 0
    once = everything_below(Path("small"))
    again = run("forget", "small", "--ids", ids(3))
    assert (again.exit_code, again.stdout) == (
        0,
        "No condensed row of small stands for any of these rows; nothing was changed.\n",
    )
    assert everything_below(Path("small")) == once
    assert run("forget", "small", "--ids", ids(77)).exit_code == 0
    assert CondensedTable.load("small").summary["forgotten"] == {"rows": 2, "times": 2}


def test_rows_by_key(run: Run, small: None) -> None:
    result = run("forget", "small", "--ids", ids("p0007@example.org"), "--key", "person", "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert (printed["rows"], printed["rows_in"]) == (2, 198)
    assert set(CondensedTable.load("small").membership["source_row"]) == set(range(200)) - {14, 15}


def test_the_key_may_be_named_when_condensing(run: Run, small: None) -> None:
    options = ("--label", "outcome", "--ratio", 0.1, "--quiet", "--key", "person")
    assert run("condense", "people.csv", *options, "--out", "keyed").exit_code == 0
    assert run("forget", "keyed", "--ids", ids("p0007@example.org")).exit_code == 0
    assert len(CondensedTable.load("keyed").membership) == 198
    assert data_hashes(Path("small")).keys() == data_hashes(Path("keyed")).keys()


def test_split_and_scores(run: Run, small: None) -> None:
    options = ("--label", "outcome", "--ratio", 0.1, "--quiet", "--split")
    assert run("condense", "people.csv", *options, "--out", "parted").exit_code == 0
    split = pd.read_parquet("parted/split.parquet").set_index("source_row")["side"]
    train, test = (int(split.index[split == side][0]) for side in ("train", "test"))
    assert run("forget", "parted", "--ids", ids(train, test)).exit_code == 0
    now = pd.read_parquet("parted/split.parquet")
    assert set(now["source_row"]) == set(range(200)) - {train, test}
    assert CondensedTable.load("parted").summary["forgotten"]["rows"] == 1


def test_a_directory_made_in_blocks(run: Run, small: None) -> None:
    options = ("--label", "outcome", "--ratio", 0.1, "--quiet", "--no-cache", "--min-rows-per-condensed-row", 4)
    for way in ("--blocks", "--no-blocks"):
        assert run("condense", "people.csv", *options, way, "--out", way.strip("-")).exit_code == 0
    blocks, whole = CondensedTable.load("blocks"), CondensedTable.load("no-blocks")
    assert int(blocks.weight.min()) >= 4
    for name in ("repeated_rows", "source_digest", "source"):
        assert blocks.summary[name] == whole.summary[name]
    for name in ("blocks", "no-blocks"):
        assert run("forget", name, "--ids", ids(3, 77, 150)).exit_code == 0
    blocks, whole = CondensedTable.load("blocks"), CondensedTable.load("no-blocks")
    pd.testing.assert_frame_equal(blocks.original, whole.original)
    pd.testing.assert_frame_equal(blocks.membership, whole.membership)


def test_a_moved_source(run: Run, small: None) -> None:
    Path("people.csv").rename("moved.csv")
    assert_refused(run, ["forget", "small", "--ids", str(ids(3))], "There is no file people.csv")
    assert run("forget", "small", "--ids", "ids.txt", "--source", "moved.csv").exit_code == 0


def changed_source() -> None:
    ids(3)
    text = Path("people.csv").read_text(encoding="utf-8")
    Path("people.csv").write_text(text.replace("class a", "class b", 1), encoding="utf-8")


def damaged_directory() -> None:
    ids(3)
    path = Path("small/condensed.parquet")
    path.write_bytes(path.read_bytes()[:-1] + b"x")


def no_digest() -> None:
    ids(3)
    table = CondensedTable.load("small")
    del table.summary["source_digest"]
    table.save("small", replace=True)


def only_one_class() -> None:
    frame = pd.read_csv("people.csv")
    ids(*frame.index[frame["outcome"] != "class a"])


MISTAKES: dict[str, tuple[Callable[[], object], list[str], str]] = {
    "changed source": (changed_source, [], "is not as it was when it was condensed"),
    "beyond the rows": (lambda: ids(3, 200), [], "Line 2 of ids.txt is beyond the last row of the source"),
    "a huge number": (lambda: ids("9" * 5_000), [], "is beyond the last row of the source"),
    "negative": (lambda: ids(-1), [], "Line 1 of ids.txt is no position of a row"),
    "not a number": (lambda: ids("ann"), [], "name the column that holds the ids with --key"),
    "unknown key value": (
        lambda: ids("p0001@example.org", "secret@example.org", "other"),
        ["--key", "person"],
        "The id in line 2 of ids.txt is not in column 'person' of the source, nor is that in 1 more line;",
    ),
    "unknown key": (lambda: ids(3), ["--key", "persn"], "There is no key column 'persn' in people.csv; did you mean"),
    "no ids": (lambda: ids(""), [], "holds no id"),
    "no file": (lambda: None, [], "There is no file ids.txt"),
    "not text": (lambda: Path("ids.txt").write_bytes(b"\xff\xfe\x00"), [], "is not UTF-8 text"),
    "a folder for a file": (lambda: Path("ids.txt").mkdir(), [], "can't be read"),
    "damaged": (damaged_directory, [], "condensed.parquet"),
    "no digest": (no_digest, [], "does not say which source"),
    "one class left": (only_one_class, [], "Rows of one class only would be left"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(run: Run, small: None, name: str) -> None:
    prepare, options, message = MISTAKES[name]
    prepare()
    assert_refused(run, ["forget", "small", "--ids", "ids.txt", *options], message)
    assert "secret@example.org" not in run("forget", "small", "--ids", "ids.txt", *options).output


def test_a_directory_that_is_none(run: Run) -> None:
    ids(3)
    assert_refused(run, ["forget", "none", "--ids", "ids.txt"], "There is no directory 'none'")
    Path("mine").mkdir()
    Path("mine/diary.txt").write_text("dear diary")
    # Not advice for an output, which would be to empty it.
    assert_refused(run, ["forget", "mine", "--ids", "ids.txt"], "it is not a c2tc artefact")


def test_what_another_forgot_meanwhile_does_not_come_back(
    run: Run, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Path("other.txt")
    other.write_text("150\n")
    reports: list[str] = []

    def report(table: CondensedTable, really: Callable[[CondensedTable], str] = forgetting.render_report) -> str:
        reports.append("begun")
        if len(reports) == 1:
            forgetting.forget_in_directory(Path("small"), other)
        return really(table)

    monkeypatch.setattr(forgetting, "render_report", report)
    refused = run("forget", "small", "--ids", ids(3))
    assert refused.exit_code == 2, refused.output
    assert "was replaced or removed meanwhile; run again." in refused.stderr
    assert reports == ["begun", "begun"]
    assert [150 in left(), 3 in left()] == [False, True]
    assert run("forget", "small", "--ids", "ids.txt").exit_code == 0
    assert [150 in left(), 3 in left()] == [False, False]
    assert sorted(path.name for path in Path().iterdir()) == ["ids.txt", "other.txt", "people.csv", "small"]


def test_a_directory_that_is_removed_meanwhile_does_not_come_back(
    run: Run, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def report(table: CondensedTable) -> str:
        shutil.rmtree("small")
        return ""

    monkeypatch.setattr(forgetting, "render_report", report)
    refused = run("forget", "small", "--ids", ids(3))
    assert refused.exit_code == 2
    assert "was replaced or removed meanwhile; run again." in refused.stderr
    assert sorted(path.name for path in Path().iterdir()) == ["ids.txt", "people.csv"]


def test_a_failure_leaves_the_directory_as_it_was(run: Run, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(table: CondensedTable) -> str:
        raise RuntimeError("no report today")

    monkeypatch.setattr(forgetting, "render_report", fail)
    ids(3)
    before = everything_below(Path())
    assert run("forget", "small", "--ids", "ids.txt").exit_code == 1
    assert everything_below(Path()) == before
