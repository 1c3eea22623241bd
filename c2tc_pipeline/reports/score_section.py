"""The sections that say how good a condensed table is, in all and class by class."""

from __future__ import annotations

import numpy as np
import pandas as pd

from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.class_styles import class_styles
from c2tc_pipeline.reports.markup import Column, Markup, class_name, element, table
from c2tc_pipeline.reports.score_means import class_means
from c2tc_pipeline.reports.subject import ReportSubject

TRAINING_SETS = ("condensed", "random", "whole")


def scores_section(means: pd.DataFrame, level: int = 2) -> Markup:
    """Return the scores of models trained on the condensed table and on its rivals; nothing when none were made.

    Parameters
    ----------
    means : DataFrame
        Averaged scores; the time to fit is shown when it is among them.
    level : int
        The level of the heading.
    """
    if means.empty:
        return Markup("")
    timed = "fit_seconds" in means.columns
    columns = [
        Column("model"),
        Column("trained on"),
        Column("rows", True),
        Column("accuracy, %", True),
        Column("macro-F1, %", True),
        *([Column("seconds to fit", True)] if timed else []),
    ]
    body = [
        (
            row["model"],
            row["training_set"],
            wording.count(row["rows"]),
            wording.percentage(row["accuracy"], row["accuracy_std"]),
            wording.percentage(row["macro_f1"], row["macro_f1_std"]),
            *([wording.seconds(row["fit_seconds"])] if timed else []),
        )
        for row in means.to_dict("records")
    ]
    trials = wording.counted(int(means["seeds"].iloc[0]), "seed", "seeds")
    return element(
        "section",
        element(f"h{level}", "Scores"),
        table(columns, body),
        element(
            "p",
            "Models trained on the condensed rows, on as many rows drawn at random, and on the whole table, tested on "
            "rows of the test split, which nothing else has seen. Mean and standard deviation over "
            f"{trials}; each seed draws another random sample.",
            css="faint",
        ),
    )


def class_scores_section(subject: ReportSubject, scores: pd.DataFrame, level: int = 2) -> Markup:
    """Return the F1 of each class by model and training set; nothing when there are no scores.

    Parameters
    ----------
    subject : ReportSubject
        The condensed table, whose classes are in the order of the scores.
    scores : DataFrame
        One row a trained model, with its ``class_f1``.
    level : int
        The level of the heading.
    """
    if scores.empty:
        return Markup("")
    found = class_means(scores)
    shown = [name for name in TRAINING_SETS if name in set(scores["training_set"])]
    columns = [Column("model"), Column(subject.label_name), *(Column(f"{name}, %", True) for name in shown)]
    styles = class_styles(subject.classes, subject.class_rows)
    body = [
        (
            model,
            class_name(style.colour, wording.shortened(style.label, 120)),
            *(_percentage(found.get((str(model), name)), place) for name in shown),
        )
        for model in scores["model"].unique()
        for place, style in enumerate(styles)
    ]
    return element(
        "section",
        element(f"h{level}", "F1 by class"),
        table(columns, body),
        element(
            "p",
            "The F1 of each class for models trained on the condensed rows, on random rows and on the whole table; "
            "mean and standard deviation over the seeds. A dash: no test row is of this class.",
            css="faint",
        ),
    )


def _percentage(found: tuple[np.ndarray, np.ndarray] | None, place: int) -> str:
    if found is None or np.isnan(found[0][place]):
        return wording.MISSING
    return wording.percentage(found[0][place], found[1][place])
