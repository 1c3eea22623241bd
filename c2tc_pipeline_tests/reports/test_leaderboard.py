"""The leaderboard ranks, formats and escapes what it is given."""

from __future__ import annotations

from typing import Any

import pandas as pd

from c2tc_pipeline.reports.leaderboard import ranked, render_leaderboard, render_leaderboard_markdown
from c2tc_pipeline_tests.reports.page_parser import Page


def entry(table: str, *accuracies: float, ratio: float = 0.01, model: str = "mlp") -> pd.DataFrame:
    """Return scores of a model trained on condensed, random and all rows."""
    place: dict[str, Any] = {
        "table": table,
        "ratio": ratio,
        "rows_in": 12_000,
        "rows_out": 120,
        "model": model,
        "seeds": 3,
    }
    frame = pd.DataFrame({"training_set": ["condensed", "random", "whole"], "accuracy": accuracies})
    return frame.assign(
        **place, accuracy_std=[0.01, 0.02, 0.003], macro_f1=frame["accuracy"] - 0.1, macro_f1_std=0.0, rows=120
    )


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
        "| adult | 0.01 | 12,000 → 120 | mlp | 85.0 ± 1.0 | 70.0 ± 2.0 | 90.0 ± 0.3 | 75 % | 75.0 ± 0.0 |"
    )
    assert lines[8].startswith("| \\<b\\>hopeless\\| |")
    assert lines[8].count("| — |") == 2
    for seed in range(5):
        assert render_leaderboard_markdown(BOARD.sample(frac=1, random_state=seed)) == text
    page = Page(render_leaderboard(BOARD))
    page.check_harmless()
    assert {"85.0 ± 1.0", "70.0 ± 2.0", "90.0 ± 0.3", "75 %", "-25 %", "—"} <= set(page.words)
    assert page.words.index("adult") < page.words.index("flights") < page.words.index("<b>hopeless|")


def test_a_missing_training_set_is_a_dash() -> None:
    board = BOARD[(BOARD["table"] != "flights") | (BOARD["training_set"] != "whole")]
    line = next(line for line in render_leaderboard_markdown(board).splitlines() if line.startswith("| flights"))
    assert "| 60.0 ± 1.0 | 50.0 ± 2.0 | — | — |" in line
