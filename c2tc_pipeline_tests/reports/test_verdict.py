"""The verdict says what was measured, and warns of references that are not sound."""

from __future__ import annotations

import pytest

from c2tc_pipeline.evaluation.averages import mean_scores
from c2tc_pipeline.reports.verdict import verdict, weak_references
from c2tc_pipeline_tests.reports.stand_in import made_scores

COUNTS = (60, 40)


@pytest.mark.parametrize(("lift", "does_as_well"), [(0.0, False), (-0.15, True)])
def test_rows_share_and_worth_are_those_of_the_scores(lift: float, does_as_well: bool) -> None:
    scores = made_scores(COUNTS, models=["mlp"], seeds=1)
    own = scores["training_set"] == "condensed"
    scores.loc[own, ["accuracy", "auc"]] += lift
    text = verdict(scores)
    share = 100 * scores.loc[own, "accuracy"].iloc[0] / 0.9
    for shown in ("100", "10,000", "mlp", f"{share:.1f}"):
        assert shown in text
    assert ("random sample" in text) == does_as_well


def test_a_reference_below_a_part_of_the_table_is_named() -> None:
    scores = made_scores(COUNTS, models=["good", "broken"])
    assert weak_references(mean_scores(scores)) == []
    scores.loc[(scores["model"] == "broken") & (scores["training_set"] == "whole"), "accuracy"] = 0.5
    (sentence,) = weak_references(mean_scores(scores))
    assert "broken" in sentence
