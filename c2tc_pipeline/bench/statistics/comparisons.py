"""Tests of ours against each rival: paired over runs, pooled over units; and ranks of all contenders over units.

Random splits of one table share most of their training rows and all test rows; the t-test corrects for the former,
Wilcoxon's test cannot. Five condensations with five models each are less evidence than twenty-five condensations.
Nor are the ratios of one table independent of each other, so with several ratios the critical difference of Demsar
(2006) is too small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.bench.statistics.runs import DECIMALS, UNIT, cell_scores, is_reference, runs_by_cell
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.metrics import METRICS

LEVEL = 0.05
TEST_TO_TRAIN = 0.2 / 0.7
"""Test rows divided by training rows in experiments."""
FAMILY = ("rival", "space", "metric")
"""Tests that agree in these are corrected together: each rival is one question, over all tables, ratios and models."""


def paired_t(differences: Sequence[float] | np.ndarray, *, test_to_train: float = 0.0) -> float:
    """Return the two-sided p-value of the paired t-test, corrected for random splits of one table.

    Splits share most of their training rows; Nadeau and Bengio (2003) take the variance of the mean to be
    1/n + test/train times that of the differences, where Student takes 1/n (``test_to_train=0``). NaN for fewer than
    two pairs and for equal differences that are not zero; 1 where all are zero.
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
    """Return the two-sided p-value of Wilcoxon's signed-rank test without zeros, by scipy.

    NaN for fewer than two pairs, 1 where all differences are zero. scipy's p-value is exact for up to 50 differences,
    13 where some are equal.
    """
    from scipy.stats import wilcoxon as signed_rank

    values = np.round(np.asarray(differences, dtype=np.float64), DECIMALS)
    if len(values) < 2:
        return float("nan")
    values = values[values != 0]
    return float(signed_rank(values).pvalue) if len(values) else 1.0


def smallest_wilcoxon(pairs: int) -> float:
    """Return the smallest p-value of the two-sided test with that many nonzero differences."""
    return 2.0 ** (1 - pairs)


