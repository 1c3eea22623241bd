"""Descriptions of a condensed table for a prompt and for a notebook."""

from __future__ import annotations

import numpy as np
import pandas as pd

from c2tc_pipeline import condense
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
