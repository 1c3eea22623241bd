"""Cases that once crashed a reader, a few new cases of every target, and properties of what readers accept and show."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from c2tc_pipeline.common.errors import InputError, one_line
from c2tc_pipeline.reports.markdown import Column, markdown_escaped, markdown_table
from c2tc_pipeline.reports.wording import printable
from c2tc_pipeline.sources.location import without_secrets
from c2tc_pipeline.sources.values import MISSING_SPELLINGS
from c2tc_pipeline.tables.blocks import read_table
from c2tc_pipeline.tables.catalogue import load_catalogue
from c2tc_pipeline_tests.tools.fuzzing.corpus import make_files
from c2tc_pipeline_tests.tools.fuzzing.targets import TARGETS, outcome, run_case

FOUND = sorted(Path(__file__).with_name("found").glob("*.bin"))
assert FOUND
FEW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
# Carriage returns are line ends for readers of CSV, inside quotation marks too.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=12)
MARKDOWN = st.text(st.sampled_from("<>[]()!*_`~|\\#&:;@/.\"'= \nabhtpsw1") | st.characters(), max_size=40)
SECRETS = st.text(st.sampled_from("abc/@:?#%&=+[]\\ .1") | st.characters(exclude_categories=("Cs", "Cc")), max_size=12)


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    @cache
    def make(kind: str) -> Path:
        folder = tmp_path_factory.mktemp("good") / kind
        make_files(kind, folder)
        return folder

    return make


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_case_that_once_crashed(good: Callable[[str], Path], path: Path) -> None:
    target = path.stem.partition("-")[0]
    run_case(target, path.read_bytes(), good(target))


@pytest.mark.parametrize("target", TARGETS)
def test_valid_and_new_cases(good: Callable[[str], Path], target: str) -> None:
    """A reader that refused everything would pass with new cases alone."""
    folder = good(target)
    assert any(run_case(target, case, folder) == "value" for case in valid_cases(folder))

    @settings(FEW, derandomize=True, phases=[Phase.generate])
    @given(TARGETS[target][0](folder))
    def run(case: bytes) -> None:
        run_case(target, case, folder)

    run()


def valid_cases(good: Path) -> Iterator[bytes]:
    """Yield unchanged inputs in the form of cases."""
    for path in sorted(path for path in good.rglob("*") if path.is_file()):
        name, _, file = path.relative_to(good).as_posix().partition("/")
        change = json.dumps({"good": name, "file": file, "sealed": False}).encode() + b"\n" if file else b""
        yield change + path.read_bytes()


@FEW
@given(cells=st.lists(st.tuples(TEXT | st.sampled_from(["=1+1", "-2+3", "@SUM(A1)", "\t=1"]), TEXT), min_size=1))
@example(cells=[("=1+1", "+x"), ("-1x", "@y")])
def test_text_cells_are_read_unchanged(tmp_path: Path, cells: list[tuple[str, str]]) -> None:
    path = tmp_path / "t.csv"
    # The first row makes both columns text.
    rows = [("a text", "a text"), *cells]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([("a", "b"), *rows])
    frame = read_table(path)
    for name, column in zip("ab", zip(*rows, strict=True), strict=True):
        expected = [None if cell in MISSING_SPELLINGS else cell for cell in column]
        assert [None if pd.isna(cell) else cell for cell in frame[name]] == expected


@FEW
@given(name=TEXT | st.text("ab_.-/\\|0 ", max_size=20))
def test_accepted_table_names_are_identifiers(tmp_path: Path, name: str) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text(yaml.safe_dump({"tables": {name: {"source": "a.csv", "label": "y"}}}, allow_unicode=True), "utf-8")
    is_accepted = outcome(partial(load_catalogue, path)) == "value"
    assert is_accepted == bool(re.fullmatch(r"[a-z][a-z0-9_]*", name))


@FEW
@given(text=MARKDOWN)
@example(text="![x](http://h/x.png)")
@example(text="<img src=x onerror=y>")
@example(text="[a](javascript:b)")
@example(text="http://h/x www.h.com a@h.com HTTPS://h ftp://h")
@example(text="\n\n# head\n\n[a]: http://h\n\n[a]")
def test_names_in_markdown_are_plain_text(text: str) -> None:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    rendered = parser.render(markdown_table([Column("a"), Column(text)], [[text, "b"]])).replace("<!---->", "")
    tags = {piece.split(">")[0].split()[0] for piece in rendered.split("<")[1:]}
    assert {tag.strip("/") for tag in tags} <= {"table", "thead", "tbody", "tr", "th", "td"}, rendered
    # Some renderers make links of plain text after they removed backslashes; empty comments split such text.
    pieces = re.sub(r"\\(.)", r"\1", markdown_escaped(text)).split("<!---->")
    assert "".join(pieces) == printable(text)
    assert not any(re.search(r"(?i)(https?|ftp):|www\.|[^\s]@", piece) for piece in pieces)


@FEW
@given(secret=SECRETS, path=st.sampled_from(["", "/sales", "/sales?table=people", "/a@b.csv"]))
def test_passwords_are_not_shown(secret: str, path: str) -> None:
    shown = without_secrets(f"postgresql://ann:canary{secret}yranac@db.example{path}")
    assert "canary" not in shown
    assert "yranac" not in shown


@FEW
@given(text=st.text(max_size=40), length=st.sampled_from([10, 10_000, 1_000_000]))
def test_messages_are_printable_and_bounded(text: str, length: int) -> None:
    assert one_line(text).isprintable()
    assert one_line(text) == text or not text.isprintable()
    message = str(InputError(f"There is no column {'x' * length!r} in t.csv; choose another."))
    assert len(message) <= 1_000
    assert message.endswith("in t.csv; choose another.")