def holm(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return p-values of one family with Holm's correction; NaN stands for a test that was not made."""
    given = np.asarray(values, dtype=np.float64)
    corrected = np.full(given.shape, np.nan)
    made = np.flatnonzero(~np.isnan(given))
    order = made[np.argsort(given[made], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(given[order] * factors), 1.0)
    return corrected


def compare(
    scores: pd.DataFrame,
    *,
    metrics: Sequence[str] = METRICS,
    ours: str = "ours",
    test_to_train: float = TEST_TO_TRAIN,
) -> pd.DataFrame:
    """Test ours against every rival in every unit, paired over (split, condensation seed).

    Ours is taken from the space of each rival, so that only methods differ. Columns: those of a
    unit, ``space``, ``rival``, ``metric``, ``pairs``, mean ``difference`` (ours less rival), ``wins``, ``losses``,
    ``t_p``, ``wilcoxon_p``, both with Holm's correction over the tests that agree in :data:`FAMILY` (``t_p_holm``,
    ``wilcoxon_p_holm``), ``runs`` and ``runs_p``, Student's t-test as in the paper, over every model of every run as if
    these were independent, and a ``note`` on why a value is missing or can't be small.
    """
    parts = [_compare_metric(scores, metric, ours, test_to_train) for metric in metrics]
    found = _corrected(pd.concat(parts, ignore_index=True), FAMILY, "t_p", "wilcoxon_p")
    return found[[*(name for name in found.columns if name != "note"), "note"]]


def _corrected(found: pd.DataFrame, family: Sequence[str], *names: str) -> pd.DataFrame:
    for name in names:
        corrected = found.groupby(list(family), sort=False)[name].transform(lambda values: holm(values.to_numpy()))
        found[f"{name}_holm"] = corrected.astype(np.float64)
    return found


def _compare_metric(scores: pd.DataFrame, metric: str, ours: str, test_to_train: float) -> pd.DataFrame:
    cells = runs_by_cell(scores, metric)
    names = list(dict.fromkeys(key[-1] for key in cells))
    if ours not in names:
        raise InputError(f"The scores hold no method {ours!r}; choose one of: {', '.join(names)}.")
    rows: list[dict[str, Any]] = []
    for (*unit, space, rival), other in cells.items():
        if rival == ours or is_reference(rival):
            continue
        own = cells.get((*unit, space, ours))
        if own is None or not own.means or not other.means:
            differences = every = np.empty(0)
            note = f"no finished run: {other.ending}" if not other.means else f"{ours} has no finished run"
        else:
            differences, every = own.less(other), own.less(other, every_model=True)
            note = _note(differences)
        rows.append(
            {
                **dict(zip(UNIT, unit, strict=True)),
                "space": space,
                "rival": rival,
                "metric": metric,
                "pairs": len(differences),
                "difference": differences.mean() if len(differences) else np.nan,
                "wins": int((differences > 0).sum()),
                "losses": int((differences < 0).sum()),
                "t_p": paired_t(differences, test_to_train=test_to_train),
                "wilcoxon_p": wilcoxon(differences),
                "runs": len(every),
                "runs_p": paired_t(every),
                "note": note,
            }
        )
    if not rows:
        raise InputError(f"The scores hold no rival of {ours!r}; run another method over the same tables.")
    return pd.DataFrame(rows)


def _note(differences: np.ndarray) -> str:
    if len(differences) < 2:
        return f"{len(differences)} pair{'' if len(differences) == 1 else 's'}: a test needs 2"
    informative = int((differences != 0).sum())
    if not informative:
        return "all differences are zero"
    notes = []
    if not np.ptp(differences):
        notes.append("all differences are the same, so t has no value")
    if smallest_wilcoxon(informative) > LEVEL:
        text = f"{smallest_wilcoxon(informative):.4f}".rstrip("0")
        notes.append(f"{informative} differences cannot get below {text} in Wilcoxon's test")
    return "; ".join(notes)


def pool(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Test ours against every rival over all units of :func:`compare`; each unit counts once, by its mean difference.

    One row per space, rival and metric: ``units``, ``left_out`` (units without a pair), mean and median difference,
    units won and lost, ``wilcoxon_p`` and ``wilcoxon_p_holm``.
    """
    rows = []
    for (space, rival, metric), part in comparisons.groupby(["space", "rival", "metric"], sort=False):
        differences = part["difference"].dropna()
        rows.append(
            {
                "space": space,
                "rival": rival,
                "metric": metric,
                "units": len(differences),
                "left_out": len(part) - len(differences),
                "difference": differences.mean(),
                "median_difference": differences.median(),
                "wins": int((differences > 0).sum()),
                "losses": int((differences < 0).sum()),
                "wilcoxon_p": wilcoxon(differences.to_numpy()),
            }
        )
    return _corrected(pd.DataFrame(rows), ["metric"], "wilcoxon_p")


@dataclass(frozen=True)
class Ranking:
    """Ranks of contenders over units.

    ``ranks`` has one row per unit and one column per contender, 1 for the best, ties shared; ``mean_ranks`` the best
    first; ``unfinished`` the units in which a contender has no finished run and ranks last; ``left_out`` counts
    units in which some contender was not run. ``friedman_p`` is NaN for fewer than three contenders or two units.
    ``groups`` are the maximal sets of contenders whose mean ranks differ by less than ``critical_difference``.
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
    """Rank all contenders but the whole table over units; with several spaces a contender is named with its space.

    Raises InputError for fewer than two contenders, and where there is no unit in which all of them ran.
    """
    cells = cell_scores(scores, metric)
    cells = cells[~cells["contender"].map(is_reference)]
    if cells["space"].nunique() > 1:
        cells = cells.assign(contender=cells["contender"] + ", " + cells["space"])
    if cells["contender"].nunique() < 2:
        raise InputError("There are fewer than two methods to rank; give the scores of more of them.")
    names = list(dict.fromkeys(cells["contender"]))
    # What did not finish ranks behind all that did.
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
    """Return the p-value of Friedman's test that all contenders are alike; 1 where all ranks are equal."""
    from scipy.stats import friedmanchisquare

    if ranks.shape[1] < 3 or len(ranks) < 2:
        return float("nan")
    if ranks.eq(ranks.iloc[:, 0], axis=0).all(axis=None):
        return 1.0
    return float(friedmanchisquare(*(ranks[name] for name in ranks.columns)).pvalue)


def critical_difference(contenders: int, units: int, alpha: float = 0.05) -> float:
    """Return the critical difference of mean ranks of Nemenyi's test."""
    from scipy.stats import studentized_range

    quantile = studentized_range.ppf(1 - alpha, contenders, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(contenders * (contenders + 1) / (6 * units)))


def undistinguished(mean_ranks: Mapping[str, float], difference: float) -> tuple[tuple[str, ...], ...]:
    """Return the maximal sets of two contenders or more whose mean ranks all lie within less than the difference."""
    names = sorted(mean_ranks, key=mean_ranks.__getitem__)
    groups: list[tuple[str, ...]] = []
    reached = 0
    for start, first in enumerate(names):
        end = sum(mean_ranks[name] - mean_ranks[first] < difference for name in names)
        if end - start > 1 and end > reached:
            groups.append(tuple(names[start:end]))
        reached = max(reached, end)
    return tuple(groups)
