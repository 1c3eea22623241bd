"""Scores averaged over seeds, as the pages and pictures show them.

What belongs here: turning one row a trained model into one row a thing shown. Seconds and cache hits, if a frame of
scores has them, are left out: what is shown depends on the scores alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from c2tc_pipeline.evaluation.averages import mean_scores


def timeless_means(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the averages over seeds without seconds, which differ between runs over the same rows."""
    return mean_scores(scores).drop(columns="fit_seconds", errors="ignore")


def means_by_ratio(scores: Mapping[float, pd.DataFrame]) -> pd.DataFrame:
    """Return the averages of several ratios below each other, the smallest ratio first, with a column ``ratio``.

    Examples
    --------
    >>> one = pd.DataFrame({"training_set": ["whole"], "model": "mlp", "seed": 0, "rows": 9, "accuracy": 0.5,
    ...                     "macro_f1": 0.4})
    >>> means_by_ratio({0.01: one, 0.001: one})["ratio"].tolist()
    [0.001, 0.01]
    """
    found = [timeless_means(scores[ratio]).assign(ratio=ratio) for ratio in sorted(scores) if len(scores[ratio])]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def class_means(scores: pd.DataFrame) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    """Return mean and standard deviation of each class's F1, by model and training set.

    Examples
    --------
    >>> one = pd.DataFrame({"training_set": ["whole"], "model": "mlp", "class_f1": [[0.5, None]]})
    >>> class_means(one)
    {('mlp', 'whole'): (array([0.5, nan]), array([ 0., nan]))}
    """
    found = {}
    for (model, training_set), group in scores.groupby(["model", "training_set"], sort=False):
        # A class without test rows has no F1, whatever the seed.
        values = np.array([[np.nan if f1 is None else f1 for f1 in row] for row in group["class_f1"]], dtype=np.float64)
        found[str(model), str(training_set)] = (values.mean(axis=0), values.std(axis=0))
    return found
