"""Row worth: cases with a known answer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline import condense, evaluate
from c2tc_pipeline.evaluation.row_worth import multiple_of, random_set, read_curve, row_worth
from c2tc_pipeline_tests.tools.made_tables import mixed_table

MULTIPLES = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
BUDGET, WHOLE = 100, 100_000


def quality(rows: float) -> float:
    """A learning curve: linear in the logarithm of rows."""
    return 0.5 + 0.04 * float(np.log(rows))


def made_scores(score: Callable[[np.random.Generator], float], *, noise: float = 0.0, draws: int = 5) -> pd.DataFrame:
    """Generate scores of random samples on the curve, and of condensed rows with a score of their own."""
    rng = np.random.default_rng(0)
    sets = {random_set(multiple): int(multiple * BUDGET) for multiple in MULTIPLES} | {"whole": WHOLE}
    records = [
        {"training_set": name, "rows": rows, "seed": seed, "auc": quality(rows) + rng.normal(0, noise)}
        for name, rows in sets.items()
        for seed in range(draws)
    ]
    records += [{"training_set": "condensed", "rows": BUDGET, "seed": seed, "auc": score(rng)} for seed in range(draws)]
    return pd.DataFrame(records).assign(model="logistic", columns="encoded")


@given(st.floats(0.5, 50))
def test_the_worth_is_read_off_the_curve(times: float) -> None:
    found = row_worth(made_scores(lambda _: quality(times * BUDGET)), ["auc"]).iloc[0]
    assert found["worth"] == pytest.approx(times)
    assert found["bound"] == ""
    assert found["low"] == pytest.approx(found["high"]) == pytest.approx(times)


def test_a_random_sample_is_worth_one_within_its_interval() -> None:
    scores = made_scores(lambda rng: quality(BUDGET) + rng.normal(0, 0.01), noise=0.01)
    found = row_worth(scores, ["auc"]).iloc[0]
    assert found["low"] <= 1 <= found["high"]
    assert found["low"] < found["high"]


@pytest.mark.parametrize(("score", "worth", "bound"), [(quality(WHOLE), 50, "more"), (0.1, 0.5, "less")])
def test_beyond_the_curve_nothing_is_extrapolated(score: float, worth: float, bound: str) -> None:
    found = row_worth(made_scores(lambda _: score), ["auc"]).iloc[0]
    assert (found["worth"], found["bound"]) == (worth, bound)


def test_the_whole_table_ends_the_curve_when_it_is_near() -> None:
    scores = made_scores(lambda _: quality(1000))
    near = scores.assign(rows=scores["rows"].where(scores["training_set"] != "whole", 1000))
    near = near[near["rows"] <= 1000].assign(auc=lambda frame: frame["rows"].map(quality))
    near.loc[near["training_set"] == "condensed", "auc"] = quality(900)
    found = row_worth(near, ["auc"]).iloc[0]
    assert found["worth"] == pytest.approx(9)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.floats(0, 1), st.floats(0, 1))
def test_a_higher_score_is_never_worth_less(means: list[float], one: float, other: float) -> None:
    multiples = np.geomspace(1, 50, len(means))
    low, high = (read_curve(multiples, means, score)[0] for score in sorted((one, other)))
    assert multiples[0] <= low <= high * (1 + 1e-9) <= multiples[-1] * (1 + 1e-6)


def test_undefined_scores_and_missing_samples_have_no_worth() -> None:
    scores = made_scores(lambda _: 0.7)
    assert row_worth(scores.assign(auc=np.nan), ["auc"]).empty
    assert row_worth(scores[scores["training_set"] == "condensed"], ["auc"]).empty


def test_names_of_random_sets() -> None:
    assert [multiple_of(random_set(multiple)) for multiple in MULTIPLES] == list(MULTIPLES)


def test_a_table_of_useless_rows_is_worth_less_than_one() -> None:
    shuffled = mixed_table(600).sample(frac=1, random_state=0)
    train, test = shuffled.iloc[:400], shuffled.iloc[400:]
    small = condense(train, "outcome", rows=40)
    # Every row gets the label of another: what a model learns from it is wrong.
    small.y = pd.Series(np.roll(small.y.to_numpy(), len(small) // 2), name=small.y.name)
    found = row_worth(evaluate(small, test, train, models=["logistic"], seeds=(0, 1, 2), multiples=[0.5, 1, 5]))
    assert (found.set_index("metric")["bound"] == "less").all()
