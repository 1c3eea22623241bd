"""Averages, paired tests, ranks and standings."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from c2tc_pipeline.bench.experiments.grid import paper_numbers
from c2tc_pipeline.bench.statistics import fitted_exponent
from c2tc_pipeline.bench.statistics.comparisons import (
    compare,
    critical_difference,
    friedman,
    holm,
    paired_t,
    pool,
    rank_contenders,
    smallest_wilcoxon,
    undistinguished,
    wilcoxon,
)
from c2tc_pipeline.bench.statistics.runs import (
    MEAN_OF_MODELS,
    anchored,
    cell_scores,
    runs_by_cell,
    standings,
    with_mean_of_models,
)
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.bench.statistics.made_scores import runs, together, unfinished


def test_a_run_with_more_models_counts_once() -> None:
    scores = together(runs("ours", [0.5, 0.8]), runs("ours", [0.7], model_seed=1), runs("ours", [0.9], model_seed=2))
    cell = cell_scores(scores, "accuracy").iloc[0]
    # Split 0 has three models of mean 0.7; a mean over all four models would be 0.725.
    [found] = runs_by_cell(scores, "accuracy").values()
    assert list(found.means.values()) == pytest.approx([0.7, 0.8])
    assert cell["mean"] == pytest.approx(0.75)
    assert cell["std"] == pytest.approx(0.05)
    assert (cell["runs"], cell["unfinished"], cell["status"]) == (2, 0, "ok")


def test_endings_and_partly_finished_cells() -> None:
    scores = together(
        runs("ours", [0.5, 0.7]),
        unfinished("ours", splits=1, model_seed=1),
        unfinished("mtt", "OOT", splits=2),
        unfinished("mtt", "OOM", splits=1, model_seed=1),
        runs("gm", [float("nan")]),
    )
    cells = cell_scores(scores, "accuracy").set_index("contender")
    assert cells["status"].to_dict() == {"ours": "ok", "mtt": "OOT", "gm": "failed"}
    assert cells["unfinished"].to_dict() == {"ours": 1, "mtt": 2, "gm": 1}
    assert cells["runs"].to_dict() == {"ours": 2, "mtt": 0, "gm": 0}
    assert cells.loc["ours", "mean"] == pytest.approx(0.6)
    assert cells["mean"].isna().to_dict() == {"ours": False, "mtt": True, "gm": True}


def test_means_by_hand() -> None:
    scores = together(
        runs("ours", [0.9, 0.7], model="mlp"),
        runs("ours", [0.5, 0.5], model="mlp", model_seed=1),
        runs("ours", [0.5, 0.2], model="tabr"),
        runs("dm", [0.6, 0.6], model="mlp"),
        unfinished("dm", "OOT", model="tabr"),
        # Only one of two models ever saw this.
        runs("gm", [0.9], model="mlp"),
    )
    found = with_mean_of_models(scores, ["accuracy", "macro_f1"])
    assert found.iloc[: len(scores)]["accuracy"].tolist() == pytest.approx(scores["accuracy"].tolist(), nan_ok=True)
    means = cell_scores(found[found["model"] == MEAN_OF_MODELS], "accuracy").set_index("contender")
    assert list(means.index) == ["ours", "dm"]
    # Split 0: (0.7 + 0.5) / 2, split 1: (0.6 + 0.2) / 2; a mean over all models alike would be 0.633 and 0.467.
    assert means.loc["ours", "mean"] == pytest.approx((0.6 + 0.4) / 2)
    assert means.loc["ours", "std"] == pytest.approx(0.1)
    assert (means.loc["dm", "status"], means.loc["dm", "runs"]) == ("OOT", 0)


@pytest.mark.parametrize("pairs", [2, 5, 9, 25])
def test_both_tests_are_those_of_scipy(pairs: int) -> None:
    differences = np.random.default_rng(pairs).normal(0.3, 1, pairs)
    assert paired_t(differences) == pytest.approx(scipy.stats.ttest_rel(differences, np.zeros(pairs)).pvalue)
    with_zero = np.append(differences, 0.0)
    assert wilcoxon(with_zero) == pytest.approx(scipy.stats.wilcoxon(differences, method="exact").pvalue)
    assert wilcoxon(np.abs(differences)) == pytest.approx(smallest_wilcoxon(pairs))


def test_splits_that_share_rows_count_less_than_independent_ones() -> None:
    # Mean 0.02 and variance 0.0001: t is 0.02 / sqrt((1/3 + 1/8) * 0.0001) on two degrees of freedom.
    corrected = paired_t([0.01, 0.02, 0.03], test_to_train=0.1 / 0.8)
    assert corrected == pytest.approx(2 * scipy.stats.t.sf(2.954195784, 2))
    assert corrected > paired_t([0.01, 0.02, 0.03])
    assert paired_t([-0.01, -0.02, -0.03], test_to_train=0.1 / 0.8) == corrected


@pytest.mark.parametrize(
    ("differences", "t", "ranks"),
    [
        ([], math.nan, math.nan),
        ([0.3], math.nan, math.nan),
        ([0.0, 0.0, 0.0], 1.0, 1.0),
        ([0.1, 0.1, 0.1], math.nan, 0.25),
        ([0.3 - 0.2, 0.2 - 0.1, 0.1], math.nan, 0.25),
    ],
)
def test_what_has_no_spread_or_no_pairs(differences: list[float], t: float, ranks: float) -> None:
    assert paired_t(differences) == pytest.approx(t, nan_ok=True)
    assert wilcoxon(differences) == pytest.approx(ranks, nan_ok=True)


def test_holm_by_hand_and_without_what_was_not_tested() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([math.nan, 0.02, math.nan]).tolist() == pytest.approx([math.nan, 0.02, math.nan], nan_ok=True)


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
    # A fifth of the table is tested on, and seven tenths are trained on.
    t = differences.mean() / np.sqrt((1 / 6 + 0.2 / 0.7) * differences.var(ddof=1))
    assert found["t_p"] == pytest.approx(2 * scipy.stats.t.sf(t, 5))
    assert found["wilcoxon_p"] == pytest.approx(scipy.stats.wilcoxon(differences).pvalue)
    assert found["t_p_holm"] == found["t_p"]


def test_runs_are_paired_by_split_and_seed_not_by_their_order() -> None:
    scores = together(runs("ours", OURS), runs("random", RANDOM))
    shuffled = scores.sample(frac=1, random_state=3)
    assert only(compare(shuffled), metric="accuracy")["t_p"] == only(compare(scores), metric="accuracy")["t_p"]
    # Of a rival with other splits only those that ours has too are pairs.
    other = runs("random", RANDOM).assign(split=range(4, 10))
    found = only(compare(together(runs("ours", OURS), other)), metric="accuracy")
    assert found["pairs"] == 2
    assert found["difference"] == pytest.approx((0.83 - 0.70 + 0.85 - 0.75) / 2)


def test_each_rival_meets_ours_in_its_own_space() -> None:
    scores = together(
        runs("ours", [0.8, 0.9]),
        runs("ours", [0.5, 0.6], space="label"),
        runs("random", [0.6, 0.7]),
        runs("random", [0.6, 0.7], space="label"),
    )
    own = compare(scores, metrics=["accuracy"])
    assert own.set_index("space")["difference"].round(9).to_dict() == {"hcfe": 0.2, "label": -0.1}


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


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (partial(cell_scores, runs("ours", [0.5]).drop(columns="seed"), "accuracy"), "seed"),
        (partial(cell_scores, runs("ours", [0.5]), "kappa"), "kappa"),
        (partial(compare, together(runs("ours", OURS), runs("random", RANDOM)), ours="mine"), "mine"),
        (partial(compare, runs("ours", OURS)), "."),
        (partial(rank_contenders, runs("ours", [0.9]), "accuracy"), "."),
        (partial(rank_contenders, together(runs("ours", [0.9]), runs("random", [0.7], table="b")), "accuracy"), "."),
        *(
            (partial(paired_t, [0.1, 0.2], test_to_train=wrong), "test_to_train")
            for wrong in (-0.1, math.inf, math.nan)
        ),
    ],
)
def test_mistakes_are_named(call: Callable[[], object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()


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
        runs("ours", [0.9]), runs("ours", [0.8], space="label"), runs("random", [0.7]), runs("ours", [0.9], table="b")
    )
    found = rank_contenders(scores, "accuracy")
    assert found.mean_ranks == {"ours, hcfe": 1.0, "ours, label": 2.0, "random, hcfe": 3.0}
    assert found.left_out == 1
    assert math.isnan(found.friedman_p)


def test_the_critical_difference_has_the_published_quantiles_and_friedmans_test_is_that_of_scipy() -> None:
    for contenders, quantile in ((2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)):
        expected = quantile * math.sqrt(contenders * (contenders + 1) / (6 * 12))
        assert critical_difference(contenders, 12) == pytest.approx(expected, rel=5e-4)
    ranks = np.array([np.random.default_rng(seed).permutation(4) for seed in range(9)])
    assert friedman(pd.DataFrame(ranks)) == pytest.approx(scipy.stats.friedmanchisquare(*ranks.T).pvalue)
    assert friedman(pd.DataFrame(2.0, index=range(5), columns=list("abc"))) == 1.0


def test_groups_are_the_largest_and_a_difference_of_just_the_critical_one_parts() -> None:
    ranks = {"a": 1.0, "b": 2.0, "c": 2.5, "d": 5.0}
    assert undistinguished(ranks, 1.0) == (("b", "c"),)
    assert undistinguished(ranks, 1.01) == (("a", "b"), ("b", "c"))
    assert undistinguished(ranks, 9.0) == (("a", "b", "c", "d"),)


def test_standings_by_hand() -> None:
    scores = together(
        # The mean paired difference is -1 point with a standard error of 1; then -1 with 0.2.
        runs("ours", [0.78, 0.82]),
        runs("random", [0.80, 0.82]),
        runs("ours", [0.78, 0.82], table="behind"),
        runs("random", [0.788, 0.832], table="behind"),
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
    assert (told["t"]["difference"], told["t"]["error"]) == pytest.approx((-0.01, 0.01))


def test_every_model_of_every_condensation_is_a_pair_in_the_papers_test() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.random((2, 5, 5))
    scores = together(
        *(runs("ours", list(row), model_seed=seed) for seed, row in enumerate(ours)),
        *(runs("herding", list(row), model_seed=seed) for seed, row in enumerate(theirs)),
    )
    found = only(compare(scores), metric="accuracy")
    assert (found["pairs"], found["runs"]) == (5, 25)
    assert found["runs_p"] == pytest.approx(scipy.stats.ttest_rel(ours.ravel(), theirs.ravel()).pvalue)


def test_exponents() -> None:
    assert fitted_exponent([10, 100, 1000], [5, 50, 500]) == pytest.approx(1.0)
    noisy = [3 * x**1.5 * f for x, f in zip([1, 2, 4, 8], [1.1, 0.9, 0.95, 1.05], strict=True)]
    expected = np.polyfit(np.log([1, 2, 4, 8]), np.log(noisy), 1)[0]
    assert fitted_exponent([1, 2, 4, 8], noisy) == pytest.approx(expected)
    assert math.isnan(fitted_exponent([2, 2], [1, 3]))
    assert fitted_exponent([1, 2, 4], [1, math.nan, 4]) == pytest.approx(1.0)


def test_each_space_has_its_own_whole_and_the_papers_number_of_that_space() -> None:
    adult = partial(runs, table="adult", ratio=0.001)
    own = together(adult("ours", [0.8, 0.84]), adult("random", [0.7]), adult("ours", [0.68], space="label"))
    wholes = [runs("whole", [a], table="adult", ratio=1.0, space=s) for s, a in (("hcfe", 0.86), ("label", 0.85))]
    found = anchored(together(own, *wholes), "accuracy", paper_numbers("overall")).set_index("space")
    assert found.loc["hcfe", "mean"] == pytest.approx(0.82)
    assert found.loc["hcfe", "share"] == pytest.approx(0.82 / 0.86)
    assert found.loc["label", "share"] == pytest.approx(0.68 / 0.85)
    assert found.loc["hcfe", "paper"] == 0.815
    # The paper ran its method on its own encoding only.
    assert found["paper"].isna().tolist() == [space == "label" for space in found.index]
    assert anchored(own, "accuracy")[["paper", "whole", "share"]].isna().all(axis=None)
