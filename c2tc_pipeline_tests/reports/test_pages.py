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

from c2tc_pipeline.allocation.problem import Allocation
from c2tc_pipeline.common.errors import InputError, Notice
from c2tc_pipeline.evaluation.metrics import CLASS_METRICS
from c2tc_pipeline.evaluation.row_worth import class_means, mean_scores, row_worth
from c2tc_pipeline.reports.html import MAX_ROWS, render_report, sampled_places
from c2tc_pipeline.reports.leaderboard import ranked, render_leaderboard, render_leaderboard_markdown
from c2tc_pipeline.reports.table_report import render_table_report
from c2tc_pipeline.reports.verdict import verdict
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


@pytest.mark.parametrize(("render", "pictures"), [(render_report, 8), (nasty_table_report, 15)])
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
    assert {"336,776 → 337", "1 : 999", "18.8 s", "Column 'year': was dropped"} <= words
    assert {"154,000", "45.7 %", "32.6 %", "1,400"} <= words
    assert {"encoder.strings", "auto", "numpy", "2.4.0"} <= words
    # Shares and projection, four distributions, loss curves and search.
    assert [kind for kind, _ in page.pictures] == ["svg+xml"] * 8
    # Many points are embedded as PNG.
    assert [kind for kind, _ in Page(render_report(stand_in(sampled=2_000))).pictures].count("png") == 1
    assert render_report(table) == page.text
    assert render_report(stand_in(seed=1)) != page.text


def test_a_table_without_bound_trace_or_notices() -> None:
    table = stand_in()
    table = replace(
        table,
        allocation=Allocation("ratio", table.allocation.counts, 5.0, 0, table.allocation.trace[:1], None, 0.25),
        summary={**table.summary, "bound": None, "gap": None},
    )
    page = Page(render_report(table))
    assert len(page.pictures) == 7
    text = " ".join(page.words)
    for absent in ("Notices", "gap", "None", "nan"):
        assert absent not in text


def test_scores_are_shown_when_there_are_some() -> None:
    table = stand_in()
    bare = Page(render_report(table))
    scores = made_scores(LARGE, models=["<mlp>"], seeds=3).assign(fit_seconds=0.5)
    table.summary["scores"] = mean_scores(scores).to_dict("records")
    table.summary["class_scores"] = class_means(scores).to_dict("records")
    table.summary["row_worth"] = row_worth(scores).to_dict("records")
    table.summary["verdict"] = verdict(scores)
    page = Page(render_report(table))
    text = " ".join(page.words)
    for shown in ("<mlp>", "random", "72.0 ± 1.6", "75.0", "500 ms", verdict(scores)):
        assert shown in text
        assert shown not in bare.words
    # The verdict is first, then numbers at a glance, pictures, and all numbers last.
    assert page.words.index(verdict(scores)) < page.words.index("1 : 999") < page.words.index("72.0 ± 1.6")
    # Against rows, three scores, and three scores class by class.
    assert len(page.pictures) == 1 + 3 + 3 + len(bare.pictures)


def test_two_hundred_classes_and_more_columns_than_fit() -> None:
    features = [f"feature_{i}" for i in range(120)]
    table = stand_in(classes=list(range(200)), class_rows=[5_000] * 200, counts=[3] * 200, features=features)
    page = Page(render_report(table))
    # A row of each class is shown.
    assert any(re.findall(r"\d+", words)[:4] == ["200", "600", "100", "120"] for words in page.words)
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
    original = table.original_rows.copy()
    original.loc[0, "origin"] = np.nan
    original.loc[0, "carrier"] = None
    page = Page(render_report(replace(table, original_rows=original)))
    assert page.words.count("—") == 2
    assert {"False", "True"} <= set(page.words)


def test_every_ratio_has_its_numbers_pictures_rows_and_scores_the_smallest_first(page: Page) -> None:
    assert page.words.index("Ratio 0.1 %") < page.words.index("Ratio 1 %")
    assert {"336,776 → 20", "336,776 → 210", "1 : 16,839", "1 : 1,604"} <= set(page.words)
    # Scores against rows of two models over both ratios, and four distributions; for each ratio row worth of two
    # models, three scores, three class by class, shares, projection, curves and trace.
    assert len(page.pictures) == 2 + 4 + 2 * (2 + 3 + 3 + 4)
    assert not re.search(r"Time|stage|\d (s|ms|min)\b", " ".join(page.words))
    # Scores in all, and class by class.
    assert {"71.0 ± 1.0", "61.0 ± 1.0", "91.0 ± 1.0", "81.0 ± 1.0"} <= set(page.words)
    assert {"50.0", "40.0", "70.0"} <= set(page.words)
    # The class without test rows: one dash per model, training set, metric and ratio.
    assert page.words.count("—") == 2 * 3 * 4 * 2
    places = [value for _, name, value in page.attributes if name == "id"]
    assert len(places) == len(set(places))
    assert {link.removeprefix("#") for link in page.values("a", "href")} == set(places)


def test_rows_of_all_classes_are_sampled_from_heavy_to_light() -> None:
    counts = np.array([1, 300, 2, 97])
    weight = np.random.default_rng(0).integers(1, 1_000, counts.sum())
    places = sampled_places(weight, counts)
    assert len(set(places)) == len(places) <= MAX_ROWS + len(counts)
    start = 0
    for size in counts:
        own = places[(places >= start) & (places < start + size)]
        assert len(own) >= 1
        assert (np.diff(weight[own]) <= 0).all()
        assert weight[own].max() == weight[start : start + size].max()
        start += size
    np.testing.assert_array_equal(np.sort(sampled_places(weight[:3], np.array([1, 2]))), [0, 1, 2])


