"""The page of a table over its ratios says what it should of each, and nothing that depends on the clock."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.common.errors import InputError, Notice
from c2tc_pipeline.reports.table_report import render_table_report
from c2tc_pipeline_tests.reports.page_parser import Page
from c2tc_pipeline_tests.reports.stand_in import NASTY_CLASSES, StandIn, made_scores, nasty_stand_in, stand_in

SMALL, LARGE = (6, 5, 4, 3, 2), (60, 55, 45, 40, 10)


def small() -> StandIn:
    return stand_in(counts=SMALL, sampled=30)


def two_ratios() -> dict[float, StandIn]:
    return {0.01: stand_in(counts=LARGE, sampled=30, seed=1), 0.001: small()}


def two_scores() -> dict[float, pd.DataFrame]:
    return {0.01: made_scores(LARGE, lift=0.1), 0.001: made_scores(SMALL)}


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(render_table_report("flights", two_ratios(), two_scores()))


def test_every_ratio_has_its_numbers_pictures_and_rows_the_smallest_first(page: Page) -> None:
    assert page.words.index("Ratio 0.001") < page.words.index("Ratio 0.01")
    assert {"336,776 → 20", "336,776 → 210", "1 : 16,839", "1 : 1,604"} <= set(page.words)
    # Two of scores against ratio, and shares, projection, curves and trace of each ratio.
    assert len(page.pictures) == 2 + 2 * 4
    assert any("All 20 rows" in words for words in page.words)
    assert any("The first 200 of 210 rows" in words for words in page.words)


def test_every_link_leads_to_a_place_on_the_page(page: Page) -> None:
    places = [value for _, name, value in page.attributes if name == "id"]
    assert len(places) == len(set(places))
    assert {link.removeprefix("#") for link in page.values("a", "href")} == set(places)
    assert "ratio-0.001" in places


def test_scores_are_said_in_all_and_class_by_class(page: Page) -> None:
    assert {"71.0 ± 1.0", "61.0 ± 1.0", "91.0 ± 1.0", "81.0 ± 1.0"} <= set(page.words)
    assert {"50.0 ± 0.0", "40.0 ± 0.0", "70.0 ± 0.0"} <= set(page.words)
    # The class without test rows: one dash a model, training set and ratio.
    assert page.words.count("—") == 2 * 3 * 2


def test_the_page_is_the_same_however_long_things_took_and_in_whichever_order_they_come(page: Page) -> None:
    tables, scores = two_ratios(), two_scores()
    for table in tables.values():
        table.summary["seconds"] = {"encode": 987.654}
        table.summary["cache_hits"] = {"loss_curves": 17}
    for ratio, frame in scores.items():
        # As they come back from Parquet.
        values = [np.array([np.nan if f1 is None else f1 for f1 in row]) for row in frame["class_f1"]]
        stored = frame.assign(class_f1=pd.Series(values, index=frame.index))
        scores[ratio] = stored.assign(fit_seconds=987.654, cache_hit=True)
    assert render_table_report("flights", dict(sorted(tables.items())), scores) == page.text


@pytest.mark.parametrize("scores", [None, {}, {0.5: made_scores(SMALL)}, {0.001: made_scores(SMALL).iloc[:0]}])
def test_a_table_without_scores(scores: dict[float, pd.DataFrame] | None) -> None:
    page = Page(render_table_report("flights", {0.001: small()}, scores))
    assert len(page.pictures) == 4
    for absent in ("Scores", "Scores against ratio", "F1 by class"):
        assert absent not in page.words


def test_a_ratio_without_scores_beside_one_that_has_them() -> None:
    page = Page(render_table_report("flights", two_ratios(), {0.001: made_scores(SMALL, seeds=1)}))
    assert page.words.count("F1 by class") == 1
    assert len(page.pictures) == 2 + 2 * 4


def test_notices_that_all_ratios_share_are_said_once() -> None:
    constant, rare = Notice("constant_column", "was dropped", column="year"), Notice("rare_class", "is rare")
    tables = {0.1: replace(small(), notices=[constant]), 0.2: replace(small(), notices=[constant, rare])}
    words = Page(render_table_report("flights", tables)).words
    assert words.count("Column 'year': was dropped") == words.count("is rare") == 1
    assert words.index("Column 'year': was dropped") < words.index("Ratio 0.1", words.index("singletons"))
    assert words.index("is rare") > len(words) - words[::-1].index("Ratio 0.2")


def test_hostile_names_are_shown_and_never_markup() -> None:
    name = "</title><img src=x onerror=alert(1)>"
    page = Page(render_table_report(name, {0.1: nasty_stand_in()}, {0.1: made_scores([7, 3], models=["<u>model</u>"])}))
    page.check_harmless()
    assert f"Condensed table: {name}" in page.words
    assert NASTY_CLASSES[0] in page.words
    assert "<u>model</u>" in page.words
    page.text.encode("utf-8")


def test_settings_are_shown_and_the_input_is_left_alone() -> None:
    table, scores = small(), made_scores(SMALL)
    before, scores_before = json.dumps(table.summary), copy.deepcopy(scores)
    words = Page(render_table_report("flights", {0.001: table}, {0.001: scores})).words
    assert {"encoder.strings", "auto", "numpy", "2.4.0"} <= set(words)
    assert json.dumps(table.summary) == before
    pd.testing.assert_frame_equal(scores, scores_before)


def test_no_word_of_time(page: Page) -> None:
    said = " ".join(page.words)
    assert not re.search(r"Time|stage|\d (s|ms|min)\b", said)


def test_no_table_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="'flights' has no condensed table"):
        render_table_report("flights", {})
