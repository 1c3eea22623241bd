"""The figures of an experiment with title, alternative text and caption, and its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from c2tc_pipeline.bench.reports.score_figures import (
    UNFINISHED,
    accuracy_macro_f1_front,
    rank_diagram,
    scores_by_ratio,
    scores_by_setting,
    scores_by_variant,
)
from c2tc_pipeline.bench.reports.table import metric_name
from c2tc_pipeline.bench.reports.time_figures import seconds_by_size, seconds_by_table
from c2tc_pipeline.bench.reports.worth import worth_exhibits
from c2tc_pipeline.bench.statistics.comparisons import Ranking
from c2tc_pipeline.bench.statistics.runs import WHOLE
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.metrics import METRICS
from c2tc_pipeline.reports.exhibits import TITLES, Exhibit
from c2tc_pipeline.reports.html import render_page
from c2tc_pipeline.reports.markdown import ShownTable
from c2tc_pipeline.reports.wording import counted, listed, shortened
from c2tc_pipeline.reports.wording import ratio as shown_ratio

FIGURES = ("ratios", "bars", "lines", "front", "worth", "seconds", "scaling", "none")


def experiment_page(
    name: str,
    results: Mapping[str, ShownTable],
    exhibits: Sequence[Exhibit] = (),
    statistics: Mapping[str, ShownTable] | None = None,
    *,
    notes: Sequence[str] = (),
) -> str:
    """Return an experiment's notes, results, figures and statistics as one self-contained HTML page."""
    drawn = [(exhibit.title, exhibit) for exhibit in exhibits]
    sections = [*results.items(), *drawn, *(statistics or {}).items()]
    return render_page("board.html", "Experiment", name, notes=notes, sections=sections)


def experiment_exhibits(figure: str, scores: pd.DataFrame, metrics: Sequence[str] = METRICS) -> list[Exhibit]:
    """Return the figures of an experiment by the kind (one of ``FIGURES``) that its grid names.

    Of ``metrics`` the figures of scores take scores and the figures of time take seconds; seconds that no method
    finished in are left out.
    """
    if figure not in FIGURES:
        raise InputError(f"There is no figure {figure!r}; choose one of: {', '.join(FIGURES)}.")
    scored = [metric for metric in metrics if metric in METRICS] or METRICS
    timed = [metric for metric in metrics if metric.endswith("_seconds")] or ["condense_seconds"]
    timed = [metric for metric in timed if metric in scores and _any_time(scores, metric)]
    match figure:
        case "ratios":
            return [_ratio_exhibit(scores, metric) for metric in scored]
        case "bars":
            return [_variant_exhibit(scores, scored)]
        case "lines":
            return [_setting_exhibit(scores, _setting(scores), scored)]
        case "front":
            return [
                _front_exhibit(scores, ratio)
                for ratio in np.sort(scores.loc[scores["method"] != WHOLE, "ratio"].unique())
            ]
        case "worth":
            return list(worth_exhibits(scores))
        case "seconds":
            return [_seconds_exhibit(scores, metric) for metric in timed]
        case "scaling":
            return [_scaling_exhibit(scores, _setting(scores), metric) for metric in timed]
    return []


def _any_time(scores: pd.DataFrame, metric: str) -> bool:
    return bool((scores.loc[(scores["method"] != WHOLE) & (scores["status"] == "ok"), metric] > 0).any())


def _setting(scores: pd.DataFrame) -> str:
    """Return the setting that the variants vary, empty when they are values themselves."""
    variants = [str(variant) for variant in scores["variant"].fillna("") if variant]
    if not variants:
        raise InputError("The scores have no variant of a setting to draw; variants are written 'gamma=0.5'.")
    names = [variant.partition("=")[0] if "=" in variant else "" for variant in variants]
    return max(dict.fromkeys(names), key=names.count)


def _ratio_exhibit(scores: pd.DataFrame, metric: str) -> Exhibit:
    return Exhibit(
        f"{TITLES[metric]} against ratio",
        scores_by_ratio(scores, metric),
        f"{TITLES[metric]} of {listed(scores['method'])} at each ratio, on {listed(scores['table'])}.",
        "Dots are means over the runs, bars one standard deviation to either side; dots are moved apart a little. "
        "Dashed grey: the whole table. What did not finish is not drawn.",
    )


def _setting_exhibit(scores: pd.DataFrame, setting: str, metrics: Sequence[str]) -> Exhibit:
    return Exhibit(
        f"Scores against {setting or 'variant'}",
        scores_by_setting(scores, setting, metrics),
        f"Scores by {shortened(setting or 'variant', 40)} on {listed(scores['table'])}.",
        "Dots are means over the runs, bars one standard deviation to either side. Values are at equal distances.",
    )


def _variant_exhibit(scores: pd.DataFrame, metrics: Sequence[str]) -> Exhibit:
    return Exhibit(
        "Scores by variant",
        scores_by_variant(scores, metrics),
        f"Bars of the scores of each variant on {listed(scores['table'])}.",
        "Bars are means over the runs, the thin line at their end is one standard deviation to either side.",
    )


def _front_exhibit(scores: pd.DataFrame, ratio: float) -> Exhibit:
    return Exhibit(
        f"Accuracy and macro-F1 over class weights, {shown_ratio(ratio)}",
        accuracy_macro_f1_front(scores[scores["ratio"] == ratio]),
        f"Accuracy against macro-F1 of {listed(scores['method'])} on {listed(scores['table'])}, by class weights.",
        "Each dot is a mean over the runs for one weighting of the classes, in the order of the settings: from shares "
        "of the condensed rows to shares of the source rows. A line above and to the right of another is better at "
        "every trade between the two scores.",
    )


def _seconds_exhibit(scores: pd.DataFrame, metric: str) -> Exhibit:
    title = metric_name(metric).capitalize()
    return Exhibit(
        title,
        seconds_by_table(scores, metric),
        f"{title} of {listed(scores['method'])} on {listed(scores['table'])}.",
        "Mean wall-clock time over the runs on a logarithmic axis. OOT: out of time, OOM: out of memory.",
    )


def _scaling_exhibit(scores: pd.DataFrame, what: str, metric: str) -> Exhibit:
    title = metric_name(metric).capitalize()
    return Exhibit(
        f"{title} against {what}",
        seconds_by_size(scores, what, metric),
        f"{title} of {listed(scores['method'])} by {shortened(what, 40)}.",
        "Mean wall-clock time over the runs, both axes logarithmic. The legend gives the power of the size that the "
        "time grows with, by least squares through the logarithms.",
    )


def rank_exhibit(ranking: Ranking, metric: str) -> Exhibit:
    """Return the critical-difference diagram."""
    units = counted(len(ranking.ranks), "unit", "units")
    order = ", ".join(f"{shortened(name, 40)} {mean:.2f}" for name, mean in ranking.mean_ranks.items())
    star = f" {UNFINISHED}: ranked last where it did not finish." if ranking.unfinished else ""
    return Exhibit(
        f"Mean ranks, {metric_name(metric)}",
        rank_diagram(ranking),
        f"Mean ranks over {units}: {order}.",
        f"Mean rank over {units} (table, ratio and model), 1 is best. A thick bar joins methods whose mean ranks "
        f"differ by less than the critical difference of Nemenyi's test at {ranking.alpha:g}.{star}",
    )