def test_the_page_depends_neither_on_timings_nor_on_order_and_leaves_its_input_alone(page: Page) -> None:
    tables, scores = two_ratios(), two_scores()
    for table in tables.values():
        table.summary["seconds"] = {"encode": 987.654}
        table.summary["cache_hits"] = {"loss_curves": 17}
    for ratio, frame in scores.items():
        # As they come back from Parquet.
        stored = frame.copy()
        for name in CLASS_METRICS:
            values = [np.array([np.nan if value is None else value for value in row]) for row in frame[name]]
            stored[name] = pd.Series(values, index=frame.index)
        scores[ratio] = stored.assign(fit_seconds=987.654, cache_hit=True)
    summaries, kept = json.dumps([table.summary for table in tables.values()]), copy.deepcopy(scores)
    assert render_table_report("flights", dict(sorted(tables.items())), scores) == page.text
    assert json.dumps([table.summary for table in tables.values()]) == summaries
    for ratio, frame in scores.items():
        pd.testing.assert_frame_equal(frame, kept[ratio])


@pytest.mark.parametrize("scores", [None, {0.5: made_scores(SMALL)}, {0.001: made_scores(SMALL).iloc[:0]}])
def test_a_table_without_scores(scores: dict[float, pd.DataFrame] | None) -> None:
    page = Page(render_table_report("flights", {0.001: small()}, scores))
    assert len(page.pictures) == 8


def test_a_ratio_without_scores_beside_one_that_has_them() -> None:
    page = Page(render_table_report("flights", two_ratios(), {0.001: made_scores(SMALL, seeds=1)}))
    assert len(page.pictures) == 2 + 4 + (2 + 3 + 3) + 2 * 4


def test_notices_that_all_ratios_share_are_shown_once_and_no_table_is_refused() -> None:
    constant, rare = Notice("constant_column", "was dropped", column="year"), Notice("rare_class", "is rare")
    tables = {0.1: replace(small(), notices=[constant]), 0.2: replace(small(), notices=[constant, rare])}
    words = Page(render_table_report("flights", tables)).words
    assert words.count("Column 'year': was dropped") == words.count("is rare") == 1
    # The first is a link.
    assert words.index("Column 'year': was dropped") < words.index("Ratio 10 %", words.index("Ratio 10 %") + 1)
    assert words.index("is rare") > len(words) - words[::-1].index("Ratio 20 %")
    with pytest.raises(InputError, match="flights"):
        render_table_report("flights", {})


def entry(table: str, *accuracies: float, ratio: float = 0.01, model: str = "mlp") -> pd.DataFrame:
    """Return scores of a model trained on condensed, random and all rows."""
    place: dict[str, Any] = {"table": table, "ratio": ratio, "rows_in": 12_000, "rows_out": 120, "model": model}
    place |= {"columns": "encoded", "worth": 3.2, "bound": ""}
    frame = pd.DataFrame({"training_set": ["condensed", "random", "whole"], "accuracy": accuracies})
    spread: dict[str, Any] = {
        "accuracy_std": [0.01, 0.02, 0.003],
        "macro_f1": frame["accuracy"] - 0.1,
        "macro_f1_std": 0.0,
    }
    return frame.assign(**place, **spread, rows=120, seeds=3)


BOARD = pd.concat(
    [
        entry("flights", 0.6, 0.5, 0.9),
        entry("adult", 0.85, 0.7, 0.9),
        entry("adult", 0.75, 0.7, 0.9, ratio=0.001, model="boosting"),
        entry("<b>hopeless|", 0.99, 0.8, 0.8),
        entry("worse", 0.4, 0.5, 0.9),
    ],
    ignore_index=True,
)


def test_the_best_is_first_and_what_has_no_gap_last() -> None:
    board = ranked(BOARD)
    assert board["table"].tolist() == ["adult", "adult", "flights", "worse", "<b>hopeless|"]
    assert board["accuracy_kept"].round(3).tolist()[:4] == [0.75, 0.25, 0.25, -0.25]
    assert board[["accuracy_kept", "macro_f1_kept"]].iloc[-1].isna().all()


def test_markdown_and_page_show_means_deviations_and_what_is_kept_in_any_order_of_the_input() -> None:
    text = render_leaderboard_markdown(BOARD)
    lines = text.splitlines()
    assert lines[4].startswith(
        "| adult | 1 % | 12,000 → 120 | mlp | 3.2 | 85.0 ± 1.0 | 70.0 ± 2.0 | 90.0 ± 0.3 | 75.0 % | 75"
    )
    assert lines[8].startswith("| \\<b\\>hopeless\\| |")
    assert lines[8].count("| — |") == 2
    assert render_leaderboard_markdown(BOARD.sample(frac=1, random_state=0)) == text
    page = Page(render_leaderboard(BOARD))
    page.check_harmless()
    assert {"85.0 ± 1.0", "70.0 ± 2.0", "90.0 ± 0.3", "75.0 %", "-25.0 %", "—"} <= set(page.words)
    assert page.words.index("adult") < page.words.index("flights") < page.words.index("<b>hopeless|")
    # A missing training set is a dash.
    board = BOARD[(BOARD["table"] != "flights") | (BOARD["training_set"] != "whole")]
    line = next(line for line in render_leaderboard_markdown(board).splitlines() if line.startswith("| flights"))
    assert "| 60.0 ± 1.0 | 50.0 ± 2.0 | — | — |" in line
