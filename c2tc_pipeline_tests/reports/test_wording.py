"""Numbers and names as people read them."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline.reports import wording


@given(st.text(st.characters()))
def test_printable_text_is_one_line_that_utf8_and_xml_accept(text: str) -> None:
    clean = wording.printable(text)
    clean.encode("utf-8")
    assert ElementTree.fromstring(f"<a>{escape(clean)}</a>").text == (clean or None)
    assert len(clean.splitlines()) <= 1
    assert wording.printable(clean) == clean


@given(st.text(st.characters()), st.integers(2, 30))
def test_shortened_text_keeps_to_its_limit_and_its_beginning(text: str, limit: int) -> None:
    short = wording.shortened(text, limit)
    assert len(short) <= limit
    assert wording.printable(text).startswith(short.removesuffix("…"))


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
    ("value", "words"),
    [
        (0.9996, "1,000 ms"),
        (1.0, "1.0 s"),
        (59.96, "60.0 s"),
        (119.9, "119.9 s"),
        (3599.6, "1 h 0 min"),
        (0.0, "0 ms"),
    ],
)
def test_seconds_at_the_borders_of_their_units(value: float, words: str) -> None:
    assert wording.seconds(value) == words


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, pd.NA, pd.NaT])
def test_every_kind_of_missing_value_is_a_dash(missing: object) -> None:
    assert wording.cell(missing) == wording.MISSING


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.int64(94103), "94103"),
        (np.float64(1.5), "1.5"),
        (True, "True"),
        (pd.Timestamp("2013-01-01"), "2013-01-01 00:00:00"),
        (["a", None], "['a', None]"),
        (-2e7, "-20000000"),
    ],
)
def test_cells_show_values_as_they_are(value: object, words: str) -> None:
    assert wording.cell(value) == words
