"""Scores averaged over seeds, of one condensed table or of many.

What belongs here: arithmetic on frames of scores, without any of the machinery that makes them.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

METRICS = ("accuracy", "macro_f1")


def mean_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Average over seeds: one row a model and training set, model by model in the order in which they appear.

    Parameters
    ----------
    scores : DataFrame
        What :func:`~c2tc_pipeline.evaluation.scores.evaluate_condensed` returned, with or without its timings.

    Returns
    -------
    DataFrame
        ``training_set``, ``model``, ``rows``, ``seeds``, each metric and its standard deviation (``accuracy_std``),
        and ``fit_seconds`` where they are known. A standard deviation is over the seeds at hand (divided by their
        number), 0 for one seed.

    Examples
    --------
    >>> two = pd.DataFrame({"training_set": "whole", "model": "mlp", "seed": [0, 1], "rows": 9, "accuracy": [0.5, 0.7],
    ...                     "macro_f1": [0.4, 0.4], "fit_seconds": [1.0, 2.0]})
    >>> mean_scores(two).round(3).values.tolist()
    [['whole', 'mlp', 9, 2, 0.6, 0.1, 0.4, 0.0, 1.5]]
    """
    groups = scores.groupby(["model", "training_set"], sort=False)
    means = groups.agg(rows=("rows", "first"), seeds=("seed", "size"))
    for metric in METRICS:
        means[metric] = groups[metric].mean()
        means[f"{metric}_std"] = groups[metric].std(ddof=0)
    if "fit_seconds" in scores:
        means["fit_seconds"] = groups["fit_seconds"].mean()
    order = {name: place for place, name in enumerate(scores["model"].unique())}
    means = means.reset_index().sort_values(
        "model", key=lambda names: names.map(order), kind="stable", ignore_index=True
    )
    return means[["training_set", "model", *means.columns[2:]]]


def gather_scores(cells: Mapping[tuple[str, float], pd.DataFrame]) -> pd.DataFrame:
    """Put the scores of many tables and ratios below each other, averaged over seeds.

    Parameters
    ----------
    cells : mapping of (table, ratio) to DataFrame
        What :func:`evaluate_condensed` returned for each.

    Returns
    -------
    DataFrame
        ``table``, ``ratio``, ``rows_in``, ``rows_out`` and the columns of :func:`mean_scores` without seconds, ordered
        by table and ratio.

    Examples
    --------
    >>> one = pd.DataFrame({"training_set": ["condensed", "whole"], "model": "mlp", "seed": 0, "rows": [9, 900],
    ...                     "accuracy": 0.5, "macro_f1": 0.4, "fit_seconds": 1.0})
    >>> gather_scores({("adult", 0.01): one})[["table", "ratio", "rows_in", "rows_out"]].values.tolist()[0]
    ['adult', 0.01, 900, 9]
    """
    parts = []
    for (table, ratio), scores in sorted(cells.items()):
        means = mean_scores(scores).drop(columns="fit_seconds", errors="ignore")
        rows = means.set_index("training_set")["rows"]
        rows_in, rows_out = (int(rows[kind].max()) for kind in ("whole", "condensed"))
        named = pd.DataFrame({"table": table, "ratio": ratio, "rows_in": rows_in, "rows_out": rows_out}, means.index)
        parts.append(pd.concat([named, means], axis=1))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
