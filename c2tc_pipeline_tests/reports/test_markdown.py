"""Numbers and names as people read them, in words and in Markdown; pictures in Markdown are small."""

from __future__ import annotations

import base64
import io
import re
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from PIL import Image

from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.exhibits import (
    METADATA_SVG_BYTES,
    Exhibit,
    column_panels,
    means_by_ratio,
    overview_panels,
    rows_panels,
    search_panels,
)
from c2tc_pipeline.reports.markdown import Cell, Column, ShownTable, markdown_escaped, markdown_table
from c2tc_pipeline.reports.picture import Picture
from c2tc_pipeline_tests.reports.stand_in import made_scores, many_classes, nasty_stand_in, stand_in

IMAGE = re.compile(r"!\[((?:[^\]\\]|\\.)*)\]\(data:image/(svg\+xml|png);base64,([A-Za-z0-9+/=]+)\)")
MAX_BYTES = 62_000


@pytest.mark.parametrize("table", [stand_in(sampled=2_000), many_classes(), nasty_stand_in()])
def test_every_exhibit_is_a_small_embedded_picture_with_its_caption(table: Any) -> None:
    counts = [int(count) for count in table.allocation.counts]
    means = means_by_ratio({0.1: made_scores(counts), 0.2: made_scores(counts)})
    for panels in (overview_panels(table), search_panels(table), column_panels(table), rows_panels(means, "accuracy")):
        text = panels.markdown()
        assert text.endswith(markdown_escaped(panels.caption))
        assert len(IMAGE.findall(text)) == len(panels.exhibits) > 1
        for exhibit in panels.exhibits:
            text = exhibit.markdown()
            assert len(text) < MAX_BYTES, exhibit.title
            found = IMAGE.match(text)
            assert found is not None
            data = base64.b64decode(found[3])
            if found[2] == "png":
                image = Image.open(io.BytesIO(data)).convert("RGB")
                assert len(image.getcolors(1 << 24) or []) > 5
            else:
                assert len(data) <= METADATA_SVG_BYTES


def test_an_alternative_text_cannot_end_early() -> None:
    line = Picture(lambda figure: figure.subplots().plot([1, 2]), height=100)
    found = IMAGE.fullmatch(Exhibit("", line, "x](http://evil/) <img src=y onerror=z> ![", "").markdown())
    assert found is not None
    assert re.sub(r"\\(.)", r"\1", found[1]) == "x](http://evil/) <img src=y onerror=z> !["


@pytest.mark.parametrize("text", ["www.example.com", "http://host/x", "a@b.org", "a|b", "<b>", "**x**", "[x](y)"])
def test_cells_become_neither_links_nor_markup(text: str) -> None:
    rendered = MarkdownIt("gfm-like", {"linkify": False}).render(markdown_table([Column(text)], [[text], [Cell(text)]]))
    assert not re.search("<(a|b|strong|em|img)\\b", rendered)
    assert rendered.count("<td>") == 2
    assert "www.e" not in markdown_table([Column(text)], [[text]])


def test_a_table_with_emphasis_asides_and_a_legend() -> None:
    columns = [Column("name"), Column("score", True)]
    rows: list[list[Any]] = [[Cell("a|b"), Cell("3.5 ± 0.1", "best", "(80.1)")], ["14 : 1", Cell("< 2", "second")]]
    assert ShownTable(columns, rows, "Ok: yes.").markdown().splitlines() == [
        "| name | score |",
        "| --- | ---: |",
        "| a\\|b | **3.5 ± 0.1** (80.1) |",
        "| 14 : 1 | <u>< 2</u> |",
        "",
        "Ok: yes.",
    ]


@given(st.text(st.characters()), st.integers(2, 30))
def test_printable_text_is_one_line_that_utf8_and_xml_accept(text: str, limit: int) -> None:
    clean = wording.printable(text)
    clean.encode("utf-8")
    assert ElementTree.fromstring(f"<a>{escape(clean)}</a>").text == (clean or None)
    assert len(clean.splitlines()) <= 1
    assert wording.printable(clean) == clean
    short = wording.shortened(text, limit)
    assert len(short) <= limit
    assert clean.startswith(short.removesuffix("…"))


@given(st.floats(1e-300, 1e300))
def test_a_number_is_within_half_a_unit_of_its_fourth_digit(value: float) -> None:
    assert float(wording.number(value).replace(",", "")) == pytest.approx(value, rel=6e-4)
    assert wording.number(-value) == "-" + wording.number(value)


@given(st.floats(0, 1))
def test_only_nothing_is_none_and_only_everything_is_all(value: float) -> None:
    percent = float(wording.share(value).removesuffix(" %"))
    assert percent == pytest.approx(100 * value, rel=0.06)
    assert (percent == 0) == (value == 0)
    if value < 1 - 1e-9:
        assert percent < 100


@pytest.mark.parametrize(
    ("form", "cases"),
    [
        ("printable", {"two\n lines\x00": "two lines\ufffd", "\u202eevil": "\ufffdevil"}),
        ("number", {0.001: "0.001", 81234.5: "81,234", 2.5e-9: "2.5e-09", 3e15: "3e+15", None: "—"}),
        (
            "share",
            {
                0.4312: "43.1 %",
                0.46: "46.0 %",
                0.00042: "0.042 %",
                1.0: "100 %",
                0.99996: "99.996 %",
                None: "—",
            },
        ),
        ("seconds", {0.0: "0 ms", 0.9996: "1,000 ms", 59.96: "60.0 s", 119.9: "119.9 s", 125: "2 min 5 s"}),
        ("seconds", {119.96: "2 min 0 s", 3599.6: "1 h 0 min", 7384: "2 h 3 min", 3e5: "3 days"}),
        ("gap", {1.7e-15: "0 %", 0.03: "3.0 %", 1e-4: "0.01 %", None: "—"}),
        ("ratio", {0.001: "0.1 %", 0.00005: "0.005 %", 0.01: "1 %", 0.07: "7 %", 1.0: "100 %"}),
        ("cell", {None: "—", pd.NA: "—", pd.NaT: "—", np.nan: "—", np.int64(94103): "94103", 0.1234567: "0.123457"}),
        ("cell", {True: "True", pd.Timestamp("2013-01-01"): "2013-01-01 00:00:00", -2e7: "-20000000"}),
    ],
)
def test_values_in_words(form: str, cases: dict[Any, str]) -> None:
    assert {value: getattr(wording, form)(value) for value in cases} == cases


def test_values_of_two_arguments_in_words() -> None:
    assert [wording.one_in(336776, 337), wording.one_in(5, 2), wording.one_in(7, 7)] == ["1 : 999", "1 : 2.5", "1 : 1"]
    assert wording.counted(1, "class", "classes") == "1 class"
    scores = [(0.8123, 0.0044), (0.8123, 0.0), (float("nan"), 0.1)]
    assert [wording.percentage(*score) for score in scores] == ["81.2 ± 0.4", "81.2", "—"]
    assert wording.cell(["a", None]) == "['a', None]"
