"""What the runs of an experiment can tell, as tables: paired tests, pooled tests and ranks.

What belongs here: the wording, and what to hold against the p-values. The numbers come from ``evaluation.statistics``;
where ours stands is worded in ``experiment_standings.py``.
"""

from __future__ import annotations

import math

import pandas as pd

from c2tc_pipeline.bench.reports.shown import Cell, ShownTable
from c2tc_pipeline.bench.reports.table import METRIC_NAMES
from c2tc_pipeline.bench.statistics.comparisons import LEVEL, TEST_TO_TRAIN, Ranking
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.markup import Column

_DEPENDENT = "Where one table counts at several ratios or under several models, its units are not independent,"


def p_value(value: float) -> str:
    """Word a p-value.

    Examples
    --------
    >>> p_value(0.0625), p_value(0.00042), p_value(3e-7), p_value(float("nan"))
    ('0.062', '0.0004', '< 0.0001', '—')
    """
    if math.isnan(value):
        return wording.MISSING
    if value < 0.0001:
        return "< 0.0001"
    return f"{value:.4f}" if value < 0.01 else f"{value:.3f}"


def points(value: float) -> str:
    """Word a difference of scores in percentage points.

    Examples
    --------
    >>> points(0.0213), points(-0.004), points(float("nan"))
    ('+2.1', '-0.4', '—')
    """
    return wording.MISSING if math.isnan(value) else f"{100 * value:+.1f}"


def comparisons_table(comparisons: pd.DataFrame, *, test_to_train: float = TEST_TO_TRAIN) -> ShownTable:
    """Return the paired tests of ours against each rival, unit by unit.

    Parameters
    ----------
    comparisons : DataFrame
        What :func:`~c2tc_pipeline.bench.statistics.comparisons.compare` returned, corrected as it is by default.
    test_to_train : float
        What it was given.

    Examples
    --------
    >>> one = pd.DataFrame({"table": ["t"], "ratio": 0.1, "model": "mlp", "space": "hcfe", "rival": "random",
    ...     "metric": "accuracy", "pairs": 8, "difference": 0.021, "wins": 8, "losses": 0, "t_p": 0.001,
    ...     "wilcoxon_p": 0.0078, "t_p_holm": 0.002, "wilcoxon_p_holm": 0.0156, "note": ""})
    >>> print(comparisons_table(one).markdown().splitlines()[2])
    | t | 10 % | mlp | hcfe | random | accuracy | 8 | +2.1 | 8 : 0 | **0.0020** | **0.016** |  |
    """
    titles = ("table", "ratio", "model", "space", "rival", "metric")
    numbers = ("pairs", "difference", "won : lost", "p, t", "p, Wilcoxon")
    columns = [
        *(Column(title, title == "ratio") for title in titles),
        *(Column(title, True) for title in numbers),
        Column("note"),
    ]
    rows = [
        [
            *(Cell(wording.shortened(row[name], 60)) for name in ("table",)),
            Cell(wording.share(row["ratio"])),
            *(Cell(wording.shortened(row[name], 60)) for name in ("model", "space", "rival")),
            Cell(METRIC_NAMES.get(row["metric"], row["metric"])),
            Cell(wording.count(row["pairs"])),
            Cell(points(row["difference"])),
            Cell(f"{row['wins']} : {row['losses']}"),
            *(Cell(p_value(row[name]), _significant(row[name])) for name in ("t_p_holm", "wilcoxon_p_holm")),
            Cell(wording.printable(row["note"])),
        ]
        for row in comparisons.to_dict("records")
    ]
    return ShownTable(
        columns,
        rows,
        "Ours less the rival in percentage points, paired over split and condensation seed after averaging over model "
        "seeds. P-values are two-sided and corrected by Holm over tables, ratios and models, for each rival, space and "
        f"metric; bold: below {LEVEL}. {_on_splits(test_to_train)}",
    )


