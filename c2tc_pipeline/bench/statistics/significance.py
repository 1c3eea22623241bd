"""Two tests of paired differences, and Holm's correction for having made many of them.

What belongs here: numbers in, a p-value out. Which runs are paired is decided in ``comparisons.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from c2tc_pipeline.common.errors import InputError

DECIMALS = 12
"""Differences are rounded to this many decimals: what is smaller is rounding error of equal scores."""
MOST_EXACT = 200
"""Up to this many differences the distribution of the rank sum is computed, above it the normal one serves."""


def paired_t(differences: Sequence[float] | np.ndarray, *, test_to_train: float = 0.0) -> float:
    """Return the two-sided p-value of Student's paired t-test, or of its variety for random splits of one table.

    Parameters
    ----------
    differences : sequence of float
        One difference a pair.
    test_to_train : float
        Test rows divided by training rows. Random splits of one table share most of their training rows, so that their
        scores differ less than those of independent samples would; Nadeau and Bengio (2003) take the variance of the
        mean to be 1/n + test/train times that of the differences, where Student takes 1/n. 0 is Student's test.

    Returns
    -------
    float
        NaN for fewer than two pairs, and where all differences are the same and not zero: without any spread t has no
        value. 1 where all are zero.

    Examples
    --------
    >>> round(paired_t([0.01, 0.02, 0.03]), 4), paired_t([0.0, 0.0]), paired_t([0.1])
    (0.0742, 1.0, nan)
    >>> round(paired_t([0.01, 0.02, 0.03], test_to_train=0.1 / 0.8), 4)
    0.098
    """
    from scipy.stats import t as student

    if not 0 <= test_to_train < np.inf:
        raise InputError(f"test_to_train is {test_to_train:g}; give test rows divided by training rows, 0 or more.")
    values = np.round(np.asarray(differences, dtype=np.float64), DECIMALS)
    if len(values) < 2:
        return float("nan")
    if not np.ptp(values):
        return float("nan") if values[0] else 1.0
    error = np.sqrt((1 / len(values) + test_to_train) * values.var(ddof=1))
    return float(2 * student.sf(abs(values.mean()) / error, len(values) - 1))


def wilcoxon(differences: Sequence[float] | np.ndarray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, exact for up to ``MOST_EXACT`` differences.

    Parameters
    ----------
    differences : sequence of float
        One difference a pair. Zeros are left out, as Wilcoxon did; equal sizes share their mean rank, and the exact
        distribution is that of those ranks.

    Returns
    -------
    float
        NaN for fewer than two pairs; 1 where all differences are zero. Of n differences that are not zero the smallest
        value possible is 2 / 2**n: 0.0625 for five.

    Examples
    --------
    >>> wilcoxon([0.01, 0.02, 0.03, 0.04, 0.05]), wilcoxon([0.0, 0.0]), wilcoxon([0.1])
    (0.0625, 1.0, nan)
    """
    from scipy.stats import rankdata
    from scipy.stats import wilcoxon as approximate

    values = np.round(np.asarray(differences, dtype=np.float64), DECIMALS)
    if len(values) < 2:
        return float("nan")
    values = values[values != 0]
    if len(values) > MOST_EXACT:
        return float(approximate(values, correction=True).pvalue)
    # Mean ranks are halves at worst: twice the ranks are whole numbers.
    ranks = np.rint(2 * rankdata(np.abs(values))).astype(np.int64)
    chances = np.ones(1)
    for rank in ranks:
        chances = (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0))) / 2
    total = int(ranks[values > 0].sum())
    tail = min(chances[: total + 1].sum(), chances[total:].sum())
    return float(min(1.0, 2 * tail))


def smallest_wilcoxon(pairs: int) -> float:
    """Return the smallest p-value that so many pairs can get in the two-sided test.

    Examples
    --------
    >>> smallest_wilcoxon(5)
    0.0625
    """
    return 2.0 ** (1 - pairs)


def holm(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return p-values corrected by Holm for having made all these tests.

    Parameters
    ----------
    values : sequence of float
        The p-values of one family; NaN stands for a test that could not be made and does not count.

    Returns
    -------
    ndarray of float
        The corrected values in the same order: each sorted value times the number of values not smaller, never below
        its forerunner and never above 1.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03, float("nan")])
    array([0.03, 0.06, 0.06,  nan])
    """
    given = np.asarray(values, dtype=np.float64)
    corrected = np.full(given.shape, np.nan)
    made = np.flatnonzero(~np.isnan(given))
    order = made[np.argsort(given[made], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(given[order] * factors), 1.0)
    return corrected
