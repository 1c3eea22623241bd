"""Worth of the condensed rows of every contender, by table, ratio, model and kind of columns; means over tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from c2tc_pipeline.bench.statistics.runs import WHOLE, is_sample, named_contenders
from c2tc_pipeline.evaluation.metrics import ALL_METRICS
from c2tc_pipeline.evaluation.row_worth import WORTH_METRICS, mean_scores, row_worth
from c2tc_pipeline.reports.verdict import weak_references

LEARNER = ["model", "space"]
_CONDENSED = "condensed"


def training_sets(scores: pd.DataFrame) -> Iterator[tuple[tuple[str, float, str], pd.DataFrame]]:
    """Yield table, ratio and contender with its scores beside those of random samples and of the whole table.

    The frames have the columns of :func:`~c2tc_pipeline.evaluation.scores.evaluate`; the contender is "condensed".
    """
    named = named_contenders(scores, ALL_METRICS)
    named = named[named["status"] == "ok"].rename(columns={"space": "columns"})
    whole = named[named["contender"] == WHOLE]
    for (table, ratio), own in named[named["contender"] != WHOLE].groupby(["table", "ratio"], sort=False):
        references = pd.concat([own[own["contender"].map(_is_random)], whole[whole["table"] == table]])
        for contender, rows in own[~own["contender"].map(_is_random)].groupby("contender", sort=False):
            frame = pd.concat([rows.assign(contender=_CONDENSED), references], ignore_index=True)
            yield (str(table), float(str(ratio)), str(contender)), frame.rename(columns={"contender": "training_set"})


def _is_random(contender: str) -> bool:
    return contender == "random" or is_sample(contender)


def worths(scores: pd.DataFrame, metrics: Sequence[str] = WORTH_METRICS) -> pd.DataFrame:
    """Return what a condensed row is worth, one row per table, ratio, contender, model, space and metric.

    Columns beside these: those of :func:`~c2tc_pipeline.evaluation.row_worth.row_worth` and ``share``, the score as a
    share of the whole table's.
    """
    parts = []
    for (table, ratio, contender), frame in training_sets(scores):
        found = row_worth(frame, metrics).assign(table=table, ratio=ratio, contender=contender)
        means = mean_scores(frame).set_index(["training_set", "model", "columns"])
        found["share"] = [
            means[metric].get((_CONDENSED, model, columns), np.nan) / means[metric].get((WHOLE, model, columns), np.nan)
            for model, columns, metric in zip(found["model"], found["columns"], found["metric"], strict=True)
        ]
        parts.append(found.rename(columns={"columns": "space"}))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def mean_worths(found: pd.DataFrame) -> pd.DataFrame:
    """Return geometric means over tables of what :func:`worths` found, and the mean share of the whole table's score.

    A worth beyond its curve counts as the end of the curve: ``bound`` is "more" or "less" where that makes the mean a
    bound, and "both" where some tables are beyond each end. ``tables`` are averaged over.
    """

    def bound(sides: pd.Series[str]) -> str:
        beyond = sorted(set(sides) - {""})
        return beyond[0] if len(beyond) == 1 else "both" if beyond else ""

    groups = found.assign(log=np.log(found["worth"])).groupby(
        ["ratio", "contender", *LEARNER, "metric"], sort=False, as_index=False
    )
    means = groups.agg(
        log=("log", "mean"), share=("share", "mean"), bound=("bound", bound), tables=("table", "nunique")
    )
    return means.assign(worth=np.exp(means.pop("log")))


def weak_wholes(scores: pd.DataFrame) -> list[str]:
    """Return a sentence for each table and model whose score on the whole table is below one on a part of it."""
    notices: dict[str, None] = {}
    for (table, _, contender), frame in training_sets(scores) if (scores["method"] == WHOLE).any() else ():
        means = mean_scores(frame).replace({"training_set": {_CONDENSED: contender}})
        notices.update(dict.fromkeys(f"{table}: {sentence}" for sentence in weak_references(means)))
    return list(notices)