def pooled_table(pooled: pd.DataFrame) -> ShownTable:
    """Return the tests of ours against each rival over all units.

    Parameters
    ----------
    pooled : DataFrame
        What :func:`~c2tc_pipeline.bench.statistics.comparisons.pool` returned.

    Examples
    --------
    >>> one = pd.DataFrame({"space": ["hcfe"], "rival": "random", "metric": "macro_f1", "units": 15, "left_out": 0,
    ...     "difference": 0.05, "median_difference": 0.04, "wins": 14, "losses": 1, "wilcoxon_p": 0.001,
    ...     "wilcoxon_p_holm": 0.004})
    >>> print(pooled_table(one).markdown().splitlines()[2])
    | hcfe | random | macro-F1 | 15 | 0 | +5.0 | +4.0 | 14 : 1 | **0.0040** |
    """
    numbers = ("units", "left out", "mean difference", "median difference", "won : lost", "p, Wilcoxon")
    columns = [Column("space"), Column("rival"), Column("metric"), *(Column(title, True) for title in numbers)]
    rows = [
        [
            Cell(wording.shortened(row["space"], 60)),
            Cell(wording.shortened(row["rival"], 60)),
            Cell(METRIC_NAMES.get(row["metric"], row["metric"])),
            Cell(wording.count(row["units"])),
            Cell(wording.count(row["left_out"])),
            Cell(points(row["difference"])),
            Cell(points(row["median_difference"])),
            Cell(f"{row['wins']} : {row['losses']}"),
            Cell(p_value(row["wilcoxon_p_holm"]), _significant(row["wilcoxon_p_holm"])),
        ]
        for row in pooled.to_dict("records")
    ]
    return ShownTable(
        columns,
        rows,
        "Each table, ratio and model counts once, with the mean difference of its pairs in percentage points; left "
        "out: without a pair. P-values are two-sided and corrected by Holm over rivals and spaces, for each metric; "
        f"bold: below {LEVEL}. {_DEPENDENT} and these p-values are too small.",
    )


def ranking_table(ranking: Ranking) -> ShownTable:
    """Return mean ranks, the best first.

    Parameters
    ----------
    ranking : Ranking
        What :func:`~c2tc_pipeline.bench.statistics.ranks.rank_contenders` returned.

    Examples
    --------
    >>> ranks = pd.DataFrame({"ours": [1.0, 1.0], "mtt": [2.0, 2.0]})
    >>> ranking = Ranking(ranks, {"ours": 1.0, "mtt": 2.0}, {"mtt": 1}, 0, float("nan"), 0.05, 1.39, (("ours", "mtt"),))
    >>> print(ranking_table(ranking).markdown().splitlines()[3])
    | mtt | 2.00 | 1 |
    """
    columns = [Column("method"), Column("mean rank", True), Column("unfinished units", True)]
    rows = [
        [Cell(wording.shortened(name, 60)), Cell(f"{mean:.2f}"), Cell(wording.count(ranking.unfinished.get(name, 0)))]
        for name, mean in ranking.mean_ranks.items()
    ]
    left_out = (
        f" {wording.counted(ranking.left_out, 'unit', 'units')} left out, where not all methods ran."
        if ranking.left_out
        else ""
    )
    return ShownTable(
        columns,
        rows,
        f"Mean rank over {wording.counted(len(ranking.ranks), 'unit', 'units')} (table, ratio and model); what did not "
        f"finish ranks last. Friedman's test that all are alike: p {p_value(ranking.friedman_p)}. Nemenyi's critical "
        f"difference at {ranking.alpha:g}: {ranking.critical_difference:.2f}. {_DEPENDENT} and both tests claim too "
        f"much.{left_out}",
    )


def _on_splits(test_to_train: float) -> str:
    shared = "Random splits of a table share most of their training rows: "
    if not test_to_train:
        return f"{shared}t and Wilcoxon's test take no account of it, and their p-values are too small."
    return (
        f"{shared}t has the variance of Nadeau and Bengio (2003), 1/n + test/train with {test_to_train:.3g} for "
        "test/train; Wilcoxon's test takes no account of it, and its p-values are too small."
    )


def _significant(p: float) -> str:
    return "best" if p < LEVEL else ""
