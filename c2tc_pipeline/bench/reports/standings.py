"""Where ours stands, as tables: beside the paper and the whole table, among its rivals, and what condensing loses.

What belongs here: the wording. The numbers come from ``evaluation.statistics``; what is tested is worded in
``experiment_statistics.py``.
"""

from __future__ import annotations

import math

import pandas as pd

from c2tc_pipeline.bench.reports.shown import Cell, ShownTable
from c2tc_pipeline.bench.reports.statistics import points
from c2tc_pipeline.bench.reports.table import METRIC_NAMES
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.markup import Column

_STANDINGS = ("first", "tied", "behind", "missing", "alone")


def anchors_table(found: pd.DataFrame) -> ShownTable:
    """Return ours beside the paper's number and the whole table's.

    Parameters
    ----------
    found : DataFrame
        What :func:`~c2tc_pipeline.bench.statistics.anchors.anchored` returned.

    Examples
    --------
    >>> one = pd.DataFrame({"table": ["t"], "ratio": 0.1, "model": "mlp", "space": "hcfe", "metric": "accuracy",
    ...     "mean": 0.72, "std": 0.01, "paper": 0.7, "whole": 0.8, "share": 0.9})
    >>> print(anchors_table(one).markdown().splitlines()[2])
    | t | 10 % | mlp | hcfe | accuracy | 72.0 ± 1.0 | 70.0 | **+2.0** | 80.0 | 90.0 % |
    """
    titles = ("table", "ratio", "model", "space", "metric")
    numbers = ("ours", "paper", "difference", "whole", "share of whole")
    columns = [*(Column(title, title == "ratio") for title in titles), *(Column(title, True) for title in numbers)]
    rows = [
        [
            Cell(wording.shortened(row["table"], 60)),
            Cell(wording.share(row["ratio"])),
            *(Cell(wording.shortened(row[name], 60)) for name in ("model", "space")),
            Cell(METRIC_NAMES.get(row["metric"], row["metric"])),
            Cell(wording.percentage(row["mean"], row["std"])),
            Cell(_percent(row["paper"])),
            Cell(
                points(row["mean"] - row["paper"]) if not math.isnan(row["paper"]) else wording.MISSING,
                "best" if row["mean"] >= row["paper"] else "",
            ),
            Cell(_percent(row["whole"])),
            Cell(f"{100 * row['share']:.1f} %" if not math.isnan(row["share"]) else wording.MISSING),
        ]
        for row in found.to_dict("records")
    ]
    known = found[found["paper"].notna()]
    below = int((known["mean"] < known["paper"]).sum())
    told = f" Below the paper: {below} of {wording.counted(len(known), 'number', 'numbers')}." if len(known) else ""
    return ShownTable(
        columns,
        rows,
        "Paper: its own method in the same column space, as printed. Whole: the same model trained on the whole table, "
        "in the same space, too." + told,
    )


def standings_table(found: pd.DataFrame) -> ShownTable:
    """Return cell by cell where ours stands.

    Parameters
    ----------
    found : DataFrame
        What :func:`~c2tc_pipeline.bench.statistics.standings.standings` returned.

    Examples
    --------
    >>> one = pd.DataFrame({"table": ["t"], "ratio": 0.1, "model": "mlp", "space": "hcfe", "metric": "accuracy",
    ...     "best": "random", "best_mean": 0.81, "ours_mean": 0.8, "ours_std": 0.02, "standing": "tied", "behind": "",
    ...     "unfinished": "mtt"})
    >>> print(standings_table(one).markdown().splitlines()[2])
    | t | 10 % | mlp | hcfe | accuracy | 80.0 ± 2.0 | random | 81.0 | tied |  | mtt |
    """
    titles = ("table", "ratio", "model", "space", "metric")
    columns = [
        *(Column(title, title == "ratio") for title in titles),
        *(Column("ours", True), Column("best"), Column("its score", True)),
        *(Column("standing"), Column("behind"), Column("unfinished")),
    ]
    rows = [
        [
            Cell(wording.shortened(row["table"], 60)),
            Cell(wording.share(row["ratio"])),
            *(Cell(wording.shortened(row[name], 60)) for name in ("model", "space")),
            Cell(METRIC_NAMES.get(row["metric"], row["metric"])),
            Cell(
                wording.MISSING
                if math.isnan(row["ours_mean"])
                else wording.percentage(row["ours_mean"], row["ours_std"])
            ),
            Cell(wording.printable(row["best"])),
            Cell(wording.MISSING if math.isnan(row["best_mean"]) else f"{100 * row['best_mean']:.1f}"),
            Cell(row["standing"], "best" if row["standing"] == "first" else ""),
            *(Cell(wording.printable(row[name])) for name in ("behind", "unfinished")),
        ]
        for row in found.to_dict("records")
    ]
    return ShownTable(
        columns,
        rows,
        f"{_counted(found)}. Tied: no rival is ahead by more than one standard deviation (the root of the mean of both "
        "variances). Behind: the rivals that are.",
    )


def _counted(found: pd.DataFrame) -> str:
    """Return how often ours stands where, for each column space and metric.

    Examples
    --------
    >>> two = pd.DataFrame({"space": "hcfe", "metric": "macro_f1", "standing": ["behind", "first", "first"]})
    >>> _counted(two)
    'hcfe, macro-F1: first 2, behind 1 of 3'
    """
    told = []
    for (space, metric), part in found.groupby(["space", "metric"], sort=False):
        counts = part["standing"].value_counts()
        worded = ", ".join(f"{name} {counts[name]}" for name in _STANDINGS if name in counts)
        told.append(f"{wording.shortened(space, 60)}, {METRIC_NAMES.get(str(metric), metric)}: {worded} of {len(part)}")
    return "; ".join(told)


def regret_table(summary: pd.DataFrame) -> ShownTable:
    """Return the relative regret averaged over units.

    Parameters
    ----------
    summary : DataFrame
        What :func:`~c2tc_pipeline.bench.statistics.regret.summarise_regret` returned.

    Examples
    --------
    >>> one = pd.DataFrame({"space": ["hcfe"], "contender": "ours", "units": 14, "no_gap": 1, "unfinished": 0,
    ...                     "mean": 0.31, "median": 0.28})
    >>> print(regret_table(one).markdown().splitlines()[2])
    | hcfe | ours | 0.310 | 0.280 | 14 | 1 | 0 |
    """
    numbers = ("mean regret", "median regret", "units", "no gap", "unfinished")
    columns = [Column("space"), Column("method"), *(Column(title, True) for title in numbers)]
    rows = [
        [
            Cell(wording.shortened(row["space"], 60)),
            Cell(wording.shortened(row["contender"], 60)),
            *(Cell(f"{row[n]:.3f}" if not math.isnan(row[n]) else wording.MISSING) for n in ("mean", "median")),
            *(Cell(wording.count(row[name])) for name in ("units", "no_gap", "unfinished")),
        ]
        for row in summary.to_dict("records")
    ]
    return ShownTable(
        columns,
        rows,
        "Relative regret is (whole - score) / (whole - random): 0 is as good as the whole table, 1 as bad as random "
        "rows. No gap: units left out because the whole table is no better than random rows.",
    )


def _percent(value: float) -> str:
    return wording.MISSING if math.isnan(value) else f"{100 * value:.1f}"
