"""Row worth: how many random rows a condensed row replaces for a learner.

The worth of a training set of K rows is the number of random rows that give the same learner the same score, divided
by K. Random samples of several sizes give a curve of the score against the number of rows; the worth is read off that
curve, between its points in the logarithm of rows, never beyond its ends.

Also here: frames of scores, averaged over seeds, of one condensed table or of many, and their storage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.evaluation.metrics import ALL_METRICS, CLASS_METRICS
from c2tc_pipeline.storage.manifest import TIMINGS_NAME
from c2tc_pipeline.storage.parquet import read_parquet, write_parquet

SCORES_NAME = "scores.parquet"
COMPARED_SETS = ("condensed", "random", "whole")
"""Training sets that reports compare."""
# Columns that differ between two evaluations of the same trials, in a file of their own, so that the others are equal.
_TIMINGS = ["fit_seconds", "cache_hit"]
MULTIPLES = (1.0, 5.0, 20.0)
"""Sizes of the random samples in multiples of the condensed rows: a short curve, for every evaluation."""
WORTH_METRICS = ("auc", "accuracy", "macro_f1")
"""Scores that the worth is measured by. The first is the headline: it does not depend on the class mix."""

_RESAMPLES = 400
_INTERVAL = (0.05, 0.95)


def random_set(multiple: float) -> str:
    """Return the name of the random sample of a multiple of the condensed rows: ``random``, ``random_x5``."""
    return "random" if multiple == 1 else f"random_x{multiple:g}"


def multiple_of(training_set: str) -> float | None:
    """Return the multiple of a training set that :func:`random_set` named, None for any other.

    Examples
    --------
    >>> [multiple_of(name) for name in ("random", "random_x0.5", "random_same_classes", "whole")]
    [1.0, 0.5, None, None]
    """
    if training_set == "random":
        return 1.0
    head, _, tail = training_set.partition("_x")
    return float(tail) if head == "random" and tail else None


def row_worth(scores: pd.DataFrame, metrics: Sequence[str] = WORTH_METRICS) -> pd.DataFrame:
    """Return the worth of a condensed row by model and metric, with an interval over draws and seeds.

    Parameters
    ----------
    scores : DataFrame
        What :func:`~c2tc_pipeline.evaluation.scores.evaluate` returned, of one condensed table. Samples of several
        sizes have the names of :func:`random_set`; the whole table is the end of the curve when it lies within the
        largest multiple.
    metrics : sequence of str
        Scores to measure by, all of them better when higher.

    Returns
    -------
    DataFrame
        One row per model, kind of columns and metric: ``worth``, ``low``, ``high`` (a 90 % interval over resampled
        draws and seeds), ``bound`` (``"more"`` when the score is above the curve, so that ``worth`` is the largest
        multiple; ``"less"`` when it is below; else empty). Rows with an undefined score or without a curve are left
        out.

    See Also
    --------
    evaluate : The scores, with random samples of several sizes.

    Examples
    --------
    >>> scores = pd.DataFrame(
    ...     [("condensed", 10, 0.8), ("random", 10, 0.6), ("random_x5", 50, 0.8), ("random_x20", 200, 0.9)],
    ...     columns=["training_set", "rows", "auc"],
    ... ).assign(model="boosting", columns="encoded", seed=0)
    >>> row_worth(scores, metrics=["auc"])["worth"].round(3).tolist()
    [5.0]
    """
    found = []
    for (model, columns), own in scores.groupby(["model", "columns"], sort=False):
        condensed = own[own["training_set"] == "condensed"]
        if condensed.empty:
            continue
        budget = int(condensed["rows"].iloc[0])
        times = own["training_set"].map(multiple_of).astype(float)
        sampled = own[times.notna()]
        whole = own[(own["training_set"] == "whole") & (own["rows"] <= budget * times.max())]
        points = pd.concat([sampled, whole])
        for metric in metrics:
            by_rows = {int(str(rows)): values.dropna().to_numpy() for rows, values in points.groupby("rows")[metric]}
            multiples, draws = np.array(list(by_rows)) / budget, list(by_rows.values())
            reached = condensed[metric].dropna().to_numpy(dtype=np.float64)
            if len(draws) < 2 or not len(reached) or not all(len(values) for values in draws):
                continue
            worth, bound = read_curve(multiples, [float(np.mean(v)) for v in draws], float(np.mean(reached)))
            low, high = _interval(multiples, draws, reached)
            found.append(
                {
                    "model": model,
                    "columns": columns,
                    "metric": metric,
                    "worth": worth,
                    "low": low,
                    "high": high,
                    "bound": bound,
                }
            )
    names = ["model", "columns", "metric", "worth", "low", "high", "bound"]
    return pd.DataFrame(found, columns=names)


def read_curve(multiples: np.ndarray, means: Sequence[float], score: float) -> tuple[float, str]:
    """Return the smallest multiple at which a curve reaches a score, and on which side of the curve it lies.

    The curve is the highest mean so far, linear in the logarithm of the multiple between its points.
    """
    curve = np.maximum.accumulate(np.asarray(means, dtype=np.float64))
    if score > curve[-1]:
        return float(multiples[-1]), "more"
    if score < curve[0]:
        return float(multiples[0]), "less"
    place = int(np.argmax(curve >= score))
    if place == 0:
        return float(multiples[0]), ""
    share = (score - curve[place - 1]) / (curve[place] - curve[place - 1])
    logs = np.log(multiples[place - 1 : place + 1])
    return float(np.exp(logs[0] + share * (logs[1] - logs[0]))), ""


def _interval(multiples: np.ndarray, draws: Sequence[np.ndarray], reached: np.ndarray) -> tuple[float, float]:
    """Return the percentiles of the worth over resampled draws of every point and resampled seeds."""
    rng = np.random.default_rng(0)
    worths = [
        read_curve(multiples, [rng.choice(v, len(v)).mean() for v in draws], rng.choice(reached, len(reached)).mean())
        for _ in range(_RESAMPLES if max(map(len, [*draws, reached])) > 1 else 1)
    ]
    low, high = np.quantile([worth for worth, _ in worths], _INTERVAL)
    return float(low), float(high)


def mean_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Average over seeds: one row per model, kind of columns and training set, in the order of their appearance.

    The columns are ``training_set``, ``model``, ``columns``, ``rows``, ``seeds``, each metric and its standard
    deviation over the seeds at hand (``accuracy_std``; 0 for one seed), and ``fit_seconds`` where they are known.
    """
    groups = scores.groupby(["model", "columns", "training_set"], sort=False)
    means = groups.agg(rows=("rows", "first"), seeds=("seed", "size"))
    for metric in ALL_METRICS:
        means[metric] = groups[metric].mean()
        means[f"{metric}_std"] = groups[metric].std(ddof=0)
    if "fit_seconds" in scores:
        means["fit_seconds"] = groups["fit_seconds"].mean()
    orders = {name: scores[name].unique().tolist() for name in ("model", "columns")}
    means = means.reset_index().sort_values(
        list(orders), key=lambda names: names.map(orders[str(names.name)].index), kind="stable", ignore_index=True
    )
    return means[["training_set", "model", "columns", *means.columns[3:]]]


