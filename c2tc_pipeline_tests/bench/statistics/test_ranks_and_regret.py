"""Ranks, regret and standings of cases small enough to be worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from c2tc_pipeline.bench.statistics.comparisons import compare
from c2tc_pipeline.bench.statistics import fitted_exponent
from c2tc_pipeline.bench.statistics.comparisons import critical_difference, friedman, rank_contenders, undistinguished
from c2tc_pipeline.bench.statistics.runs import relative_regret, summarise_regret
from c2tc_pipeline.bench.statistics.runs import standings
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.bench.statistics.made_scores import runs, together, unfinished


def test_ranks_share_ties_and_put_what_did_not_finish_last() -> None:
    scores = together(
        *(runs("ours", [a], table=t) for t, a in (("a", 0.9), ("b", 0.8))),
        *(runs("herding", [a], table=t) for t, a in (("a", 0.7), ("b", 0.8))),
        *(runs("random", [a], table=t) for t, a in (("a", 0.6), ("b", 0.1))),
        unfinished("mtt", table="a"),
        runs("mtt", [0.9], table="b"),
        runs("whole", [0.99], table="a", ratio=1.0),
    )
    found = rank_contenders(scores, "accuracy")
    assert found.ranks.reset_index().to_dict("records") == [
        {"table": "a", "ratio": 0.01, "model": "mlp", "ours": 1, "herding": 2, "random": 3, "mtt": 4},
        {"table": "b", "ratio": 0.01, "model": "mlp", "ours": 2.5, "herding": 2.5, "random": 4, "mtt": 1},
    ]
    assert found.mean_ranks == {"ours": 1.75, "herding": 2.25, "mtt": 2.5, "random": 3.5}
    assert list(found.mean_ranks) == ["ours", "herding", "mtt", "random"]
    assert found.unfinished == {"mtt": 1}
    assert found.left_out == 0
    assert found.groups == (("ours", "herding", "mtt", "random"),)


def test_units_where_not_all_ran_are_left_out_and_spaces_are_named() -> None:
    scores = together(
        runs("ours", [0.9]),
        runs("ours", [0.8], space="label"),
        runs("random", [0.7]),
        runs("ours", [0.9], table="b"),
    )
    found = rank_contenders(scores, "accuracy")
    assert found.mean_ranks == {"ours, hcfe": 1.0, "ours, label": 2.0, "random, hcfe": 3.0}
    assert found.left_out == 1
    assert math.isnan(found.friedman_p)
    with pytest.raises(InputError, match="fewer than two"):
        rank_contenders(runs("ours", [0.9]), "accuracy")
    with pytest.raises(InputError, match="on which all methods ran"):
        rank_contenders(together(runs("ours", [0.9]), runs("random", [0.7], table="b")), "accuracy")


@pytest.mark.parametrize(("contenders", "quantile"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_has_the_published_quantiles(contenders: int, quantile: float) -> None:
    expected = quantile * math.sqrt(contenders * (contenders + 1) / (6 * 12))
    assert critical_difference(contenders, 12) == pytest.approx(expected, rel=5e-4)


def test_friedman_is_the_textbook_formula_and_knows_when_all_are_alike() -> None:
    rng = np.random.default_rng(0)
    ranks = pd.DataFrame([rng.permutation(4) + 1 for _ in range(6)], columns=list("abcd"))
    n, k = ranks.shape
    statistic = 12 * n / (k * (k + 1)) * ((ranks.mean() ** 2).sum() - k * (k + 1) ** 2 / 4)
    assert friedman(ranks) == pytest.approx(scipy.stats.chi2.sf(statistic, k - 1))
    assert friedman(pd.DataFrame(2.0, index=range(5), columns=list("abc"))) == 1.0


def test_groups_are_the_largest_and_a_difference_of_just_the_critical_one_parts() -> None:
    ranks = {"a": 1.0, "b": 2.0, "c": 2.5, "d": 5.0}
    assert undistinguished(ranks, 1.0) == (("b", "c"),)
    assert undistinguished(ranks, 1.01) == (("a", "b"), ("b", "c"))
    assert undistinguished(ranks, 2.0) == (("a", "b", "c"),)
    assert undistinguished(ranks, 9.0) == (("a", "b", "c", "d"),)
    assert undistinguished(ranks, 0.1) == ()


def regret_scores() -> pd.DataFrame:
    return together(
        runs("whole", [0.9, 0.9], ratio=1.0),
        runs("random", [0.6, 0.8]),
        runs("ours", [0.8, 0.9]),
        runs("random", [0.9, 0.9], ratio=0.1),
        runs("ours", [0.95, 0.95], ratio=0.1),
        unfinished("mtt"),
        runs("ours", [0.7], space="label"),
    )


def test_regret_by_hand() -> None:
    found = relative_regret(regret_scores(), "accuracy").set_index(["ratio", "space", "contender"])
    assert found.loc[(0.01, "hcfe", "ours"), "regret"] == pytest.approx(0.05 / 0.2)
    assert found.loc[(0.01, "hcfe", "random"), "regret"] == pytest.approx(1.0)
    assert found["status"].to_dict() == {
        (0.01, "hcfe", "random"): "ok",
        (0.01, "hcfe", "ours"): "ok",
        (0.1, "hcfe", "random"): "no gap",
        (0.1, "hcfe", "ours"): "no gap",
        (0.01, "hcfe", "mtt"): "OOT",
        (0.01, "label", "ours"): "no reference",
    }
    assert found.loc[found["status"] != "ok", "regret"].isna().all()
    summary = summarise_regret(relative_regret(regret_scores(), "accuracy")).set_index(["space", "contender"])
    counts = summary[["units", "no_gap", "unfinished"]].T.to_dict("list")
    assert counts["hcfe", "ours"] == [1, 1, 0]
    assert counts["hcfe", "mtt"] == [0, 0, 1]
    assert summary.index[0] == ("hcfe", "ours")


def test_regret_against_the_references_of_one_space() -> None:
    found = relative_regret(regret_scores(), "accuracy", reference_space="hcfe")
    assert found[found["space"] == "label"]["regret"].tolist() == pytest.approx([0.2 / 0.2])


def test_standings_by_hand() -> None:
    scores = together(
        # Means 0.80 and standard deviations 0.02; one standard deviation ahead is tied, more is behind.
        runs("ours", [0.78, 0.82]),
        runs("random", [0.80, 0.84]),
        runs("ours", [0.78, 0.82], table="behind"),
        runs("random", [0.805, 0.845], table="behind"),
        runs("dm", [0.86, 0.90], table="behind"),
        runs("gm", [0.10, 0.20], table="behind"),
        runs("ours", [0.9, 0.9], table="first"),
        runs("random", [0.8, 0.8], table="first"),
        unfinished("mtt", table="first"),
        runs("ours", [0.9], table="equal"),
        runs("random", [0.9], table="equal"),
        unfinished("ours", table="missing"),
        runs("random", [0.5], table="missing"),
        runs("ours", [0.9], table="alone"),
        unfinished("mtt", table="alone"),
    )
    found = standings(scores, "accuracy").set_index("table")
    assert found["standing"].to_dict() == {
        "t": "tied",
        "behind": "behind",
        "first": "first",
        "equal": "tied",
        "missing": "missing",
        "alone": "alone",
    }
    told = found.T.to_dict()
    assert (told["behind"]["best"], told["behind"]["behind"]) == ("dm", "dm, random")
    assert (told["t"]["best"], told["t"]["behind"]) == ("random", "")
    assert (told["first"]["best"], told["first"]["unfinished"]) == ("ours", "mtt")
    assert told["equal"]["best"] == "random, ours"
    assert told["behind"]["best_mean"] == pytest.approx(0.88)


def test_standings_against_rivals_of_another_space() -> None:
    scores = together(
        runs("ours", [0.9]), runs("ours", [0.5], space="label"), runs("random", [0.8], space="label"), runs("dm", [0.7])
    )
    own = standings(scores, "accuracy").set_index("space")["standing"].to_dict()
    assert own == {"hcfe": "first", "label": "behind"}
    best = standings(scores, "accuracy", ours_space="hcfe").set_index("space")["standing"].to_dict()
    assert best == {"hcfe": "first", "label": "first"}


def test_the_whole_table_of_a_variant_is_no_contender_either() -> None:
    scores = together(
        *(runs(m, [a, a], variant="10:1") for m, a in (("ours", 0.8), ("random", 0.7))),
        # As if the whole table had been run at the same ratio.
        runs("whole", [0.9, 0.9], variant="10:1"),
    )
    assert list(rank_contenders(scores, "accuracy").mean_ranks) == ["ours (10:1)", "random (10:1)"]
    found = standings(scores, "accuracy", ours="ours (10:1)").iloc[0]
    assert (found["best"], found["standing"]) == ("ours (10:1)", "first")
    assert compare(scores, metrics=["accuracy"], ours="ours (10:1)")["rival"].tolist() == ["random (10:1)"]
    assert "whole (10:1)" not in set(relative_regret(scores, "accuracy")["contender"])


def test_exponents() -> None:
    assert fitted_exponent([10, 100, 1000], [5, 50, 500]) == pytest.approx(1.0)
    noisy = [3 * x**1.5 * f for x, f in zip([1, 2, 4, 8], [1.1, 0.9, 0.95, 1.05], strict=True)]
    expected = np.polyfit(np.log([1, 2, 4, 8]), np.log(noisy), 1)[0]
    assert fitted_exponent([1, 2, 4, 8], noisy) == pytest.approx(expected)
    assert math.isnan(fitted_exponent([2, 2], [1, 3]))
    assert fitted_exponent([1, 2, 4], [1, math.nan, 4]) == pytest.approx(1.0)
