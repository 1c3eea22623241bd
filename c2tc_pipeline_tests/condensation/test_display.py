"""Descriptions of a condensed table for a prompt and for a notebook."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline import condense
from c2tc_pipeline.condensation.display import heaviest_rows, shown_values
from c2tc_pipeline_tests.reports.page_parser import Page
from c2tc_pipeline_tests.tools.made_tables import mixed_table


def test_the_text_has_five_lines_with_sizes_and_classes() -> None:
    frame = mixed_table(300)
    small = condense(frame, "outcome", 0.1, name="people")
    lines = repr(small).splitlines()
    assert len(lines) == 5
    assert all(text in lines[0] for text in ("people", "300", str(len(small))))
    for name, count in zip(small.classes, small.allocation.counts, strict=True):
        assert f"{name} {count}" in lines[1]


def test_many_classes_are_summed_up() -> None:
    labels = [f"class {number}" for number in range(40)]
    frame = pd.DataFrame({"x": np.arange(400) % 7, "z": np.arange(400.0), "y": np.resize(labels, 400)})
    small = condense(frame, "y", 0.2)
    assert len(repr(small).splitlines()) == 5
    assert len(repr(small)) < 500
    assert "34 more" in repr(small)
    assert "34 more" in small._repr_html_()


def test_the_card_escapes_what_comes_from_the_table() -> None:
    frame = mixed_table(200).rename(columns={"amount": "<script>alert(1)</script>"})
    frame["outcome"] = np.resize(["<b>yes</b>", "no & never"], 200)
    small = condense(frame, "outcome", 0.1, name="<img src=x>")
    small.summary["verdict"] = "10 rows <i>stand</i> for 200."
    card = small._repr_html_()
    assert not {"script", "img", "i"} & set(Page(card).tags)
    assert "&lt;b&gt;yes&lt;/b&gt;" in card


def test_the_card_shows_five_rows_over_the_classes() -> None:
    small = condense(mixed_table(300), "outcome", 0.1)
    rows = heaviest_rows(small)
    assert len(rows) == 5
    assert set(rows["outcome"]) == set(small.classes)
    assert f"{small.weight.max():,} rows" in set(rows["stands for"])


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([211.658, 1050.7525, np.nan], ["212", "1051", None]),
        ([10_050.75, 3.2], ["10,051", "3"]),
        ([2013, 1999], ["2013", "1999"]),
        ([47.8959, 47.6012, 47.8], ["47.896", "47.601", "47.800"]),
        ([-0.0001, 50.0, 99.9], ["0.0", "50.0", "99.9"]),
        ([3.0, 3.0], ["3.00", "3.00"]),
        ([True, False], [True, False]),
        (pd.array([1, None], dtype="Int64"), ["1", None]),
        (pd.to_datetime(["2023-04-07 14:19:13.59", "2024-04-07 00:00:00.00"]), ["2023-04-07", "2024-04-07"]),
        (
            pd.to_datetime(["2023-04-07 14:19:13.59", "2023-04-08 00:00:00.00"]),
            ["2023-04-07 14:19", "2023-04-08 00:00"],
        ),
        (["a", "b"], ["a", "b"]),
    ],
)
def test_values_have_the_digits_that_their_range_warrants(values: Any, shown: list[Any]) -> None:
    column = pd.Series(values)
    found = shown_values(column, column)
    assert found.astype(object).where(found.notna(), None).tolist() == shown
