"""The statistics of an experiment as tables: paired tests, pooled tests, ranks, regret and standings.

What belongs here: the wording. The numbers come from ``evaluation.statistics``.
"""

from __future__ import annotations

import math

import pandas as pd

from c2tc_pipeline.evaluation.statistics.comparisons import LEVEL
from c2tc_pipeline.evaluation.statistics.ranks import Ranking
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.experiment_shown import Cell, ShownTable
from c2tc_pipeline.reports.experiment_table import METRIC_NAMES
from c2tc_pipeline.reports.markup import Column


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


def comparisons_table(comparisons: pd.DataFrame) -> ShownTable:
    """Return the paired tests of ours against each rival, unit by unit.

    Parameters
    ----------
    comparisons : DataFrame
        What :func:`~c2tc_pipeline.evaluation.statistics.comparisons.compare` returned.

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
        f"seeds. P-values are two-sided and corrected by Holm; bold: below {LEVEL}.",
    )


def pooled_table(pooled: pd.DataFrame) -> ShownTable:
    """Return the tests of ours against each rival over all units.

    Parameters
    ----------
    pooled : DataFrame
        What :func:`~c2tc_pipeline.evaluation.statistics.comparisons.pool` returned.

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
        f"out: without a pair. P-values are two-sided and corrected by Holm; bold: below {LEVEL}.",
    )


def ranking_table(ranking: Ranking) -> ShownTable:
    """Return mean ranks, the best first.

    Parameters
    ----------
    ranking : Ranking
        What :func:`~c2tc_pipeline.evaluation.statistics.ranks.rank_contenders` returned.

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
        f"difference at {ranking.alpha:g}: {ranking.critical_difference:.2f}.{left_out}",
    )


def _significant(p: float) -> str:
    return "best" if p < LEVEL else ""
