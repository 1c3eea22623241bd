"""Small stand-ins for a condensed table: the attributes a report reads, made up but plausible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.allocation.result import Allocation, TraceStep
from c2tc_pipeline.clustering.curve import ClassCurve
from c2tc_pipeline.common.errors import Notice


@dataclass(frozen=True)
class StandIn:
    """A condensed table as far as a report is concerned."""

    label_name: str
    classes: list[Any]
    class_rows: list[int]
    allocation: Allocation
    curves: list[ClassCurve] | None
    weight: pd.Series
    original: pd.DataFrame
    projection: pd.DataFrame
    notices: list[Notice]
    roles: pd.DataFrame
    summary: dict[str, Any]


def stand_in(
    classes: Sequence[Any] = ("early", "on_time", "late", "very_late", "cancelled"),
    class_rows: Sequence[int] = (154_000, 120_000, 38_000, 15_400, 9_376),
    counts: Sequence[int] = (110, 95, 66, 41, 25),
    features: Sequence[str] = ("carrier", "origin", "distance", "hour"),
    label_name: str = "arrival",
    table_name: str = "flights",
    notices: Sequence[Notice] = (),
    sampled: int = 300,
    seed: int = 0,
) -> StandIn:
    """Make up a condensed table with the given classes."""
    rng = np.random.default_rng(seed)
    index = np.repeat(np.arange(len(classes)), counts)
    labels = [classes[int(i)] for i in index]
    # Shares of a class's rows that fall off steeply, so that some condensed rows stand for one source row.
    weight = np.concatenate([split(rng, rows, k) for rows, k in zip(class_rows, counts, strict=True)])
    curves = [loss_curve(rows, 1 + 0.3 * i) for i, rows in enumerate(class_rows)]
    columns: dict[str, Any] = {
        name: rng.choice(["WN", "UA", "B6"], len(index)) if i % 2 == 0 else rng.gamma(2, 400, len(index))
        for i, name in enumerate(features)
    }
    columns[label_name] = labels
    roles = pd.DataFrame(
        {
            "column": list(features),
            "role": ["string" if i % 2 == 0 else "numeric" for i in range(len(features))],
            "encoding": ["similarity" if i % 2 == 0 else "quantile" for i in range(len(features))],
            "reason": "its values look like it",
            "distinct": 16,
            "missing": 1_204,
        }
    )
    objective = 512.4
    steps = []
    best = objective * 1.4
    for iteration in range(30):
        proposed = best * (1 + (iteration > 0) * 0.3 * (rng.random() - 0.45) / (1 + iteration / 6))
        accepted = iteration == 0 or proposed < best
        best = min(best, proposed)
        steps.append(TraceStep(iteration, proposed, best, accepted, 5, tuple(counts)))
    bound = best * 0.97
    allocation = Allocation("hfils", np.asarray(counts), best, 61, tuple(steps), bound, 0.25)
    summary = {
        "table": table_name,
        "rows_in": int(sum(class_rows)),
        "rows_out": int(sum(counts)),
        "ratio": 0.001,
        "seed": seed,
        "objective": best,
        "bound": bound,
        "gap": 0.03,
        "gamma": 0.25,
        "singletons": int((weight == 1).sum()),
        "seconds": {"read": 0.31, "encode": 12.34, "allocate": 4.2, "cluster": 1.9, "decode": 0.042},
        "versions": {"c2tc_pipeline": "0.1.0", "numpy": "2.4.0", "pandas": "3.1.0"},
        "settings": {"allocation": "hfils", "gamma": 0.25, "encoder": {"strings": "auto", "epochs": 10}},
    }
    return StandIn(
        label_name=label_name,
        classes=list(classes),
        class_rows=list(class_rows),
        allocation=allocation,
        curves=curves,
        weight=pd.Series(weight, name="weight"),
        original=pd.DataFrame(columns),
        projection=projected(rng, classes, class_rows, sampled, index, weight),
        notices=list(notices),
        roles=roles,
        summary=summary,
    )


def made_scores(
    counts: Sequence[int], *, models: Sequence[str] = ("mlp", "boosting"), seeds: int = 2, lift: float = 0.0
) -> pd.DataFrame:
    """Make up the scores of a condensed table with so many rows a class, as the pipeline keeps them.

    The first class has no test rows; condensed rows are better than random ones, the whole table is best.
    """
    trials = [
        {
            "training_set": kind,
            "model": model,
            "seed": seed,
            "rows": 10_000 if kind == "whole" else sum(counts),
            "accuracy": quality + 0.02 * seed,
            "macro_f1": quality - 0.1,
            "class_f1": [None, *(quality - 0.2 for _ in counts[1:])],
        }
        for kind, quality in (("condensed", 0.7 + lift), ("random", 0.6 + lift), ("whole", 0.9))
        for model in models
        for seed in range(seeds)
    ]
    return pd.DataFrame(trials)


def split(rng: np.random.Generator, rows: int, parts: int) -> np.ndarray:
    """Split rows into parts of at least one."""
    return 1 + rng.multinomial(rows - parts, rng.dirichlet(np.full(parts, 0.7)))


def loss_curve(rows: int, spread: float) -> ClassCurve:
    """Return a loss that falls like a power of the number of clusters."""
    grid = np.unique(np.geomspace(1, min(rows, 400), 8).astype(np.int64))
    return ClassCurve(rows, rows, grid, rows * spread * grid**-0.45, rows)


def projected(
    rng: np.random.Generator,
    classes: Sequence[Any],
    class_rows: Sequence[int],
    sampled: int,
    index: np.ndarray,
    weight: np.ndarray,
) -> pd.DataFrame:
    """Return source and condensed rows as clouds around one point a class."""
    middles = rng.normal(0, 0.5, (len(classes), 2))
    source = rng.choice(len(classes), sampled, p=np.asarray(class_rows) / sum(class_rows))
    frames = [
        pd.DataFrame(middles[which] + rng.normal(0, scale, (len(which), 2)), columns=["x", "y"]).assign(
            label=[classes[i] for i in which], kind=kind, weight=weights
        )
        for which, scale, kind, weights in (
            (source, 0.3, "source", np.ones(len(source), dtype=np.int64)),
            (index, 0.25, "condensed", weight),
        )
    ]
    return pd.concat(frames, ignore_index=True)


NASTY_CLASSES = ("<script>alert(1)</script>", "日本語 & \"quoted\" $x_1$ 'label' 🙂 --> " + "long " * 30)
NASTY_FEATURES = (
    "<img src=x onerror=alert(2)>",
    "a_very_long_column_name_" * 12,
    "größe \x00\x1b[31m \u202eevil",
    "_underscore & ampersand",
)


def nasty_stand_in() -> StandIn:
    """Make up a table whose every name tries to break the page."""
    return stand_in(
        classes=NASTY_CLASSES,
        class_rows=[9_999_000, 1_000],
        counts=[7, 3],
        features=NASTY_FEATURES,
        label_name='"><script>alert(3)</script>',
        table_name="</title><script>alert(4)</script>",
        notices=[
            Notice("constant_column", "holds one value only and was dropped <b>", column="<i>version</i>"),
            Notice("rare_class", "2 classes & \ud800 more"),
        ],
    )
