"""Row worth: how many random rows a condensed row replaces for a learner.

The worth of a training set of K rows is the number of random rows that give the same learner the same score, divided
by K. Random samples of several sizes give a curve of the score against the number of rows; the worth is read off that
curve, between its points in the logarithm of rows, never beyond its ends.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

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
