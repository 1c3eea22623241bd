"""The verdict says what was measured, and warns of references that are not sound."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.evaluation.row_worth import mean_scores, row_worth
from c2tc_pipeline.reports.verdict import headline, verdict, weak_references
from c2tc_pipeline_tests.reports.stand_in import made_scores

COUNTS = (60, 40)


def shifted(shift: float, metrics: tuple[str, ...] = ("accuracy", "auc")) -> pd.DataFrame:
    """Return scores of one learner, with those of the condensed rows shifted."""
    scores = made_scores(COUNTS, models=["mlp"], seeds=1)
    scores.loc[scores["training_set"] == "condensed", list(metrics)] += shift
    return scores


@pytest.mark.parametrize(("shift", "does_as_well"), [(0.0, False), (-0.1, True), (-0.15, True)])
def test_rows_share_and_worth_are_those_of_the_scores(shift: float, does_as_well: bool) -> None:
    text = verdict(shifted(shift))
    accuracy = 70 + 100 * shift
    for shown in ("100", "10,000", "mlp", f"{accuracy:.1f} %", f"{accuracy / 0.9:.1f}".removesuffix(".0"), "60.0 %"):
        assert shown in text
    assert ("random sample" in text) == does_as_well


def test_a_random_sample_that_is_better_by_one_measure_only_is_named_too() -> None:
    assert "random sample" in verdict(shifted(-0.15, ("accuracy",)))
    assert "random sample" in verdict(shifted(-0.15, ("auc",)))


def test_an_interval_down_to_one_makes_a_random_sample_possible_but_not_certain() -> None:
    scores = made_scores(COUNTS, models=["mlp"], seeds=8)
    random = scores["training_set"] == "random"
    # Means of 66 and 75 % at one and five times the rows, with 5 draws in 8 above the condensed rows' 70 %.
    scores.loc[random, "auc"] = [0.5, 0.5, 0.56, 0.72, 0.75, 0.75, 0.75, 0.75]
    scores.loc[scores["training_set"] == "condensed", "auc"] = 0.7
    (worth,) = row_worth(scores, ["auc"]).to_dict("records")
    assert worth["low"] <= 1 < worth["worth"]
    found = headline(mean_scores(scores), row_worth(scores))
    assert found is not None
    assert (found.as_good, found.maybe_as_good) == ((), ("mlp",))
    assert "may" in verdict(scores)


def test_models_that_failed_and_models_without_probabilities() -> None:
    scores = made_scores(COUNTS, models=["mlp", "plain"], seeds=1)
    plain = scores["model"] == "plain"
    scores.loc[plain, ["auc", "log_loss", "brier"]] = np.nan
    scores.loc[plain & (scores["training_set"] == "condensed"), "accuracy"] = 0.72
    # An accuracy is not compared with another model's AUC.
    assert "plain" in verdict(scores)
    scores.loc[plain, "accuracy"] = np.nan
    assert "mlp" in verdict(scores)
    scores.loc[~plain & (scores["training_set"] == "whole"), "accuracy"] = np.nan
    assert "nan" not in verdict(scores)
    assert "70.0 %" in verdict(scores)
    scores["accuracy"] = np.nan
    assert verdict(scores)
    assert weak_references(mean_scores(scores)) == []


def test_a_reference_below_a_part_of_the_table_is_named() -> None:
    scores = made_scores(COUNTS, models=["good", "broken"])
    assert weak_references(mean_scores(scores)) == []
    scores.loc[(scores["model"] == "broken") & (scores["training_set"] == "whole"), "accuracy"] = 0.5
    (sentence,) = weak_references(mean_scores(scores))
    assert "broken" in sentence
