"""Generated condensed tables and scores with the attributes that a report reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.allocation.problem import Allocation, TraceStep
from c2tc_pipeline.clustering.loss_curves import LossCurve
from c2tc_pipeline.common.errors import Notice
from c2tc_pipeline.condensation.spread import CategoryShares
from c2tc_pipeline.encoding.numeric import NumericPart
from c2tc_pipeline.evaluation.metrics import CLASS_METRICS


@dataclass(frozen=True)
class StandIn:
    """A condensed table as far as a report is concerned."""

    label_name: str
    classes: list[Any]
    class_rows: list[int]
    allocation: Allocation
    curves: list[LossCurve] | None
    weight: pd.Series
    original_rows: pd.DataFrame
    projection: pd.DataFrame
    notices: list[Notice]
    roles: pd.DataFrame
    summary: dict[str, Any]
    X: pd.DataFrame
    spread: Any
    encoder: Any

    def expand(self, *, class_mix: str) -> tuple[pd.DataFrame, pd.Series[Any], pd.Series[Any]]:
        """Return the condensed rows themselves."""
        label = self.original_rows[self.label_name]
        return self.original_rows.drop(columns=self.label_name), label, self.weight.astype(float)


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
) -> Any:
    """Generate a condensed table with the given classes; every second feature is numeric."""
    rng = np.random.default_rng(seed)
    index = np.repeat(np.arange(len(classes)), counts)
    # Shares of a class's rows that fall off steeply, so that some condensed rows stand for one source row.
    parts = [
        1 + rng.multinomial(n - k, rng.dirichlet(np.full(k, 0.7))) for n, k in zip(class_rows, counts, strict=True)
    ]
    weight = np.concatenate(parts)
    columns: dict[str, Any] = {
        name: rng.gamma(2, 400, len(index)) if i % 2 else rng.choice(["WN", "UA", "B6"], len(index))
        for i, name in enumerate(features)
    }
    roles = pd.DataFrame({"column": list(features)}).assign(
        role=["numeric" if i % 2 else "string" for i in range(len(features))],
        kind=["real" if i % 2 else "text" for i in range(len(features))],
        encoding="quantile",
        reason="its values look like it",
        distinct=16,
        missing=1_204,
    )
    steps: list[TraceStep] = []
    best = 717.4
    for iteration in range(30):
        proposed = best * (1 + (iteration > 0) * 0.3 * (rng.random() - 0.45) / (1 + iteration / 6))
        steps.append(
            TraceStep(iteration, proposed, min(best, proposed), not steps or proposed < best, 5, tuple(counts))
        )
        best = min(best, proposed)
    summary = {
        "table": table_name,
        "rows_in": int(sum(class_rows)),
        "rows_out": int(sum(counts)),
        "ratio": 0.001,
        "seed": seed,
        "objective": best,
        "bound": best * 0.97,
        "gap": 0.03,
        "seconds": {"read": 0.31, "encode": 12.34, "allocate": 4.2, "cluster": 1.9, "decode": 0.042},
        "versions": {"c2tc_pipeline": "0.1.0", "numpy": "2.4.0", "pandas": "3.1.0"},
        "settings": {"allocation": "hfils", "gamma": 0.25, "encoder": {"strings": "auto", "epochs": 10}},
    }
    source = rng.choice(len(classes), sampled, p=np.asarray(class_rows) / sum(class_rows))
    both = np.concatenate([source, index])
    numbers = list(features)[1::2]
    part = NumericPart(
        numbers, [np.linspace(0, 4_000, 9)] * len(numbers), [np.linspace(0, 1, 9)] * len(numbers), [], []
    )
    starts = np.append(np.zeros(len(index) + 1, dtype=np.int64), 3)
    shares = CategoryShares(starts, pd.Series(["WN", "UA", "B6"]), np.array([0.5, 0.3, 0.2]))
    projection = pd.DataFrame(rng.normal(0, 0.5, (len(classes), 2))[both], columns=["x", "y"])
    return StandIn(
        label_name=label_name,
        classes=list(classes),
        class_rows=list(class_rows),
        allocation=Allocation("hfils", np.asarray(counts), best, 61, tuple(steps), best * 0.97, 0.25),
        curves=[loss_curve(rows, 1 + 0.3 * i) for i, rows in enumerate(class_rows)],
        weight=pd.Series(weight, name="weight"),
        original_rows=pd.DataFrame({**columns, label_name: [classes[i] for i in index.tolist()]}),
        projection=(projection + rng.normal(0, 0.3, projection.shape)).assign(
            label=[classes[i] for i in both.tolist()],
            kind=np.repeat(["source", "condensed"], [sampled, len(index)]),
            weight=np.concatenate([np.ones(sampled, dtype=np.int64), weight]),
        ),
        notices=list(notices),
        roles=roles,
        summary=summary,
        X=pd.DataFrame(rng.random((len(index), len(numbers))), columns=numbers),
        spread=SimpleNamespace(
            shares=dict.fromkeys(list(features)[::2], shares),
            means=None,
            deviation=np.zeros((len(index), len(numbers))),
        ),
        encoder=SimpleNamespace(parts_=[part], get_params=lambda: {"numeric": "quantile"}, missing_marks=lambda: []),
    )


def loss_curve(rows: int, spread: float) -> LossCurve:
    """Return a loss that falls like a power of the number of clusters."""
    grid = np.unique(np.geomspace(1, min(rows, 400), 8).astype(np.int64))
    return LossCurve(rows, rows, grid, rows * spread * grid**-0.45, rows)


def many_classes() -> Any:
    """Generate a table of two hundred classes of very different sizes."""
    rows = [max(3, 1_000_000 // (i + 1) ** 2) for i in range(200)]
    return stand_in(classes=list(range(200)), class_rows=rows, counts=[min(n, 3) for n in rows])


def made_scores(
    counts: Sequence[int], *, models: Sequence[str] = ("mlp", "boosting"), seeds: int = 2, lift: float = 0.0
) -> pd.DataFrame:
    """Generate scores as the pipeline keeps them; the first class has no test rows, the whole table is best."""
    return pd.DataFrame(
        [
            {
                "training_set": kind,
                "model": model,
                "columns": "encoded",
                "seed": seed,
                "rows": 10_000 if kind == "whole" else sum(counts) * (5 if kind == "random_x5" else 1),
                "accuracy": quality + 0.02 * seed,
                "macro_f1": quality - 0.1,
                "auc": quality + 0.05,
                "log_loss": 1 - quality,
                "brier": (1 - quality) / 2,
                **{
                    name: [None, *(quality - less for _ in counts[1:])]
                    for name, less in zip(CLASS_METRICS, (0.3, 0.1, 0.2, 0.0), strict=True)
                },
            }
            for kind, quality in (
                ("condensed", 0.7 + lift),
                ("random", 0.6 + lift),
                ("random_same_classes", 0.6 + lift),
                ("random_x5", 0.75 + lift),
                ("whole", 0.9),
            )
            for model in models
            for seed in range(seeds)
        ]
    )


NASTY_CLASSES = ("<script>alert(1)</script>", "日本語 & \"quoted\" $x_1$ 'label' 🙂 --> " + "long " * 30)
NASTY_FEATURES = (
    "<img src=x onerror=alert(2)>",
    "a_very_long_column_name_" * 12,
    "größe \x00\x1b[31m \u202eevil",
    "_underscore & ampersand",
)


def nasty_stand_in() -> Any:
    """Generate a table whose every name tries to break the page."""
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
