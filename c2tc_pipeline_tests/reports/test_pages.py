"""The pages are well formed, show what they should, depend on no clock, and hostile names are only text."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.allocation.result import Allocation
from c2tc_pipeline.common.errors import InputError, Notice
from c2tc_pipeline.reports.html import render_report
from c2tc_pipeline.reports.table_report import render_table_report
from c2tc_pipeline_tests.reports import stand_in as made
from c2tc_pipeline_tests.reports.page_parser import Page
from c2tc_pipeline_tests.reports.stand_in import made_scores, nasty_stand_in, stand_in

REASONS = {"singletons": 0, "equal_rows": 0, "medoids": 0, "coincidences": 0, "encoded": 0}
SMALL, LARGE = (6, 5, 4, 3, 2), (60, 55, 45, 40, 10)


def small() -> Any:
    return stand_in(counts=SMALL, sampled=30)


def two_ratios() -> dict[float, Any]:
    return {0.01: stand_in(counts=LARGE, sampled=30, seed=1), 0.001: small()}


def two_scores() -> dict[float, pd.DataFrame]:
    return {0.01: made_scores(LARGE, lift=0.1), 0.001: made_scores(SMALL)}


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(render_table_report("flights", two_ratios(), two_scores()))


def nasty_table_report(table: Any) -> str:
    return render_table_report(
        table.summary["table"], {0.1: table}, {0.1: made_scores([7, 3], models=["<u>model</u>"])}
    )


@pytest.mark.parametrize(("render", "pictures"), [(render_report, 5), (nasty_table_report, 6)])
def test_hostile_names_are_shown_and_never_markup(render: Callable[[Any], str], pictures: int) -> None:
    page = Page(render(nasty_stand_in()))
    page.check_harmless()
    for hostile in ("<script", "<img src=x", "<b>", "<i>", "<u>", "</title><", "\u202e"):
        assert hostile not in page.text
    title = "Condensed table: </title><script>alert(4)</script>"
    assert {made.NASTY_CLASSES[0], made.NASTY_FEATURES[0], title} <= set(page.words)
    page.text.encode("utf-8")
    assert len(page.pictures) == len([text for text in page.values("img", "alt") if text]) == pictures
    for _, picture in page.pictures:
        ElementTree.fromstring(picture)


def test_the_page_shows_the_headline_numbers() -> None:
    table = stand_in(notices=[Notice("constant_column", "was dropped", column="year")])
    page = Page(render_report(table))
    words = set(page.words)
    assert {"336,776 → 337", "1 : 999", "18.8 s", "5 stages", "Column 'year': was dropped"} <= words
    assert {"154,000", "45.7 %", "32.6 %", "1,400.0"} <= words
    assert {"encoder.strings", "auto", "numpy", "2.4.0"} <= words
    assert [kind for kind, _ in page.pictures] == ["svg+xml"] * 5
    # Many points are embedded as PNG.
    assert [kind for kind, _ in Page(render_report(stand_in(sampled=2_000))).pictures].count("png") == 1
    assert render_report(table) == page.text
    assert render_report(stand_in(seed=1)) != page.text


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
    for shown in ("Scores", "<mlp>", "random", "1,337", "81.3 ± 0.4", "75.0 ± 2.0", "500 ms", " 3 "):
        assert shown in text


def test_two_hundred_classes_and_more_columns_than_fit() -> None:
    features = [f"feature_{i}" for i in range(120)]
    table = stand_in(classes=list(range(200)), class_rows=[5_000] * 200, counts=[3] * 200, features=features)
    page = Page(render_report(table))
    assert any(re.findall(r"\d+", words) == ["50", "600", "100", "120"] for words in page.words)
    assert page.words.count("feature_99") == 2  # among the roles and among the rows
    assert page.words.count("feature_119") == 1  # among the roles only
    assert "199" in page.words


@pytest.mark.parametrize(
    "counts",
    [{}, {"singletons": 1}, {"singletons": 2, "equal_rows": 3, "coincidences": 1}, {"medoids": 7}, None],
    ids=str,
)
def test_rows_that_repeat_a_record_are_counted_by_reason(counts: dict[str, int] | None) -> None:
    table = stand_in(classes=["a", "b"], class_rows=[3, 50], counts=[3, 1])
    if counts is not None:
        table.summary["repeated_rows"] = {**REASONS, **counts, "total": sum(counts.values())}
    found = {"singletons": 3} if counts is None else counts
    words = Page(render_report(table)).words
    total, reasons = words[words.index("Rows that repeat a record") + 1 :][:2]
    assert (total, re.findall(r"\d+", reasons)) == (str(sum(found.values())), [str(n) for n in found.values()])


def test_integer_and_boolean_classes_and_missing_cells() -> None:
    table = stand_in(classes=[False, True], class_rows=[900, 100], counts=[5, 4])
    original = table.original.copy()
    original.loc[0, "origin"] = np.nan
    original.loc[0, "carrier"] = None
    page = Page(render_report(replace(table, original=original)))
    assert page.words.count("—") == 2
    assert {"False", "True"} <= set(page.words)


def test_every_ratio_has_its_numbers_pictures_and_rows_the_smallest_first(page: Page) -> None:
    assert page.words.index("Ratio 0.001") < page.words.index("Ratio 0.01")
    assert {"336,776 → 20", "336,776 → 210", "1 : 16,839", "1 : 1,604"} <= set(page.words)
    # Two of scores against ratio, and shares, projection, curves and trace of each ratio.
    assert len(page.pictures) == 2 + 2 * 4
    extents = [re.findall(r"\d+", words) for words in page.words if " rows" in words]
    assert ["20"] in extents
    assert ["200", "210"] in extents
    assert not re.search(r"Time|stage|\d (s|ms|min)\b", " ".join(page.words))


def test_every_link_leads_to_a_place_on_the_page(page: Page) -> None:
    places = [value for _, name, value in page.attributes if name == "id"]
    assert len(places) == len(set(places))
    assert {link.removeprefix("#") for link in page.values("a", "href")} == set(places)
    assert "ratio-0.001" in places


def test_scores_are_shown_in_all_and_class_by_class(page: Page) -> None:
    assert {"71.0 ± 1.0", "61.0 ± 1.0", "91.0 ± 1.0", "81.0 ± 1.0"} <= set(page.words)
    assert {"50.0 ± 0.0", "40.0 ± 0.0", "70.0 ± 0.0"} <= set(page.words)
    # The class without test rows: one dash per model, training set and ratio.
    assert page.words.count("—") == 2 * 3 * 2


def test_the_page_depends_neither_on_timings_nor_on_order_and_leaves_its_input_alone(page: Page) -> None:
    tables, scores = two_ratios(), two_scores()
    for table in tables.values():
        table.summary["seconds"] = {"encode": 987.654}
        table.summary["cache_hits"] = {"loss_curves": 17}
    for ratio, frame in scores.items():
        # As they come back from Parquet.
        values = [np.array([np.nan if f1 is None else f1 for f1 in row]) for row in frame["class_f1"]]
        stored = frame.assign(class_f1=pd.Series(values, index=frame.index))
        scores[ratio] = stored.assign(fit_seconds=987.654, cache_hit=True)
    summaries, kept = json.dumps([table.summary for table in tables.values()]), copy.deepcopy(scores)
    assert render_table_report("flights", dict(sorted(tables.items())), scores) == page.text
    assert json.dumps([table.summary for table in tables.values()]) == summaries
    for ratio, frame in scores.items():
        pd.testing.assert_frame_equal(frame, kept[ratio])


@pytest.mark.parametrize("scores", [None, {0.5: made_scores(SMALL)}, {0.001: made_scores(SMALL).iloc[:0]}])
def test_a_table_without_scores(scores: dict[float, pd.DataFrame] | None) -> None:
    page = Page(render_table_report("flights", {0.001: small()}, scores))
    assert len(page.pictures) == 4
    assert not {"Scores", "Scores against ratio", "F1 by class"} & set(page.words)
    # A ratio without scores beside one that has them.
    page = Page(render_table_report("flights", two_ratios(), {0.001: made_scores(SMALL, seeds=1)}))
    assert page.words.count("F1 by class") == 1
    assert len(page.pictures) == 2 + 2 * 4


def test_notices_that_all_ratios_share_are_shown_once_and_no_table_is_refused() -> None:
    constant, rare = Notice("constant_column", "was dropped", column="year"), Notice("rare_class", "is rare")
    tables = {0.1: replace(small(), notices=[constant]), 0.2: replace(small(), notices=[constant, rare])}
    words = Page(render_table_report("flights", tables)).words
    assert words.count("Column 'year': was dropped") == words.count("is rare") == 1
    assert words.index("Column 'year': was dropped") < words.index("Ratio 0.1", words.index("singletons"))
    assert words.index("is rare") > len(words) - words[::-1].index("Ratio 0.2")
    with pytest.raises(InputError, match="flights"):
        render_table_report("flights", {})
