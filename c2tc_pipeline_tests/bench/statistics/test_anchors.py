"""Ours beside the paper's number and the whole table."""

from __future__ import annotations

import pandas as pd
import pytest

from c2tc_pipeline.bench.experiments.paper_numbers import paper_numbers
from c2tc_pipeline.bench.reports.standings import anchors_table
from c2tc_pipeline.bench.statistics.runs import anchored
from c2tc_pipeline_tests.bench.statistics.made_scores import runs, together


def scores() -> pd.DataFrame:
    rows = [("ours", 0.001, "hcfe", 0, 0.8), ("ours", 0.001, "hcfe", 1, 0.84), ("random", 0.001, "hcfe", 0, 0.7)]
    rows += [("whole", 1.0, "hcfe", 0, 0.86), ("whole", 1.0, "label", 0, 0.85), ("ours", 0.001, "label", 0, 0.68)]
    frame = pd.DataFrame(rows, columns=["method", "ratio", "space", "split", "accuracy"])
    return frame.assign(table="adult", model="mlp", variant="", seed=frame["split"], model_seed=0, status="ok")


def test_each_space_has_its_own_whole_and_the_papers_number_of_that_space() -> None:
    found = anchored(scores(), "accuracy", paper_numbers("overall")).set_index("space")
    assert found.loc["hcfe", "mean"] == pytest.approx(0.82)
    assert found.loc["hcfe", "share"] == pytest.approx(0.82 / 0.86)
    assert found.loc["label", "share"] == pytest.approx(0.68 / 0.85)
    assert found.loc["hcfe", "paper"] == 0.815
    # The paper ran its method on its own encoding only.
    assert found["paper"].isna().tolist() == [space == "label" for space in found.index]


def test_each_encoding_stands_once_beside_the_papers_number_for_it() -> None:
    spaces = ("label", "onehot_pca", "target", "hcfe_paper", "hcfe_minmax", "hcfe")
    own = together(*(runs("ours", [0.8], table="adult", ratio=0.001, space=space) for space in spaces))
    paper = paper_numbers("encoding")
    found = anchored(own, "accuracy", paper)
    assert found["space"].tolist() == list(spaces)
    printed = paper[(paper["table"] == "adult") & (paper["metric"] == "accuracy")].set_index("space")["mean"]
    expected = [printed[name] for name in ("label", "onehot_pca", "target", "hcfe", "hcfe", "hcfe")]
    assert found["paper"].tolist() == expected
    assert len(set(expected)) == 4


def test_without_a_paper_or_a_whole_there_is_nothing_to_compare_with() -> None:
    everyone = scores()
    own = everyone[everyone["method"] != "whole"]
    found = anchored(own, "accuracy")
    assert found[["paper", "whole", "share"]].isna().all(axis=None)
    assert "—" in anchors_table(found).markdown()


def test_the_table_counts_what_is_below_the_paper() -> None:
    text = anchors_table(anchored(scores(), "accuracy", paper_numbers("overall"))).markdown()
    assert "**+0.5**" in text
    assert "-13.5" not in text
    assert "Below the paper: 0 of 1 number" in text
    worse = scores().assign(accuracy=0.7)
    assert (
        "Below the paper: 1 of 1 number"
        in anchors_table(anchored(worse, "accuracy", paper_numbers("overall"))).markdown()
    )
