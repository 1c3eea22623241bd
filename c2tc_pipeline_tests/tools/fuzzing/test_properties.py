"""Readers under hypothesis: what is written is read, what is accepted stays inside, what is shown is only text."""

from __future__ import annotations

import csv
import os
import pickle
import re
import shutil
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from c2tc_pipeline.common.errors import InputError, one_line
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.storage import load_encoder, save_encoder
from c2tc_pipeline.reports.markdown import markdown_escaped, markdown_table
from c2tc_pipeline.reports.markup import Column
from c2tc_pipeline.reports.wording import printable
from c2tc_pipeline.sources.csv_types import MISSING_SPELLINGS
from c2tc_pipeline.sources.location import without_secrets
from c2tc_pipeline.storage.store import check_key
from c2tc_pipeline.tables.catalogue import load_catalogue
from c2tc_pipeline.tables.readers import read_table
from c2tc_pipeline_tests.tools.fuzzing.corpus import parquet_files
from c2tc_pipeline_tests.tools.fuzzing.folders import _seal_encoder
from c2tc_pipeline_tests.tools.fuzzing.verdicts import judge

WEIGHTS = "encoder.safetensors"
FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
# Everything that UTF-8 can hold; carriage returns are line ends for readers of CSV, inside quotation marks too.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=12)
FORMULAS = st.sampled_from(["=1+1", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", '=HYPERLINK("http://x")'])
YAML_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@FEW
@given(cells=st.lists(st.tuples(TEXT | FORMULAS, TEXT), min_size=1, max_size=6))
@example(cells=[("=1+1", "+x"), ("-1x", "@y")])
def test_cells_of_text_come_back_as_they_are(tmp_path: Path, cells: list[tuple[str, str]]) -> None:
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
@given(content=st.binary(max_size=200))
def test_any_bytes_are_a_table_or_one_sentence(tmp_path: Path, content: bytes) -> None:
    for name in ("t.csv", "t.csv.gz", "t.parquet", "t.sqlite"):
        (tmp_path / name).write_bytes(content)
        verdict = judge(partial(read_table, tmp_path / name))
        assert verdict.kind != "crash", verdict


# Where bytes change, and what to: lengths and counts are often the largest number or 0.
CHANGES = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)),
    min_size=1,
    max_size=6,
)


def changed(content: bytes, changes: list[tuple[float, int]]) -> bytes:
    """Return content with other bytes at some shares of its length."""
    harmed = bytearray(content)
    for share, value in changes:
        harmed[int(share * len(harmed))] = value
    return bytes(harmed)


@cache
def good_parquet() -> dict[str, bytes]:
    return parquet_files()


@FEW
@given(name=st.sampled_from(["zstd", "snappy", "plain", "nested", "typed"]), changes=CHANGES, in_footer=st.booleans())
def test_a_parquet_file_with_changed_bytes_is_a_table_or_one_sentence(
    tmp_path: Path, name: str, changes: list[tuple[float, int]], in_footer: bool
) -> None:
    content = good_parquet()[f"{name}.parquet"]
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little") if in_footer else 0
    path = tmp_path / "t.parquet"
    path.write_bytes(content[:start] + changed(content[start:], changes))
    verdict = judge(partial(read_table, path))
    assert verdict.kind != "crash", verdict


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fitted") / "encoder"
    save_encoder(HybridEncoder().fit(pd.DataFrame({"x": [1.0, 2.5, 4.0]}), [0, 1, 0]), folder)
    return folder


@FEW
@given(changes=CHANGES | st.none(), random=st.binary(max_size=60))
@example(changes=None, random=pickle.dumps([1]))
@example(changes=None, random=(2**63).to_bytes(8, "little") + b"{}")
def test_any_weights_are_an_encoder_or_one_sentence(
    fitted: Path, tmp_path: Path, changes: list[tuple[float, int]] | None, random: bytes
) -> None:
    """Sealed as they should be, so that the reader goes on to what they hold."""
    folder = tmp_path / "encoder"
    shutil.copytree(fitted, folder, dirs_exist_ok=True)
    good = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(random if changes is None else changed(good, changes))
    _seal_encoder(folder / "encoder.json")
    rows = pd.DataFrame({"x": [1.0, float("nan"), 9.0]})
    verdict = judge(lambda: load_encoder(folder).transform(rows))
    assert verdict.kind != "crash", verdict


