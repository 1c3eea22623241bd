"""Sheets are valid SVG whatever they say, and words have the room that they need."""

from __future__ import annotations

import io
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFont

from c2tc_pipeline.reports.class_styles import class_styles
from c2tc_pipeline.reports.drawing.letters import words_width
from c2tc_pipeline.reports.drawing.shapes import Bar, Dots, Line, Sheet, Words
from c2tc_pipeline.reports.figures import class_shares, stage_seconds
from c2tc_pipeline.reports.wording import printable

SVG = "{http://www.w3.org/2000/svg}"


@given(st.text(max_size=30).map(printable))
def test_words_arrive_as_they_are(text: str) -> None:
    root = ElementTree.fromstring(Sheet(20, [Words(0, 10, text)]).svg())
    assert [node.text or "" for node in root.iter(f"{SVG}text")] == [text]


def test_a_picture_in_dots_has_the_colours_and_places_of_its_shapes() -> None:
    sheet = Sheet(
        90,
        [
            Bar(0, 0, 360, 45, "#0072b2"),
            Line([(360, 67), (720, 67)], "#d55e00", 20),
            Dots([(180, 67)], 30, "#009e73"),
            Words(400, 20, "words"),
        ],
    )
    image = Image.open(io.BytesIO(sheet.png())).convert("RGB")
    assert image.size == (960, 120)
    at = [image.getpixel((round(x * 4 / 3), round(y * 4 / 3))) for x, y in ((100, 20), (540, 67), (180, 67), (20, 80))]
    expected = [(0, 114, 178), (213, 94, 0), (0, 158, 115), (255, 255, 255)]
    for found, wanted in zip(at, expected, strict=True):
        assert isinstance(found, tuple)
        assert max(abs(a - b) for a, b in zip(found, wanted, strict=True)) < 12


@pytest.mark.parametrize(
    "text", ["Covertype 12,345", "WWWWWW mmm", "illicit till", "<script>alert(1)</scr…", "99.99 %"]
)
def test_words_are_not_wider_than_the_room_that_is_left_for_them(text: str) -> None:
    import matplotlib

    font = ImageFont.truetype(f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf", 100)
    assert 0.95 * font.getlength(text) <= words_width(text, 100) <= 1.5 * font.getlength(text)


@pytest.mark.parametrize("classes", [["only"], ["no", "W" * 60], [f"class {i}" for i in range(50)]])
def test_names_and_figures_stay_on_the_sheet(classes: list[str]) -> None:
    rows = [1000 // (i + 1) ** 2 + 1 for i in range(len(classes))]
    for sheet in (class_shares(class_styles(classes, rows), rows, [1] * len(rows)), stage_seconds({"read": 1.5})):
        for shape in sheet.shapes:
            if isinstance(shape, Words):
                room = words_width(shape.text, shape.size) / (2 if shape.anchor == "middle" else 1)
                assert shape.anchor == "start" or shape.x - room >= 0
                assert shape.anchor == "end" or shape.x + room <= sheet.width + 0.02 * sheet.width
                assert 0 <= shape.y <= sheet.height
