"""Markdown shows names as they are, and pictures in it are small."""

from __future__ import annotations

import base64
import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from PIL import Image

from c2tc_pipeline.reports.exhibits import (
    METADATA_SVG_BYTES,
    Exhibit,
    means_by_ratio,
    ratio_exhibit,
    table_exhibits,
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
    for exhibit in [*table_exhibits(table), ratio_exhibit(means, "accuracy")]:
        text = exhibit.markdown()
        assert len(text) < MAX_BYTES, exhibit.title
        found = IMAGE.match(text)
        assert found is not None
        assert text[found.end() :].startswith("\n\n")
        data = base64.b64decode(found[3])
        assert (found[2] == "png") == (len(exhibit.picture.svg().encode()) > METADATA_SVG_BYTES)
        if found[2] == "png":
            image = Image.open(io.BytesIO(data)).convert("RGB")
            assert image.width == 960
            assert len(image.getcolors(1 << 24) or []) > 5


def test_an_alternative_text_cannot_end_early() -> None:
    line = Picture(lambda figure: figure.subplots().plot([1, 2]), height=100)
    found = IMAGE.fullmatch(Exhibit("", line, "x](http://evil/) <img src=y onerror=z> ![", "").markdown())
    assert found is not None
    assert re.sub(r"\\(.)", r"\1", found[1]) == "x](http://evil/) <img src=y onerror=z> !["


@given(st.text(max_size=40))
def test_escaped_text_says_the_same_and_starts_nothing(text: str) -> None:
    # Empty comments part addresses, which would become links.
    bare = re.sub(r"\\(.)", "", markdown_escaped(text).replace("<!---->", ""))
    assert not set(bare) & set("\\`*_[]()<>#!|~&$:@\n")


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
