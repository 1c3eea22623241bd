"""The pictures of an experiment with the words that belong to them.

What belongs here: title, alternative text and caption of each. How they are drawn is in ``experiment_rank_figure.py``,
``experiment_score_figures.py`` and ``experiment_time_figures.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from c2tc_pipeline.bench.reports.rank_figure import UNFINISHED, rank_diagram
from c2tc_pipeline.bench.reports.score_figures import scores_by_ratio, scores_by_setting, scores_by_variant
from c2tc_pipeline.bench.reports.table import METRIC_NAMES
from c2tc_pipeline.bench.reports.time_figures import seconds_by_size, seconds_by_table
from c2tc_pipeline.bench.statistics.comparisons import Ranking
from c2tc_pipeline.bench.statistics.runs import WHOLE
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.averages import METRICS
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.exhibits import TITLES, Exhibit

FIGURES = ("ratios", "bars", "lines", "seconds", "scaling", "none")


def experiment_exhibits(figure: str, scores: pd.DataFrame, metrics: Sequence[str] = METRICS) -> list[Exhibit]:
    """Return the pictures of an experiment.

    Parameters
    ----------
    figure : {"ratios", "bars", "lines", "seconds", "scaling", "none"}
        Which pictures: scores against the ratio, bars by variant, scores against the setting that the variants name,
        seconds by table, seconds against the size that the variants name.
    scores : DataFrame
        One row a trained model.
    metrics : sequence of str
        Which scores; of the pictures of time, which seconds. Others are left out.

    Returns
    -------
    list of Exhibit
        The pictures, none for ``"none"`` and none of seconds that nobody finished.

    Raises
    ------
    InputError
        When there is no such picture.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "adult", "ratio": [0.01, 0.001], "model": "mlp", "space": "hcfe",
    ...     "method": "ours", "variant": "", "split": 0, "seed": 0, "model_seed": 0, "status": "ok",
    ...     "accuracy": [0.8, 0.7], "macro_f1": 0.6})
    >>> [exhibit.title for exhibit in experiment_exhibits("ratios", scores)]
    ['Accuracy against ratio', 'Macro-F1 against ratio']
    """
    if figure == "none":
        return []
    scored = [metric for metric in metrics if metric in METRICS] or METRICS
    if figure == "ratios":
        return [ratio_exhibit(scores, metric) for metric in scored]
    if figure == "bars":
        return [variant_exhibit(scores, scored)]
    if figure == "lines":
        return [setting_exhibit(scores, _setting(scores), scored)]
    if figure not in FIGURES:
        raise InputError(f"There is no figure {figure!r}; choose one of: {', '.join(FIGURES)}.")
    timed = [metric for metric in metrics if metric.endswith("_seconds")] or ["condense_seconds"]
    # Where nothing finished there is nothing to draw, and the table says why.
    timed = [metric for metric in timed if _any_time(scores, metric)]
    if figure == "seconds":
        return [seconds_exhibit(scores, metric) for metric in timed]
    return [scaling_exhibit(scores, _setting(scores), metric) for metric in timed]


def _any_time(scores: pd.DataFrame, metric: str) -> bool:
    return bool((scores.loc[(scores["method"] != WHOLE) & (scores["status"] == "ok"), metric] > 0).any())


def _setting(scores: pd.DataFrame) -> str:
    """Return the setting that the variants vary, empty when they are values themselves."""
    variants = [str(variant) for variant in scores["variant"].fillna("") if variant]
    if not variants:
        raise InputError("The scores have no variant of a setting to draw; variants are written 'gamma=0.5'.")
    names = [variant.partition("=")[0] if "=" in variant else "" for variant in variants]
    return max(dict.fromkeys(names), key=names.count)


def _listed(values: pd.Series) -> str:
    return ", ".join(wording.shortened(value, 40) for value in dict.fromkeys(values))


def ratio_exhibit(scores: pd.DataFrame, metric: str) -> Exhibit:
    """Return a score against the ratio, a panel a table."""
    return Exhibit(
        f"{TITLES[metric]} against ratio",
        scores_by_ratio(scores, metric),
        f"{TITLES[metric]} of {_listed(scores['method'])} at each ratio, on {_listed(scores['table'])}.",
        "Dots are means over the runs, bars one standard deviation to either side; dots are moved apart a little. "
        "Dashed grey: the whole table. What did not finish is not drawn.",
    )


def setting_exhibit(scores: pd.DataFrame, setting: str, metrics: Sequence[str] = METRICS) -> Exhibit:
    """Return scores against a setting, a line a table."""
    return Exhibit(
        f"Scores against {setting or 'variant'}",
        scores_by_setting(scores, setting, metrics),
        f"Scores by {wording.shortened(setting or 'variant', 40)} on {_listed(scores['table'])}.",
        "Dots are means over the runs, bars one standard deviation to either side. Values are at equal distances.",
    )


def variant_exhibit(scores: pd.DataFrame, metrics: Sequence[str] = METRICS) -> Exhibit:
    """Return scores as bars, table by table."""
    return Exhibit(
        "Scores by variant",
        scores_by_variant(scores, metrics),
        f"Bars of the scores of each variant on {_listed(scores['table'])}.",
        "Bars are means over the runs, the thin line at their end is one standard deviation to either side.",
    )


def seconds_exhibit(scores: pd.DataFrame, metric: str = "condense_seconds") -> Exhibit:
    """Return how long each method took."""
    title = METRIC_NAMES.get(metric, metric)
    return Exhibit(
        title.capitalize(),
        seconds_by_table(scores, metric),
        f"{title.capitalize()} of {_listed(scores['method'])} on {_listed(scores['table'])}.",
        "Mean wall-clock time over the runs on a logarithmic axis. OOT: out of time, OOM: out of memory.",
    )


def scaling_exhibit(scores: pd.DataFrame, what: str, metric: str = "condense_seconds") -> Exhibit:
    """Return how the time grows with the table."""
    title = METRIC_NAMES.get(metric, metric)
    return Exhibit(
        f"{title.capitalize()} against {what}",
        seconds_by_size(scores, what, metric),
        f"{title.capitalize()} of {_listed(scores['method'])} by {wording.shortened(what, 40)}.",
        "Mean wall-clock time over the runs, both axes logarithmic. The key says the power of the size that the time "
        "grows with, by least squares through the logarithms.",
    )


def rank_exhibit(ranking: Ranking, metric: str) -> Exhibit:
    """Return the critical-difference diagram."""
    units = wording.counted(len(ranking.ranks), "unit", "units")
    order = ", ".join(f"{wording.shortened(name, 40)} {mean:.2f}" for name, mean in ranking.mean_ranks.items())
    star = f" {UNFINISHED}: ranked last where it did not finish." if ranking.unfinished else ""
    return Exhibit(
        f"Mean ranks, {METRIC_NAMES.get(metric, metric)}",
        rank_diagram(ranking),
        f"Mean ranks over {units}: {order}.",
        f"Mean rank over {units} (table, ratio and model), 1 is best. A thick bar joins methods whose mean ranks "
        f"differ by less than the critical difference of Nemenyi's test at {ranking.alpha:g}.{star}",
    )