@FEW
@given(name=TEXT | st.text("ab_.-/\\|0 ", max_size=20))
def test_a_table_name_that_is_accepted_is_one_plain_word(tmp_path: Path, name: str) -> None:
    path = tmp_path / "catalog.yaml"
    description = {"tables": {name: {"source": "a.csv", "label": "y"}}}
    path.write_text(yaml.safe_dump(description, allow_unicode=True), encoding="utf-8")
    verdict = judge(partial(load_catalogue, path))
    assert verdict.kind != "crash", verdict
    # The oracle is spelt out: small letters, digits and _, no digit first.
    assert (verdict.kind == "value") == bool(re.fullmatch(r"[a-z][a-z0-9_]*", name)), (name, verdict)


@FEW
@given(key=st.text(max_size=30) | st.text("a./|\\-_0", max_size=30))
def test_a_key_that_is_accepted_stays_below_the_root(key: str) -> None:
    verdict = judge(lambda: check_key(key))
    assert verdict.kind != "crash", verdict
    if verdict.kind == "refusal":
        return
    root = Path("/storage/root")
    resolved = Path(os.path.normpath(root / key))
    assert resolved.is_relative_to(root)
    assert resolved != root
    assert "\\" not in key


@FEW
@given(value=st.fixed_dictionaries({"tables": st.dictionaries(TEXT | st.just("people"), YAML_VALUES, max_size=3)}))
def test_any_description_is_a_catalogue_or_one_sentence(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text(yaml.safe_dump(value, allow_unicode=True), encoding="utf-8")
    verdict = judge(lambda: load_catalogue(path))
    assert verdict.kind != "crash", verdict
    if verdict.kind == "value":
        assert all(name.isidentifier() and name.islower() for name in load_catalogue(path))


MARKDOWN = st.text(st.sampled_from("<>[]()!*_`~|\\#&:;@/.\"'= \nabhtpsw1") | st.characters(), max_size=40)


@FEW
@given(text=MARKDOWN)
@example(text="![x](http://h/x.png)")
@example(text="<img src=x onerror=y>")
@example(text="[a](javascript:b)")
@example(text="http://h/x www.h.com a@h.com")
@example(text="\n\n# head\n\n[a]: http://h\n\n[a]")
def test_names_in_markdown_become_text_and_nothing_else(text: str) -> None:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    rendered = parser.render(markdown_table([Column("a"), Column(text)], [[text, "b"]]))
    # Empty comments part what would else become a link; see below.
    rendered = rendered.replace("<!---->", "")
    tags = {piece.split(">")[0].split()[0] for piece in rendered.split("<")[1:]}
    assert {tag.strip("/") for tag in tags} <= {"table", "thead", "tbody", "tr", "th", "td"}, rendered


@FEW
@given(text=MARKDOWN)
@example(text="http://h/x www.h.com a@h.com HTTPS://h ftp://h")
def test_no_name_in_markdown_looks_like_an_address(text: str) -> None:
    """Some readers make links of the text between the tags, when backslashes are gone."""
    pieces = re.sub(r"\\(.)", r"\1", markdown_escaped(text)).split("<!---->")
    assert "".join(pieces) == printable(text)
    assert not any(re.search(r"(?i)(https?|ftp):|www\.|[^\s]@", piece) for piece in pieces)


SECRETS = st.text(st.sampled_from("abc/@:?#%&=+[]\\ .1") | st.characters(exclude_categories=("Cs", "Cc")), max_size=12)


@FEW
@given(secret=SECRETS, path=st.sampled_from(["", "/sales", "/sales?table=people", "/a@b.csv"]))
def test_a_password_is_not_shown_however_it_is_written(secret: str, path: str) -> None:
    canary = f"canary{secret}yranac"
    shown = without_secrets(f"postgresql://ann:{canary}@db.example{path}")
    assert "canary" not in shown
    assert "yranac" not in shown


@FEW
@given(text=st.text(max_size=40))
def test_one_line_is_printable_and_leaves_what_is(text: str) -> None:
    assert one_line(text).isprintable()
    assert one_line(text) == text or not text.isprintable()


@pytest.mark.parametrize("length", [10, 10_000, 1_000_000])
def test_messages_are_bounded_however_long_a_name_is(length: int) -> None:
    told = str(InputError(f"There is no column {'x' * length!r} in t.csv; choose another."))
    assert len(told) < 1_000
    assert told.startswith("There is no column 'x")
    assert told.endswith("in t.csv; choose another.")
