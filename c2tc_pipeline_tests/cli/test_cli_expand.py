"""``c2tc expand``: what is written, and mistakes."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from c2tc_pipeline import CondensedTable, condense
from c2tc_pipeline_tests.cli.test_cli_mistakes import assert_refused
from c2tc_pipeline_tests.tools.command_line import Run
from c2tc_pipeline_tests.tools.made_tables import mixed_table


@pytest.fixture
def small(run: Run) -> CondensedTable:
    """A condensed table, stored in ``small``."""
    frame = mixed_table(120).rename(columns={"job": "weight"})
    condense(frame, "outcome", rows=6).save("small")
    return CondensedTable.load("small")


def test_the_file_has_drawn_rows_with_their_label_and_weight(run: Run, small: CondensedTable) -> None:
    options = ("--space", "encoded", "--class-mix", "source", "--seed", 3)
    for name, chosen in (("plain", ()), ("chosen", options)):
        result = run("expand", "small", "--rows", 50, "--out", f"{name}.parquet", *chosen)
        assert result.exit_code == 0, result.output
        assert f"{name}.parquet" in result.stdout
    assert sorted(path.name for path in Path().iterdir()) == ["chosen.parquet", "plain.parquet", "small"]
    X, y, weight = small.expand(50, random_state=0)
    # The source has a column of that name.
    expected = X.assign(outcome=y, c2tc_weight=weight)
    pd.testing.assert_frame_equal(pd.read_parquet("plain.parquet"), expected)
    X, y, weight = small.expand(50, space="encoded", class_mix="source", random_state=3)
    stored = pd.read_parquet("chosen.parquet")
    pd.testing.assert_frame_equal(stored, pd.concat([X, y, weight.rename(stored.columns[-1])], axis=1))


def test_mistakes(run: Run, small: CondensedTable) -> None:
    Path("mine.parquet").write_text("mine")
    Path("empty").mkdir()
    for directory, out, mentioned in (
        ("small", "mine.parquet", "'mine.parquet'"),
        ("small", "nowhere/train.parquet", "'nowhere'"),
        ("small", "train.csv", "'train.csv'"),
        ("smal", "train.parquet", "'smal'"),
        ("empty", "train.parquet", "empty"),
    ):
        assert_refused(run, ["expand", directory, "--out", out], mentioned)