def class_means(scores: pd.DataFrame) -> pd.DataFrame:
    """Average the metrics of each class over seeds, for models trained on condensed, random and all rows.

    One row per model, kind of columns, training set and ``class`` (its place in the order of the classes), with
    ``precision``, ``recall``, ``f1`` and ``auc``; NaN for a class without test rows.
    """
    parts = []
    kept = scores[scores["training_set"].isin(COMPARED_SETS)]
    for (model, columns, kind), own in kept.groupby(["model", "columns", "training_set"], sort=False):
        means = {
            name.removeprefix("class_"): np.mean([np.array(list(row), dtype=np.float64) for row in own[name]], axis=0)
            for name in CLASS_METRICS
        }
        place: dict[str, Any] = {"model": model, "columns": columns, "training_set": kind}
        parts.append(pd.DataFrame(means).rename_axis("class").reset_index().assign(**place))
    names = ["model", "columns", "training_set", "class", "precision", "recall", "f1", "auc"]
    return pd.concat(parts, ignore_index=True)[names] if parts else pd.DataFrame(columns=names)


def gather_scores(cells: Mapping[tuple[str, float], pd.DataFrame]) -> pd.DataFrame:
    """Concatenate the scores of many tables and ratios, averaged over seeds.

    ``cells`` are frames of scores by table and ratio. The columns are ``table``, ``ratio``, ``rows_in``, ``rows_out``,
    those of :func:`mean_scores` without seconds, and the worth of a condensed row by AUC (``worth``, ``bound``; NaN and
    None where it is not known), ordered by table and ratio.
    """
    parts = []
    for (table, ratio), scores in sorted(cells.items()):
        means = mean_scores(scores).drop(columns="fit_seconds", errors="ignore")
        rows = means.set_index("training_set")["rows"]
        rows_in, rows_out = (int(rows[kind].max()) for kind in ("whole", "condensed"))
        named = pd.DataFrame({"table": table, "ratio": ratio, "rows_in": rows_in, "rows_out": rows_out}, means.index)
        worth = row_worth(scores, ["auc"])[["model", "columns", "worth", "bound"]]
        parts.append(pd.concat([named, means.merge(worth, how="left", on=["model", "columns"])], axis=1))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def write_scores(scores: pd.DataFrame, directory: Path) -> None:
    """Write what :func:`~c2tc_pipeline.evaluation.scores.evaluate` returned into an existing directory."""
    write_parquet(scores.drop(columns=_TIMINGS), directory / SCORES_NAME)
    text = json.dumps(scores[_TIMINGS].to_dict(orient="list"), indent=1)
    (directory / TIMINGS_NAME).write_text(text + "\n", encoding="utf-8")


def read_scores(directory: Path) -> pd.DataFrame:
    """Read what :func:`write_scores` wrote."""
    scores = read_parquet(directory / SCORES_NAME)
    timings = json.loads((directory / TIMINGS_NAME).read_text(encoding="utf-8"))
    return scores.assign(**timings)
