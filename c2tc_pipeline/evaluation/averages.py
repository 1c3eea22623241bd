"""Frames of scores: averages over seeds, of one condensed table or of many, and storage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.evaluation.metrics import ALL_METRICS, CLASS_METRICS
from c2tc_pipeline.evaluation.row_worth import row_worth
from c2tc_pipeline.storage.manifest import TIMINGS_NAME
from c2tc_pipeline.storage.parquet import read_parquet, write_parquet

SCORES_NAME = "scores.parquet"
COMPARED_SETS = ("condensed", "random", "whole")
"""Training sets that reports compare."""
# Columns that differ between two evaluations of the same trials, in a file of their own, so that the others are equal.
_TIMINGS = ["fit_seconds", "cache_hit"]


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
