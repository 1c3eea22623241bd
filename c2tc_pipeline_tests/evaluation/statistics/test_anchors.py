"""Ours beside the paper's number and the whole table."""

from __future__ import annotations

import pandas as pd
import pytest

from c2tc_pipeline.evaluation.experiments.paper_numbers import paper_numbers
from c2tc_pipeline.evaluation.statistics import anchored
from c2tc_pipeline.reports.experiment_statistics import anchors_table


def scores() -> pd.DataFrame:
    rows = [("ours", 0.001, "hcfe", 0, 0.8), ("ours", 0.001, "hcfe", 1, 0.84), ("random", 0.001, "hcfe", 0, 0.7)]
    rows += [("whole", 1.0, "hcfe", 0, 0.86), ("whole", 1.0, "label", 0, 0.85), ("ours", 0.001, "label", 0, 0.68)]
    frame = pd.DataFrame(rows, columns=["method", "ratio", "space", "split", "accuracy"])
    return frame.assign(table="adult", model="mlp", variant="", seed=frame["split"], model_seed=0, status="ok")


def test_each_space_has_its_own_whole_and_the_papers_number() -> None:
    found = anchored(scores(), "accuracy", paper_numbers("overall")).set_index("space")
    assert found.loc["hcfe", "mean"] == pytest.approx(0.82)
    assert found.loc["hcfe", "share"] == pytest.approx(0.82 / 0.86)
    assert found.loc["label", "share"] == pytest.approx(0.68 / 0.85)
    assert (found["paper"] == 0.815).all()


def test_without_a_paper_or_a_whole_there_is_nothing_to_compare_with() -> None:
    own = scores()[lambda frame: frame["method"] != "whole"]
    found = anchored(own, "accuracy")
    assert found[["paper", "whole", "share"]].isna().all(axis=None)
    assert "—" in anchors_table(found).markdown()


def test_the_table_counts_what_is_below_the_paper() -> None:
    text = anchors_table(anchored(scores(), "accuracy", paper_numbers("overall"))).markdown()
    assert "**+0.5**" in text
    assert "| -13.5 |" in text.replace("\u2212", "-")
    assert "Below the paper: 1 of 2 numbers" in text
