"""Runs averaged over the models that judge them, as one more judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

MEAN_OF_MODELS = "mean of models"
_JUDGED = ["table", "ratio", "space", "method", "variant", "split", "seed"]


def with_mean_of_models(scores: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the scores with one more row a run, whose model is ``"mean of models"``.

    Parameters
    ----------
    scores : DataFrame
        One row a trained model.
    metrics : sequence of str
        Which scores; others are missing in the new rows.

    Returns
    -------
    DataFrame
        The scores, and below them the means. Every model counts once, however many of its kind were trained. A run that
        some model did not finish has that model's status and no mean; one that some model never saw is left out.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "t", "ratio": 0.1, "model": ["mlp", "mlp", "tabr"], "space": "hcfe",
    ...     "method": "ours", "variant": "", "split": 0, "seed": 0, "model_seed": [0, 1, 0], "status": "ok",
    ...     "accuracy": [0.7, 0.9, 0.6]})
    >>> with_mean_of_models(scores, ["accuracy"])[["model", "accuracy"]].round(3).values.tolist()[-1]
    ['mean of models', 0.7]
    """
    models = set(scores["model"])
    rows: list[dict[str, Any]] = []
    for key, run in scores.fillna({"variant": "", "space": ""}).groupby(_JUDGED, sort=False):
        if set(run["model"]) != models:
            continue
        ended = run.loc[run["status"] != "ok", "status"]
        means = {metric: run.groupby("model")[metric].mean() for metric in metrics}
        row = dict(zip(_JUDGED, key, strict=True)) | {"model": MEAN_OF_MODELS, "model_seed": 0}
        row["status"] = "ok" if ended.empty else ended.iloc[0]
        # A mean without its hardest model would flatter.
        row |= {metric: float(mean.mean(skipna=False)) if ended.empty else np.nan for metric, mean in means.items()}
        rows.append(row)
    return pd.concat([scores, pd.DataFrame(rows)], ignore_index=True) if rows else scores
