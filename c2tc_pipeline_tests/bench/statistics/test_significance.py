"""The tests agree with scipy and with brute force, and say what few pairs cannot say."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.bench.statistics.comparisons import holm, paired_t, smallest_wilcoxon, wilcoxon
from c2tc_pipeline.common.errors import InputError


def enumerated(differences: np.ndarray) -> float:
    """Return Wilcoxon's p-value by trying all signs."""
    values = differences[differences != 0]
    ranks = scipy.stats.rankdata(np.abs(values))
    sums = np.array([ranks[list(signs)].sum() for signs in itertools.product([False, True], repeat=len(values))])
    found = ranks[values > 0].sum()
    return min(1.0, 2 * min(np.mean(sums <= found + 1e-9), np.mean(sums >= found - 1e-9)))


def stepped_down(values: list[float]) -> list[float]:
    """Return for each hypothesis the smallest level at which Holm's procedure, step by step, rejects it."""
    levels = sorted({1.0, *(min(1.0, p * k) for p in values for k in range(1, len(values) + 1))})
    smallest = [1.0] * len(values)
    for level in reversed(levels):
        for step, place in enumerate(sorted(range(len(values)), key=lambda place: values[place])):
            if values[place] * (len(values) - step) > level:
                break
            smallest[place] = level
    return smallest


@pytest.mark.parametrize("pairs", [2, 5, 9, 25, 80])
def test_without_ties_both_tests_are_those_of_scipy(pairs: int) -> None:
    differences = np.random.default_rng(pairs).normal(0.3, 1, pairs)
    assert wilcoxon(differences) == pytest.approx(scipy.stats.wilcoxon(differences, method="exact").pvalue)
    assert paired_t(differences) == pytest.approx(scipy.stats.ttest_rel(differences, np.zeros(pairs)).pvalue)


def test_splits_that_share_rows_count_less_than_independent_ones() -> None:
    # Mean 0.02 and variance 0.0001: t is 0.02 / sqrt((1/3 + 1/8) * 0.0001) on two degrees of freedom.
    corrected = paired_t([0.01, 0.02, 0.03], test_to_train=0.1 / 0.8)
    assert corrected == pytest.approx(2 * scipy.stats.t.sf(2.954195784, 2))
    assert corrected > paired_t([0.01, 0.02, 0.03])
    assert paired_t([-0.01, -0.02, -0.03], test_to_train=0.1 / 0.8) == corrected
    # As n grows the plain test becomes sure of anything; shared rows bound what splits can tell.
    many = np.tile([0.01, 0.02, 0.03], 100)
    assert paired_t(many) < 1e-90
    spread = math.sqrt((1 / 300 + 1 / 8) * many.var(ddof=1))
    assert paired_t(many, test_to_train=1 / 8) == pytest.approx(2 * scipy.stats.t.sf(0.02 / spread, 299))


@pytest.mark.parametrize("share", [-0.1, math.inf, math.nan])
def test_a_share_of_test_rows_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="give test rows divided by training rows"):
        paired_t([0.1, 0.2], test_to_train=share)


def test_many_pairs_take_the_normal_distribution() -> None:
    differences = np.random.default_rng(0).normal(0.1, 1, 250)
    exact = scipy.stats.wilcoxon(differences, method="exact").pvalue
    assert wilcoxon(differences) == pytest.approx(exact, rel=0.03)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=9))
def test_with_ties_and_zeros_wilcoxon_is_what_all_signs_give(steps: list[int]) -> None:
    differences = np.array(steps) / 100
    assert wilcoxon(differences) == pytest.approx(enumerated(differences))
    assert wilcoxon(differences) == wilcoxon(-differences)


def test_five_pairs_cannot_get_below_a_sixteenth() -> None:
    assert wilcoxon([0.1, 0.2, 0.3, 0.4, 0.5]) == smallest_wilcoxon(5) == 0.0625
    assert wilcoxon([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]) == smallest_wilcoxon(6) < 0.05


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


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_the_procedure_step_by_step(values: list[float]) -> None:
    assert holm(values).tolist() == pytest.approx(stepped_down(values))


def test_holm_by_hand_and_without_what_was_not_tested() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([math.nan, 0.02, math.nan]).tolist() == pytest.approx([math.nan, 0.02, math.nan], nan_ok=True)
    assert holm([]).tolist() == []
