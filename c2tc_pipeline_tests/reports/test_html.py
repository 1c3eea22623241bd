"""The page is well formed, says what it should, and gives hostile names no chance."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from c2tc_pipeline.allocation.result import Allocation
from c2tc_pipeline.common.errors import Notice
from c2tc_pipeline.reports.html import render_report
from c2tc_pipeline_tests.reports.page_parser import Page
from c2tc_pipeline_tests.reports.stand_in import NASTY_CLASSES, NASTY_FEATURES, nasty_stand_in, stand_in


@pytest.fixture(scope="module")
def nasty() -> Page:
    return Page(render_report(nasty_stand_in()))


def test_the_page_says_the_headline_numbers() -> None:
    table = stand_in(notices=[Notice("constant_column", "was dropped", column="year")])
    page = Page(render_report(table))
    said = set(page.words)
    assert {"336,776 → 337", "1 : 999", "18.8 s", "5 stages", "Column 'year': was dropped"} <= said
    assert {"154,000", "45.7 %", "32.6 %", "1,400.0"} <= said
    assert {"encoder.strings", "auto", "numpy", "2.4.0"} <= said
    assert any("gap 3 %" in words for words in said)
    assert len(page.pictures) == 5


def test_the_page_loads_nothing_and_runs_nothing(nasty: Page) -> None:
    nasty.check_harmless()


def test_hostile_names_are_shown_and_never_markup(nasty: Page) -> None:
    for hostile in ("<script", "<img src=x", "<b>", "<i>", "</title><"):
        assert hostile not in nasty.text
    assert NASTY_CLASSES[0] in nasty.words
    assert NASTY_FEATURES[0] in nasty.words
    assert "Condensed table: </title><script>alert(4)</script>" in nasty.words
    nasty.text.encode("utf-8")


def test_every_picture_has_an_alternative_text_and_is_valid(nasty: Page) -> None:
    assert len(nasty.pictures) == len([text for text in nasty.values("img", "alt") if text]) == 5
    for picture in nasty.pictures:
        ElementTree.fromstring(picture)


def test_same_table_same_page_and_another_table_another_page() -> None:
    page = render_report(stand_in())
    assert render_report(stand_in()) == page
    assert render_report(stand_in(seed=1)) != page


def test_a_table_without_curves_bound_trace_or_notices() -> None:
    table = stand_in()
    table = replace(
        table,
        curves=None,
        allocation=Allocation("ratio", table.allocation.counts, 5.0, 0, table.allocation.trace[:1], None, 0.25),
        summary={**table.summary, "bound": None, "gap": None},
    )
    page = Page(render_report(table))
    assert len(page.pictures) == 3
    said = " ".join(page.words)
    assert "no lower bound is known for allocation by ratio" in said
    for absent in ("Loss curves", "Search for the allocation", "Notices", "gap", "None", "nan"):
        assert absent not in said


def test_scores_are_shown_when_there_are_some() -> None:
    table = stand_in()
    assert "Scores" not in Page(render_report(table)).words
    score = {"model": "<mlp>", "training_set": "random", "rows": 1337, "seeds": 3, "fit_seconds": 0.5}
    table.summary["scores"] = [
        {**score, "accuracy": 0.8127, "accuracy_std": 0.004, "macro_f1": 0.75, "macro_f1_std": 0.02}
    ]
    text = " ".join(Page(render_report(table)).words)
    for shown in ("Scores", "<mlp>", "random", "1,337", "81.3 ± 0.4", "75.0 ± 2.0", "over 3 seeds"):
        assert shown in text


def test_two_hundred_classes_and_more_columns_than_fit() -> None:
    rows = [max(3, 1_000_000 // (i + 1) ** 2) for i in range(200)]
    features = [f"feature_{i}" for i in range(120)]
    table = stand_in(classes=list(range(200)), class_rows=rows, counts=[3] * 200, features=features)
    page = Page(render_report(table))
    said = set(page.words)
    assert any("The first 50 of 600 rows, the first 100 of 120 columns" in words for words in said)
    assert page.words.count("feature_99") == 2  # among the roles and among the rows
    assert page.words.count("feature_119") == 1  # among the roles only
    assert "199" in said


def test_rows_of_one_source_row_are_counted() -> None:
    table = stand_in(classes=["a", "b"], class_rows=[3, 50], counts=[3, 1])
    assert (table.weight == 1).sum() == 3
    said = Page(render_report(table)).words
    assert said[said.index("Rows that repeat a record") + 1 :][:2] == ["3", "3 singletons"]


def test_integer_and_boolean_classes_and_missing_cells() -> None:
    table = stand_in(classes=[False, True], class_rows=[900, 100], counts=[5, 4])
    original = table.original.copy()
    original.loc[0, "origin"] = np.nan
    original.loc[0, "carrier"] = None
    page = Page(render_report(replace(table, original=original)))
    assert page.words.count("—") == 2
    assert {"False", "True"} <= set(page.words)
