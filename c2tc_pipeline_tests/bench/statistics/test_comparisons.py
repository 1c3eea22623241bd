"""Ours is paired with its rivals run by run, in the right space, and corrected within the family given."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from c2tc_pipeline.bench.statistics.comparisons import compare, pool
from c2tc_pipeline.bench.statistics.comparisons import holm
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.bench.statistics.made_scores import runs, together, unfinished

OURS = [0.80, 0.82, 0.84, 0.81, 0.83, 0.85]
RANDOM = [0.70, 0.75, 0.85, 0.74, 0.71, 0.72]


def only(found: pd.DataFrame, **fields: object) -> pd.Series:
    for name, value in fields.items():
        found = found[found[name] == value]
    assert len(found) == 1
    return found.iloc[0]


def test_one_comparison_by_hand() -> None:
    found = only(compare(together(runs("ours", OURS), runs("random", RANDOM))), metric="accuracy")
    differences = np.subtract(OURS, RANDOM)
    assert (found["table"], found["ratio"], found["space"], found["rival"]) == ("t", 0.01, "hcfe", "random")
    assert (found["pairs"], found["wins"], found["losses"], found["note"]) == (6, 5, 1, "")
    assert found["difference"] == pytest.approx(differences.mean())
    # Tests say how much of the table is tested on; splits of 80, 10 and 10 percent are the default.
    t = differences.mean() / np.sqrt((1 / 6 + 0.1 / 0.8) * differences.var(ddof=1))
    assert found["t_p"] == pytest.approx(2 * scipy.stats.t.sf(t, 5))
    assert found["wilcoxon_p"] == pytest.approx(scipy.stats.wilcoxon(differences).pvalue)
    assert found["t_p_holm"] == found["t_p"]


def test_the_plain_test_is_to_be_had_and_more_test_rows_count_less() -> None:
    scores = together(runs("ours", OURS), runs("random", RANDOM))
    plain, usual, large = (
        only(found, metric="accuracy")["t_p"]
        for found in (compare(scores, test_to_train=0.0), compare(scores), compare(scores, test_to_train=0.5))
    )
    assert plain == pytest.approx(scipy.stats.ttest_rel(OURS, RANDOM).pvalue)
    assert plain < usual < large


def test_runs_are_paired_by_split_and_seed_not_by_their_order() -> None:
    scores = together(runs("ours", OURS), runs("random", RANDOM))
    shuffled = scores.sample(frac=1, random_state=3)
    assert only(compare(shuffled), metric="accuracy")["t_p"] == only(compare(scores), metric="accuracy")["t_p"]
    # Of a rival with other splits only those that ours has too are pairs.
    other = runs("random", RANDOM).assign(split=range(4, 10))
    found = only(compare(together(runs("ours", OURS), other)), metric="accuracy")
    assert found["pairs"] == 2
    assert found["difference"] == pytest.approx((0.83 - 0.70 + 0.85 - 0.75) / 2)


def test_models_of_one_run_are_one_pair() -> None:
    scores = together(*(runs(m, [0.5, 0.6, 0.7], model_seed=s) for m in ("ours", "random") for s in range(5)))
    found = only(compare(scores), metric="accuracy")
    assert (found["pairs"], found["wilcoxon_p"], found["note"]) == (3, 1.0, "all differences are zero")


def test_each_rival_meets_ours_in_its_own_space_or_in_the_one_given() -> None:
    scores = together(
        runs("ours", [0.8, 0.9]),
        runs("ours", [0.5, 0.6], space="label"),
        runs("random", [0.6, 0.7]),
        runs("random", [0.6, 0.7], space="label"),
    )
    own = compare(scores, metrics=["accuracy"])
    assert own.set_index("space")["difference"].round(9).to_dict() == {"hcfe": 0.2, "label": -0.1}
    best = compare(scores, metrics=["accuracy"], ours_space="hcfe")
    assert best.set_index("space")["difference"].round(9).to_dict() == {"hcfe": 0.2, "label": 0.2}


def test_notes_say_why_there_is_no_test() -> None:
    scores = together(
        runs("ours", [0.8, 0.9, 0.7, 0.6, 0.75]),
        unfinished("mtt"),
        runs("dm", [0.5]),
        runs("gm", [0.7, 0.7, 0.6, 0.55, 0.7]),
        runs("whole", [0.95], ratio=1.0),
    )
    found = compare(scores, metrics=["accuracy"]).set_index("rival")
    assert found["note"].to_dict() == {
        "mtt": "no finished run: OOT",
        "dm": "1 pair: a test needs 2",
        "gm": "5 differences cannot get below 0.0625 in Wilcoxon's test",
    }
    assert found.loc[["mtt", "dm"], ["t_p", "wilcoxon_p", "t_p_holm"]].isna().all(axis=None)
    assert found.loc["gm", "wilcoxon_p"] == 0.0625
    # What could not be tested does not make the correction harder.
    assert found.loc["gm", "wilcoxon_p_holm"] == 0.0625


def test_each_rival_is_corrected_over_tables_and_ratios_and_not_for_the_others() -> None:
    places = [("a", 0.01), ("a", 0.1), ("b", 0.01)]
    rng = np.random.default_rng(0)
    scores = together(
        *(
            runs(method, rng.normal(level, 0.05, 6).tolist(), table=table, ratio=ratio, space=space)
            for table, ratio in places
            for space in ("hcfe", "label")
            for method, level in (("ours", 0.8), ("random", 0.7), ("herding", 0.75))
        )
    )
    found = compare(scores)
    parts = dict(list(found.groupby(["rival", "space", "metric"])))
    assert len(parts) == 8
    for part in parts.values():
        assert part[["table", "ratio"]].values.tolist() == [list(place) for place in places]
        assert part["t_p_holm"].tolist() == holm(part["t_p"].to_numpy()).tolist()
        assert part["wilcoxon_p_holm"].tolist() == holm(part["wilcoxon_p"].to_numpy()).tolist()


def test_the_family_decides_what_is_corrected_together() -> None:
    scores = together(
        runs("ours", OURS), runs("random", RANDOM), runs("herding", [x - 0.01 * i for i, x in enumerate(OURS)])
    )
    together_ = compare(scores, family=("metric",))
    by_metric = [part["t_p_holm"].tolist() for _, part in together_.groupby("metric")]
    assert by_metric == [holm(part["t_p"].to_numpy()).tolist() for _, part in together_.groupby("metric")]
    alone = compare(scores, family=("metric", "rival"))
    assert alone["t_p_holm"].tolist() == alone["t_p"].tolist()
    assert (together_["t_p_holm"] > together_["t_p"]).any()


def test_units_pool_with_one_voice_each() -> None:
    parts = []
    for table, gain in (("a", 0.1), ("b", 0.2), ("c", -0.05)):
        parts += [runs("ours", [0.5 + gain, 0.6 + gain], table=table), runs("random", [0.5, 0.6], table=table)]
    parts += [runs("ours", [0.5], table="d"), unfinished("random", table="d")]
    found = only(pool(compare(together(*parts))), metric="accuracy")
    assert (found["units"], found["left_out"], found["wins"], found["losses"]) == (3, 1, 2, 1)
    assert found["difference"] == pytest.approx(0.25 / 3)
    assert found["median_difference"] == pytest.approx(0.1)
    assert found["wilcoxon_p"] == pytest.approx(0.5)


def test_mistakes_are_named() -> None:
    with pytest.raises(InputError, match="no method 'mine'; choose one of: ours, random"):
        compare(together(runs("ours", OURS), runs("random", RANDOM)), ours="mine")
    with pytest.raises(InputError, match="no rival"):
        compare(runs("ours", OURS))
