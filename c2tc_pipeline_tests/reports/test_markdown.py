"""A picture in Markdown is small, complete and cannot be broken by its words."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from c2tc_pipeline.reports.exhibits import Exhibit, projection_exhibit, ratio_exhibit, table_exhibits
from c2tc_pipeline.reports.markdown import MOST_SVG_BYTES, markdown_escaped, picture_markdown
from c2tc_pipeline.reports.picture import Picture
from c2tc_pipeline.reports.score_means import means_by_ratio
from c2tc_pipeline_tests.reports.stand_in import StandIn, made_scores, nasty_stand_in, stand_in

IMAGE = re.compile(r"!\[((?:[^\]\\]|\\.)*)\]\(data:image/(svg\+xml|png);base64,([A-Za-z0-9+/=]+)\)")
MOST_BYTES = 62_000


def many_points() -> StandIn:
    return stand_in(sampled=2_000)


def many_classes() -> StandIn:
    return stand_in(classes=list(range(200)), class_rows=[5_000] * 200, counts=[2] * 200, sampled=300)


def exhibits_of(table: StandIn) -> list[Exhibit]:
    counts = [int(count) for count in table.allocation.counts]
    means = means_by_ratio({0.1: made_scores(counts), 0.2: made_scores(counts)})
    return [*table_exhibits(table), ratio_exhibit(means, "accuracy")]


@pytest.mark.parametrize("make", [many_points, many_classes, nasty_stand_in])
def test_every_exhibit_is_a_small_embedded_picture_with_its_caption(make: Callable[[], StandIn]) -> None:
    for exhibit in exhibits_of(make()):
        text = exhibit.markdown()
        assert len(text) < MOST_BYTES, exhibit.title
        found = IMAGE.match(text)
        assert found is not None
        assert text[found.end() :].startswith("\n\n")
        data = base64.b64decode(found[3])
        if found[2] == "png":
            image = Image.open(io.BytesIO(data)).convert("RGB")
            assert image.width == 960
            assert len(image.getcolors(1 << 24) or []) > 5
        else:
            assert data.count(b"<") > 20
            assert len(data) <= MOST_SVG_BYTES


def test_what_is_large_as_svg_is_embedded_as_png() -> None:
    table = many_points()
    exhibit = projection_exhibit(table.classes, table.class_rows, table.projection)
    assert len(exhibit.picture.svg()) > MOST_SVG_BYTES
    assert exhibit.markdown().startswith("![Scatter plot")
    assert "](data:image/png;base64," in exhibit.markdown()


def test_the_same_picture_gives_the_same_png() -> None:
    table = many_points()
    first, second = (projection_exhibit(table.classes, table.class_rows, table.projection).picture for _ in range(2))
    assert first.png() == second.png()


def test_an_alternative_text_cannot_end_early() -> None:
    line = Picture(lambda figure: figure.subplots().plot([1, 2]), height=100)
    text = picture_markdown(line, "x](http://evil/) <img src=y onerror=z> ![")
    found = IMAGE.fullmatch(text)
    assert found is not None
    assert re.sub(r"\\(.)", r"\1", found[1]) == "x](http://evil/) <img src=y onerror=z> !["


@given(st.text(max_size=40))
def test_escaped_text_says_the_same_and_starts_nothing(text: str) -> None:
    escaped = markdown_escaped(text)
    # Empty comments part addresses, which would become links.
    bare = re.sub(r"\\(.)", "", escaped.replace("<!---->", ""))
    assert not set(bare) & set("\\`*_[]()<>#!|~&$:@\n")
