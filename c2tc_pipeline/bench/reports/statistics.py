"""Tables of an experiment's statistics: paper and whole table beside ours, standings, paired tests, ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pandas as pd

from c2tc_pipeline.bench.reports.table import metric_name
from c2tc_pipeline.bench.statistics.comparisons import LEVEL, TEST_TO_TRAIN, Ranking
from c2tc_pipeline.bench.statistics.runs import ERRORS
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.markdown import Cell, Column, ShownTable

Row = Mapping[Any, Any]
Form = Callable[[Row], str | Cell]
_STANDINGS = ("first", "tied", "behind", "missing", "alone")
_DEPENDENT = "Where one table counts at several ratios or under several models, its units are not independent,"


def p_value(value: float) -> str:
    """Format a p-value: ``0.062``, ``0.0004``, ``< 0.0001``, a dash for NaN."""
    if math.isnan(value):
        return wording.MISSING
    if value < 0.0001:
        return "< 0.0001"
    return f"{value:.4f}" if value < 0.01 else f"{value:.3f}"


def points(value: float) -> str:
    """Format a difference of scores in percentage points: ``+2.1``, a dash for NaN."""
    return wording.MISSING if math.isnan(value) else f"{100 * value:+.1f}"


def _percent(value: float) -> str:
    return wording.MISSING if math.isnan(value) else f"{100 * value:.1f}"


def _text(name: str) -> Form:
    return lambda row: wording.shortened(row[name], 60)


def _count(name: str) -> Form:
    return lambda row: wording.count(row[name])


def _significance(name: str) -> Form:
    return lambda row: Cell(p_value(row[name]), "best" if row[name] < LEVEL else "")


_TEXTS: dict[str, Form] = {name: _text(name) for name in ("table", "model", "space", "rival")}
_TEXTS |= {"ratio": lambda row: wording.ratio(row["ratio"]), "metric": lambda row: metric_name(row["metric"])}
_PLACE = ("table", "ratio", "model", "space")
_NAMES = {"table", "model", "space", "rival", "method", "metric"}


def _won_lost(row: Row) -> str:
    return f"{row['wins']} : {row['losses']}"


def _table(frame: pd.DataFrame, forms: Mapping[str, Form], legend: str, *, left: Collection[str] = ()) -> ShownTable:
    """Return a table with one format per column; all but names and the titles in ``left`` are right-aligned."""
    heads = [Column(title, title not in left and title not in _NAMES) for title in forms]
    return ShownTable(heads, [[form(row) for form in forms.values()] for row in frame.to_dict("records")], legend)


def _columns(*names: str) -> dict[str, Form]:
    return {name: _TEXTS[name] for name in names}


def anchors_table(found: pd.DataFrame) -> ShownTable:
    """Return ours beside the paper's number and the whole table's; ``found`` comes from ``anchored``."""
    known = found[found["paper"].notna()]
    below = int((known["mean"] < known["paper"]).sum())
    note = f" Below the paper: {below} of {wording.counted(len(known), 'number', 'numbers')}." if len(known) else ""
    forms: dict[str, Form] = {
        **_columns(*_PLACE, "metric"),
        "ours": lambda row: wording.percentage(row["mean"], row["std"]),
        "paper": lambda row: _percent(row["paper"]),
        "difference": lambda row: Cell(
            points(row["mean"] - row["paper"]), "best" if row["mean"] >= row["paper"] else ""
        ),
        "whole": lambda row: _percent(row["whole"]),
        "share of whole": lambda row: wording.MISSING if math.isnan(row["share"]) else f"{100 * row['share']:.1f} %",
    }
    return _table(
        found,
        forms,
        "Paper: its own method in the same column space, as printed. Whole: the same model trained on the whole table, "
        "in the same space, too." + note,
    )


def standings_table(found: pd.DataFrame) -> ShownTable:
    """Return where ours stands among its rivals, cell by cell; ``found`` comes from ``standings``."""
    counts = []
    for (space, metric), part in found.groupby(["space", "metric"], sort=False):
        by_name = part["standing"].value_counts()
        listed = ", ".join(f"{name} {by_name[name]}" for name in _STANDINGS if name in by_name)
        counts.append(f"{wording.shortened(space, 60)}, {metric_name(metric)}: {listed} of {len(part)}")

    def difference(row: Row) -> str:
        error = "" if math.isnan(row["error"]) else f" ± {100 * row['error']:.1f}"
        return points(row["difference"]) + error

    return _table(
        found,
        {
            **_columns(*_PLACE, "metric"),
            "ours": lambda row: wording.percentage(row["ours_mean"], row["ours_std"]),
            "best": lambda row: wording.printable(row["best"]),
            "its score": lambda row: _percent(row["best_mean"]),
            "ours less the best rival": difference,
            "standing": lambda row: Cell(row["standing"], "best" if row["standing"] == "first" else ""),
            "behind": lambda row: wording.printable(row["behind"]),
            "unfinished": lambda row: wording.printable(row["unfinished"]),
        },
        f"{'; '.join(counts)}. First: strictly above every rival. Tied: no rival is ahead by more than {ERRORS} "
        "standard errors of the difference, paired over the runs. Behind: the rivals that are. Differences are in "
        "percentage points, ± one standard error.",
        left=("best", "standing", "behind", "unfinished"),
    )


def comparisons_table(comparisons: pd.DataFrame) -> ShownTable:
    """Return the paired tests of ours against each rival, unit by unit; ``comparisons`` comes from ``compare``."""
    every = bool((comparisons["runs"] > comparisons["pairs"]).any())
    return _table(
        comparisons,
        {
            **_columns(*_PLACE, "rival", "metric"),
            "pairs": _count("pairs"),
            "difference": lambda row: points(row["difference"]),
            "won : lost": _won_lost,
            "p, t": _significance("t_p_holm"),
            "p, Wilcoxon": _significance("wilcoxon_p_holm"),
            **({"runs": _count("runs"), "p, all runs": _significance("runs_p")} if every else {}),
            "note": lambda row: wording.printable(row["note"]),
        },
        "Ours less the rival in percentage points, paired over split and condensation seed after averaging over model "
        "seeds. P-values are two-sided and corrected by Holm over tables, ratios and models, for each rival, space and "
        f"metric; bold: below {LEVEL}. Random splits of a table share most of their training rows: t has the variance "
        f"of Nadeau and Bengio (2003), 1/n + test/train with {TEST_TO_TRAIN:.3g} for test/train; Wilcoxon's test takes "
        "no account of it, and its p-values are too small."
        + (" All runs: the paper's t-test over every model of every condensation, uncorrected." if every else ""),
        left=("note",),
    )


def pooled_table(pooled: pd.DataFrame) -> ShownTable:
    """Return the tests of ours against each rival over all units; ``pooled`` comes from ``pool``."""
    return _table(
        pooled,
        {
            **_columns("space", "rival", "metric"),
            "units": _count("units"),
            "left out": _count("left_out"),
            "mean difference": lambda row: points(row["difference"]),
            "median difference": lambda row: points(row["median_difference"]),
            "won : lost": _won_lost,
            "p, Wilcoxon": _significance("wilcoxon_p_holm"),
        },
        "Each table, ratio and model counts once, with the mean difference of its pairs in percentage points; left "
        "out: without a pair. P-values are two-sided and corrected by Holm over rivals and spaces, for each metric; "
        f"bold: below {LEVEL}. {_DEPENDENT} and these p-values are too small.",
    )


def ranking_table(ranking: Ranking) -> ShownTable:
    """Return mean ranks, the best first; ``ranking`` comes from ``rank_contenders``."""
    rows = [
        [wording.shortened(name, 60), f"{mean:.2f}", wording.count(ranking.unfinished.get(name, 0))]
        for name, mean in ranking.mean_ranks.items()
    ]
    left_out = f" {wording.counted(ranking.left_out, 'unit', 'units')} left out, where not all methods ran."
    return ShownTable(
        [Column("method"), Column("mean rank", True), Column("unfinished units", True)],
        rows,
        f"Mean rank over {wording.counted(len(ranking.ranks), 'unit', 'units')} (table, ratio and model); what did not "
        f"finish ranks last. Friedman's test that all are alike: p {p_value(ranking.friedman_p)}. Nemenyi's critical "
        f"difference at {ranking.alpha:g}: {ranking.critical_difference:.2f}. {_DEPENDENT} and both tests claim too "
        f"much.{left_out if ranking.left_out else ''}",
    )
