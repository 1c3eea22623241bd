"""Contenders ranked over many units: mean ranks, Friedman's test, Nemenyi's critical difference.

What belongs here: what Demsar (2006) recommends for comparing several classifiers over several data sets. He takes data
sets to be independent; the ratios of one table are not, so with several ratios the critical difference is too small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from c2tc_pipeline.bench.statistics.runs import UNIT, cell_scores, is_whole
from c2tc_pipeline.common.errors import InputError


@dataclass(frozen=True)
class Ranking:
    """How contenders rank over units.

    Parameters
    ----------
    ranks : DataFrame
        One row a unit, one column a contender, 1 for the best; equals share their mean rank.
    mean_ranks : dict of str to float
        Mean over units, the best first.
    unfinished : dict of str to int
        Units in which a contender has no finished run and therefore ranks last; only those that have any.
    left_out : int
        Units not ranked because some contender was not run there.
    friedman_p : float
        Whether the contenders differ at all; NaN for fewer than three contenders or two units.
    alpha : float
        The level of the critical difference.
    critical_difference : float
        Two contenders whose mean ranks differ by less are not told apart.
    groups : tuple of tuple of str
        The largest sets of neighbours that are not told apart, two members at least.
    """

    ranks: pd.DataFrame
    mean_ranks: Mapping[str, float]
    unfinished: Mapping[str, int]
    left_out: int
    friedman_p: float
    alpha: float
    critical_difference: float
    groups: tuple[tuple[str, ...], ...]


def rank_contenders(scores: pd.DataFrame, metric: str, *, alpha: float = 0.05) -> Ranking:
    """Rank all contenders but the whole table over the units of the scores.

    Parameters
    ----------
    scores : DataFrame
        One row a trained model. Where there are several spaces a contender is named with its space.
    metric : str
        Which score; the higher the better.
    alpha : float
        The level of the critical difference.

    Returns
    -------
    Ranking
        The ranks and what follows from them.

    Raises
    ------
    InputError
        When there are fewer than two contenders, or no unit in which all of them ran.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": ["a"] * 3 + ["b"] * 3, "ratio": 0.1, "model": "mlp", "space": "hcfe",
    ...     "method": ["ours", "random", "herding"] * 2, "variant": "", "split": 0, "seed": 0, "model_seed": 0,
    ...     "status": "ok", "accuracy": [0.9, 0.7, 0.8, 0.6, 0.5, 0.5]})
    >>> found = rank_contenders(scores, "accuracy")
    >>> found.mean_ranks, round(found.critical_difference, 3)
    ({'ours': 1.0, 'herding': 2.25, 'random': 2.75}, 2.344)
    """
    cells = cell_scores(scores, metric)
    cells = cells[~cells["contender"].map(is_whole)]
    if cells["space"].nunique() > 1:
        cells = cells.assign(contender=cells["contender"] + ", " + cells["space"])
    if cells["contender"].nunique() < 2:
        raise InputError("There are fewer than two methods to rank; give the scores of more of them.")
    names = list(dict.fromkeys(cells["contender"]))
    # What did not finish is behind all that did.
    values = cells.assign(mean=cells["mean"].fillna(-np.inf)).pivot(index=UNIT, columns="contender", values="mean")
    complete = values[names].dropna()
    if complete.empty:
        raise InputError("There is no table, ratio and model on which all methods ran; leave out what ran on few.")
    ranks = complete.rank(axis=1, ascending=False, method="average")
    means = {str(name): float(mean) for name, mean in ranks.mean().sort_values(kind="stable").items()}
    lost = np.isneginf(complete).sum()
    difference = critical_difference(len(names), len(ranks), alpha)
    return Ranking(
        ranks=ranks,
        mean_ranks=means,
        unfinished={str(name): int(count) for name, count in lost.items() if count},
        left_out=len(values) - len(complete),
        friedman_p=friedman(ranks),
        alpha=alpha,
        critical_difference=difference,
        groups=undistinguished(means, difference),
    )


def friedman(ranks: pd.DataFrame) -> float:
    """Return the p-value of Friedman's test that all contenders are alike; ties are corrected for.

    Examples
    --------
    >>> round(friedman(pd.DataFrame({"a": [1, 1, 1], "b": [2, 2, 2], "c": [3, 3, 3]})), 4)
    0.0498
    """
    from scipy.stats import friedmanchisquare

    if ranks.shape[1] < 3 or len(ranks) < 2:
        return float("nan")
    if ranks.eq(ranks.iloc[:, 0], axis=0).all(axis=None):
        return 1.0
    return float(friedmanchisquare(*(ranks[name] for name in ranks.columns)).pvalue)


def critical_difference(contenders: int, units: int, alpha: float = 0.05) -> float:
    """Return the difference of mean ranks from which on Nemenyi's test tells two contenders apart.

    Examples
    --------
    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    from scipy.stats import studentized_range

    quantile = studentized_range.ppf(1 - alpha, contenders, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(contenders * (contenders + 1) / (6 * units)))


def undistinguished(mean_ranks: Mapping[str, float], difference: float) -> tuple[tuple[str, ...], ...]:
    """Return the largest sets of contenders whose mean ranks all lie within less than the difference.

    Examples
    --------
    >>> undistinguished({"a": 1.0, "b": 1.8, "c": 2.5, "d": 4.0}, 1.0)
    (('a', 'b'), ('b', 'c'))
    """
    names = sorted(mean_ranks, key=mean_ranks.__getitem__)
    groups: list[tuple[str, ...]] = []
    reached = 0
    for start, first in enumerate(names):
        end = start
        while end < len(names) and mean_ranks[names[end]] - mean_ranks[first] < difference:
            end += 1
        if end - start > 1 and end > reached:
            groups.append(tuple(names[start:end]))
        reached = max(reached, end)
    return tuple(groups)
