"""The command line and mistakes: one sentence, exit code 2, and the folder as it was before."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import c2tc_pipeline.cli.job
from c2tc_pipeline_tests.tools.command_line import Run, run_process, write_catalogue
from c2tc_pipeline_tests.tools.made_tables import everything_below, mixed_table


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"tables": {"../evil": {"source": "a.csv", "label": "y"}}}', "the name may hold lower-case letters"),
        ('{"tables": {"a": {"source": "a.csv"}}}', "field 'label': it is missing"),
        ('{"tables": {"a": {"source": "a.csv", "label": "y", "ratios": [2]}}}', "field 'ratios"),
        ("tables: [", "catalog.yaml"),
        ("", "must have one key, 'tables'"),
    ],
    ids=["name", "no label", "ratio", "not yaml", "empty"],
)
@pytest.mark.parametrize(
    "command", [("tables",), ("condense", "--table", "a", "--out", "small")], ids=["tables", "condense"]
)
def test_a_broken_catalogue(run: Run, command: tuple[str, ...], text: str, message: str) -> None:
    write_catalogue()
    Path("data/catalog.yaml").write_text(text)
    assert_refused(run, [*command], message)


def assert_refused(run: Run, arguments: list[str], message: str) -> None:
    """One sentence on the error stream, exit code 2, and the folder as it was."""
    before = everything_below(Path())
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    sentence = result.stderr.splitlines()[-1]
    assert sentence.startswith("Error: ")
    assert sentence.endswith(".")
    assert result.stderr.count("Error") == 1
    assert "Traceback" not in result.stderr
    # A stop followed by a capital would begin a second sentence.
    assert not re.search(r"[.?!] [A-Z]", sentence)
    assert message in sentence
    assert everything_below(Path()) == before


def csv(text: str | bytes) -> Callable[[], list[str]]:
    """A bad table: writes it and returns the arguments."""

    def write() -> list[str]:
        Path("bad.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
        return ["bad.csv", "--label", "y"]

    return write


def truncated_parquet() -> list[str]:
    mixed_table().to_parquet("bad.parquet")
    Path("bad.parquet").write_bytes(Path("bad.parquet").read_bytes()[:-200])
    return ["bad.parquet", "--label", "outcome"]


def infinite_parquet() -> list[str]:
    mixed_table().assign(amount=[1.5] * 299 + [np.inf]).to_parquet("bad.parquet")
    return ["bad.parquet", "--label", "outcome"]


MANY = "".join(f"{n / 7},{n % 3}\n" for n in range(60))
BAD_TABLES: dict[str, tuple[Callable[[], list[str]], str]] = {
    "no such file": (lambda: ["none.csv", "--label", "y"], "There is no file none.csv"),
    "a folder": (lambda: [".", "--label", "y"], "is a folder"),
    "unknown kind": (lambda: ["people.xls", "--label", "y"], "kind of file people.xls is not known"),
    "no such label": (lambda: ["people.csv", "--label", "outcom"], "There is no label column 'outcom'"),
    "no label named": (lambda: ["people.csv"], "name it with --label"),
    "one class": (csv("x,y\n1,a\n2,a\n"), "one class only ('a')"),
    "all labels missing": (csv("x,y\n1,\n2,\n"), "'y' is empty in every row"),
    "continuous label": (csv("y,x\n" + MANY), "looks continuous"),
    "no rows": (csv("x,y\n"), "has no rows"),
    "no bytes": (csv(""), "bad.csv"),
    "no features": (csv("y\na\nb\n"), "no column besides the label"),
    "constant features": (csv("x,y\n1,a\n1,b\n"), "No feature column is left"),
    "duplicate columns": (csv("x,x,y\n1,2,a\n3,4,b\n"), "'x'"),
    "infinities in CSV": (
        csv("x,y\n1.5,a\ninf,b\n2.5,a\n"),
        "Column 'x' holds 1 infinite values, the first in data row 2",
    ),
    "infinities in Parquet": (infinite_parquet, "Column 'amount' holds 1 infinite values, the first in data row 300"),
    "not UTF-8": (csv(b"x,y\n1,a\n2,b\n3,caf\xe9\n"), "row 3"),
    "ragged": (csv("x,y\n1,a\n2,b,c\n"), "row 2"),
    "truncated Parquet": (truncated_parquet, "bad.parquet"),
    "not Parquet": (lambda: [str(Path("people.csv").rename("people.parquet")), "--label", "y"], "people.parquet"),
}
OPTIONS: dict[str, tuple[list[str], str]] = {
    "ratio 0": (["--ratio", "0"], "Ratio is 0, but must be above 0 and at most 1"),
    "ratio above 1": (["--ratio", "1.5"], "Ratio is 1.5, but must be above 0 and at most 1"),
    "negative ratio": (["--ratio", "-0.1"], "Ratio is -0.1"),
    "ratio nan": (["--ratio", "nan"], "Ratio is nan"),
    "ratio no number": (["--ratio", "little"], "'little' is not a valid float"),
    "too few rows": (["--rows", "2"], "at least 3, the number of classes"),
    "too many rows": (["--rows", "301"], "at most 300, the number of rows"),
    "ratio and rows": (["--ratio", "0.1", "--rows", "9"], "Both --ratio and --rows"),
    "nothing to evaluate on": (["--evaluate"], "add --split, which keeps some aside"),
    "no seeds": (["--split", "--evaluate", "--seeds", "0"], "0 is not in the range"),
    "unknown role": (["--role", "age=colour"], "Column 'age' can't have the role 'colour'"),
    "role of no column": (["--role", "aeg=code"], "There is no column 'aeg'"),
    "role of the label": (["--role", "outcome=code"], "is the label and can't have a role"),
    "role without a value": (["--role", "age"], "not of the form COLUMN=ROLE"),
    "role that does not fit": (["--role", "job=numeric"], "Column 'job' can't have the role 'numeric'"),
    "gamma no number": (["--gamma", "high"], "gamma is 'high'"),
    "gamma above 1": (["--gamma", "1.5"], "gamma is 1.5"),
    "gamma nan": (["--gamma", "nan"], "gamma is nan"),
    "unknown allocation": (["--allocation", "fair"], "'fair' is not one of"),
    "unknown strings": (["--strings", "guess"], "'guess' is not one of"),
    "negative seed": (["--seed", "-1"], "-1 is not in the range"),
    "no minimum": (["--min-rows-per-condensed-row", "0"], "0 is not in the range"),
    "a minimum above a class": (["--min-rows-per-condensed-row", "100"], "Class 'class b' has"),
    "a minimum without room": (["--rows", "90", "--min-rows-per-condensed-row", "4"], "has room for at most"),
    "a minimum of medoids": (
        ["--representative", "medoid", "--min-rows-per-condensed-row", "2"],
        "'medoid' returns real rows",
    ),
    "key of no column": (["--key", "persn"], "There is no key column 'persn' in people.csv"),
    "file and table": (["--table", "people"], "but not both"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
@pytest.mark.parametrize("split", [[], ["--split"]], ids=["whole", "split"])
def test_bad_tables(run: Run, people: Path, case: str, split: list[str]) -> None:
    write, message = BAD_TABLES[case]
    assert_refused(run, ["condense", *write(), "--out", "small", *split], message)


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_options(run: Run, people: Path, case: str) -> None:
    options, message = OPTIONS[case]
    assert_refused(run, ["condense", str(people), "--label", "outcome", "--out", "small", *options], message)


def test_no_place_to_write_to(run: Run, people: Path) -> None:
    assert_refused(run, ["condense", str(people), "--label", "outcome"], "Missing option '--out'")


def test_neither_file_nor_table(run: Run) -> None:
    assert_refused(run, ["condense", "--out", "small"], "Name a FILE to condense")


@pytest.mark.parametrize("name", ["../people", "nobody", "people/.."])
def test_a_table_that_the_catalogue_does_not_have(run: Run, name: str) -> None:
    write_catalogue(people={"source": "p.parquet", "label": "outcome"})
    assert_refused(run, ["condense", "--table", name, "--out", "small"], f"There is no table {name!r}")


def make_folder_of_others() -> None:
    Path("small").mkdir()
    Path("small/thesis.tex").write_text("In the beginning")


def make_file() -> None:
    Path("small").write_text("mine")


def make_link() -> None:
    Path("elsewhere").mkdir()
    Path("small").symlink_to("elsewhere")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (make_folder_of_others, "was not made by c2tc"),
        (make_file, "is not a directory"),
        (make_link, "is not a directory"),
    ],
)
def test_an_output_that_is_not_ours(run: Run, people: Path, make: Callable[[], None], message: str) -> None:
    make()
    assert_refused(run, ["condense", str(people), "--label", "outcome", "--out", "small"], message)


def test_a_file_of_the_user_in_our_directory(run: Run, people: Path) -> None:
    arguments = ["condense", str(people), "--label", "outcome", "--out", "small"]
    assert run(*arguments).exit_code == 0
    Path("small/notes.txt").write_text("mine")
    assert_refused(run, arguments, "holds 'notes.txt', which c2tc did not write")


@pytest.mark.parametrize("first", [True, False], ids=["nothing there", "a result there"])
@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (KeyboardInterrupt(), 130, "Error: Interrupted; nothing was written."),
        (OSError(28, "No space left on device"), 1, "Error: No space left on device"),
        (
            MemoryError("Unable to allocate 11.3 MiB"),
            1,
            "Error: The memory is not enough; 'c2tc condense --blocks' takes little of it, however large the table is.",
        ),
    ],
    ids=["interrupted", "disk full", "out of memory"],
)
def test_a_run_that_fails_while_writing_leaves_what_was_there(
    run: Run,
    people: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: bool,
    error: BaseException,
    code: int,
    printed: str,
) -> None:
    arguments = ["condense", str(people), "--label", "outcome", "--out", "small", "--quiet"]
    if not first:
        assert run(*arguments).exit_code == 0
    before = everything_below(Path())

    def fail(_: object) -> str:
        raise error

    monkeypatch.setattr(c2tc_pipeline.cli.job, "render_report", fail)
    result = run(*arguments)
    assert result.exit_code == code
    assert result.stderr.strip() == printed
    assert everything_below(Path()) == before


def test_a_mistake_in_a_process_of_its_own(run: Run, people: Path) -> None:
    before = everything_below(Path())
    done = run_process("condense", people, "--label", "outcom", "--out", "small", "--quiet")
    assert done.returncode == 2
    assert done.stdout == b""
    assert re.fullmatch(rb"Error: There is no label column 'outcom' in the table; [^\n]*\.\n", done.stderr)
    assert everything_below(Path()) == before
