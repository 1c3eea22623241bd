"""The leaderboard ranks, words and escapes what it is given."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest

from c2tc_pipeline.reports.leaderboard import ranked, render_leaderboard, render_leaderboard_markdown
from c2tc_pipeline_tests.reports.page_parser import Page


def entry(
    table: str, condensed: float, random: float, whole: float, *, ratio: float = 0.01, model: str = "mlp"
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "table": table,
            "ratio": ratio,
            "rows_in": 12_000,
            "rows_out": 120,
            "model": model,
            "training_set": ["condensed", "random", "whole"],
            "rows": [120, 120, 12_000],
            "seeds": 3,
            "accuracy": [condensed, random, whole],
            "accuracy_std": [0.01, 0.02, 0.003],
            "macro_f1": [condensed - 0.1, random - 0.1, whole - 0.1],
            "macro_f1_std": 0.0,
        }
    )


BOARD = pd.concat(
    [
        entry("flights", 0.6, 0.5, 0.9),
        entry("adult", 0.85, 0.7, 0.9),
        entry("adult", 0.75, 0.7, 0.9, ratio=0.001, model="boosting"),
        entry("hopeless", 0.99, 0.8, 0.8),
        entry("worse", 0.4, 0.5, 0.9),
    ]
)


def test_the_best_is_first_and_what_has_no_gap_last() -> None:
    board = ranked(BOARD)
    assert board["table"].tolist() == ["adult", "adult", "flights", "worse", "hopeless"]
    assert board["accuracy_kept"].round(3).tolist()[:4] == [0.75, 0.25, 0.25, -0.25]
    assert board[["accuracy_kept", "macro_f1_kept"]].iloc[-1].isna().all()


def test_the_order_of_the_input_does_not_matter() -> None:
    expected = render_leaderboard_markdown(BOARD)
    for order in itertools.islice(itertools.permutations(range(len(BOARD))), 0, 10**6, 10**5 // 3):
        assert render_leaderboard_markdown(BOARD.iloc[list(order)]) == expected


def test_markdown_says_means_deviations_and_what_is_kept() -> None:
    lines = render_leaderboard_markdown(BOARD).splitlines()
    assert lines[4].startswith(
        "| adult | 0.01 | 12,000 → 120 | mlp | 85.0 ± 1.0 | 70.0 ± 2.0 | 90.0 ± 0.3 | 75 % | 75.0 ± 0.0 |"
    )
    assert lines[8].startswith("| hopeless |")
    assert lines[8].count("| — |") == 2


def test_the_page_says_the_same() -> None:
    page = Page(render_leaderboard(BOARD))
    page.check_harmless()
    assert {"85.0 ± 1.0", "70.0 ± 2.0", "90.0 ± 0.3", "75 %", "-25 %", "—"} <= set(page.words)
    assert page.words.index("adult") < page.words.index("flights") < page.words.index("hopeless")


def test_a_missing_training_set_is_a_dash() -> None:
    board = BOARD[(BOARD["table"] != "flights") | (BOARD["training_set"] != "whole")]
    line = next(line for line in render_leaderboard_markdown(board).splitlines() if line.startswith("| flights"))
    assert "| 60.0 ± 1.0 | 50.0 ± 2.0 | — | — |" in line


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=alert(1)>", "a|b\n| c", "[x](javascript:alert(1))", "![x](http://x/)", "`a` **b** \\|"]
)
def test_hostile_names_stay_in_their_cell(name: str) -> None:
    board = entry(name, 0.6, 0.5, 0.9)
    # Empty comments part addresses, which would become links.
    line = render_leaderboard_markdown(board).splitlines()[4].replace("<!---->", "")
    # Whatever could start something is behind a backslash that is not itself behind one.
    unescaped = line.replace("\\\\", "").split("|")
    assert len([cell for cell in unescaped if not cell.endswith("\\")]) == 14
    for mark in "<[]`*":
        assert f"\\{mark}" in line or mark not in line
        assert line.count(mark) == line.count(f"\\{mark}")
    page = Page(render_leaderboard(board))
    page.check_harmless()
    assert " ".join(name.split()) in page.words
