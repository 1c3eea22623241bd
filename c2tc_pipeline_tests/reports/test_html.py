"""The pages are well formed, show what they should, and hostile names are only text."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from c2tc_pipeline.allocation.result import Allocation
from c2tc_pipeline.common.notices import Notice
from c2tc_pipeline.reports.html import render_report
from c2tc_pipeline_tests.reports.page_parser import Page
from c2tc_pipeline_tests.reports.stand_in import NASTY_CLASSES, NASTY_FEATURES, nasty_stand_in, stand_in

REASONS = {"singletons": 0, "equal_rows": 0, "medoids": 0, "coincidences": 0, "encoded": 0}


def test_the_page_shows_the_headline_numbers() -> None:
    table = stand_in(notices=[Notice("constant_column", "was dropped", column="year")])
    page = Page(render_report(table))
    words = set(page.words)
    assert {"336,776 → 337", "1 : 999", "18.8 s", "5 stages", "Column 'year': was dropped"} <= words
    assert {"154,000", "45.7 %", "32.6 %", "1,400.0"} <= words
    assert {"encoder.strings", "auto", "numpy", "2.4.0"} <= words
    assert any("gap 3 %" in text for text in words)
    assert [kind for kind, _ in page.pictures] == ["svg+xml"] * 5
    assert render_report(table) == page.text
    assert render_report(stand_in(seed=1)) != page.text


def test_hostile_names_are_shown_and_never_markup() -> None:
    page = Page(render_report(nasty_stand_in()))
    page.check_harmless()
    for hostile in ("<script", "<img src=x", "<b>", "<i>", "</title><"):
        assert hostile not in page.text
    assert {NASTY_CLASSES[0], NASTY_FEATURES[0]} <= set(page.words)
    assert "Condensed table: </title><script>alert(4)</script>" in page.words
    page.text.encode("utf-8")
    assert "\u202e" not in page.text
    assert len(page.pictures) == len([text for text in page.values("img", "alt") if text]) == 5
    for _, picture in page.pictures:
        ElementTree.fromstring(picture)


def test_many_points_are_embedded_as_png() -> None:
    assert [kind for kind, _ in Page(render_report(stand_in(sampled=2_000))).pictures].count("png") == 1


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
    text = " ".join(page.words)
    assert "no lower bound" in text
    for absent in ("Loss curves", "Search for the allocation", "Notices", "gap", "None", "nan"):
        assert absent not in text


def test_scores_are_shown_when_there_are_some() -> None:
    table = stand_in()
    assert "Scores" not in Page(render_report(table)).words
    score = {"model": "<mlp>", "training_set": "random", "rows": 1337, "seeds": 3, "fit_seconds": 0.5}
    table.summary["scores"] = [
        {**score, "accuracy": 0.8127, "accuracy_std": 0.004, "macro_f1": 0.75, "macro_f1_std": 0.02}
    ]
    text = " ".join(Page(render_report(table)).words)
    for shown in ("Scores", "<mlp>", "random", "1,337", "81.3 ± 0.4", "75.0 ± 2.0", "500 ms", "over 3 seeds"):
        assert shown in text


def test_two_hundred_classes_and_more_columns_than_fit() -> None:
    features = [f"feature_{i}" for i in range(120)]
    table = stand_in(classes=list(range(200)), class_rows=[5_000] * 200, counts=[3] * 200, features=features)
    page = Page(render_report(table))
    assert any("The first 50 of 600 rows, the first 100 of 120 columns" in words for words in page.words)
    assert page.words.count("feature_99") == 2  # among the roles and among the rows
    assert page.words.count("feature_119") == 1  # among the roles only
    assert "199" in page.words


@pytest.mark.parametrize(
    ("counts", "shown"),
    [
        ({}, "none equals a source row"),
        ({"singletons": 1}, "1 singleton"),
        ({"singletons": 2, "equal_rows": 3, "coincidences": 1}, "2 singletons, 3 for equal rows, 1 by coincidence"),
        ({"medoids": 7}, "7 medoids"),
        (None, "3 singletons"),
    ],
    ids=str,
)
def test_rows_that_repeat_a_record_are_counted_by_reason(counts: dict[str, int] | None, shown: str) -> None:
    table = stand_in(classes=["a", "b"], class_rows=[3, 50], counts=[3, 1])
    if counts is not None:
        table.summary["repeated_rows"] = {**REASONS, **counts, "total": sum(counts.values())}
    total = 3 if counts is None else sum(counts.values())
    words = Page(render_report(table)).words
    assert words[words.index("Rows that repeat a record") + 1 :][:2] == [str(total), shown]


def test_integer_and_boolean_classes_and_missing_cells() -> None:
    table = stand_in(classes=[False, True], class_rows=[900, 100], counts=[5, 4])
    original = table.original.copy()
    original.loc[0, "origin"] = np.nan
    original.loc[0, "carrier"] = None
    page = Page(render_report(replace(table, original=original)))
    assert page.words.count("—") == 2
    assert {"False", "True"} <= set(page.words)
