"""The verdict on a condensed table: one sentence from measured scores, and warnings about weak references."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.evaluation.averages import mean_scores
from c2tc_pipeline.evaluation.row_worth import row_worth
from c2tc_pipeline.reports import wording

# How far, as a fraction, a model may score lower on the whole table than on a part of it.
_TOLERANCE = 0.005


def verdict(scores: pd.DataFrame) -> str:
    """Return what the condensed rows are good for, in words for everybody, from the scores of one condensed table.

    The model is the one that does best on the condensed rows, by AUC.
    """
    found = {(row["model"], row["columns"], row["training_set"]): row for row in mean_scores(scores).to_dict("records")}
    condensed = {(model, columns): row for (model, columns, name), row in found.items() if name == "condensed"}
    best = max(condensed, key=lambda key: np.nan_to_num(condensed[key]["auc"], nan=condensed[key]["accuracy"]))
    rows, here = condensed[best]["rows"], condensed[best]["accuracy"]
    whole = found.get((*best, "whole"))
    if whole is None:
        reached = wording.share(here)
        return f"{_named(best)} trained on {wording.count(rows)} condensed rows predicts {reached} of test rows right."
    there = whole["accuracy"]
    text = (
        f"{wording.counted(rows, 'condensed row stands', 'condensed rows stand')} for {wording.count(whole['rows'])}: "
        f"{_named(best)} trained on them keeps {wording.share(round(here / there, 3))} of the accuracy that the whole "
        f"table gives ({100 * here:.1f} of {100 * there:.1f} %)"
    )
    worths = {(row["model"], row["columns"]): row for row in row_worth(scores, ["auc"]).to_dict("records")}
    if best in worths:
        text += f"; one of them is worth {worth_text(worths[best])}"
    as_good = [_named(key) for key, row in worths.items() if row["bound"] == "less" or row["low"] <= 1]
    if as_good:
        text += f". A random sample of the same size does as well for {' and for '.join(as_good)}"
    return text + "."


def worth_text(row: Mapping[Any, Any]) -> str:
    """Return a row worth in words: ``3.2 random rows``, ``more than 20 random rows``.

    Examples
    --------
    >>> worth_text({"worth": 20.0, "bound": "more"}), worth_text({"worth": 1.0, "bound": "less"})
    ('more than 20 random rows', 'less than 1 random row')
    """
    text = worth_number(row).replace("> ", "more than ").replace("< ", "less than ")
    return f"{text} random {'row' if text.split()[-1] == '1' else 'rows'}"


def worth_number(row: Mapping[Any, Any]) -> str:
    """Return a row worth as a number: ``3.2``, ``> 20``; a dash where it is not known."""
    if not isinstance(row["bound"], str):
        return wording.MISSING
    side = {"more": "> ", "less": "< "}.get(row["bound"], "")
    return side + (f"{row['worth']:.2g}" if row["worth"] < 100 else f"{row['worth']:.0f}")


def weak_references(means: pd.DataFrame) -> list[str]:
    """Return a sentence for each model that scores lower on the whole table than on a part of it."""
    found = []
    for (model, columns), own in means.groupby(["model", "columns"], sort=False):
        accuracy = own.set_index("training_set")["accuracy"]
        if "whole" not in accuracy:
            continue
        part = str(accuracy.drop("whole").idxmax())
        if accuracy[part] > accuracy["whole"] + _TOLERANCE:
            shown = part.replace("_", " ")
            found.append(
                f"{_named((model, columns))} has {100 * accuracy['whole']:.1f} % accuracy on the whole table and "
                f"{100 * accuracy[part]:.1f} % on the {shown} rows: its whole-table score is no sound reference."
            )
    return found


def _named(key: Any) -> str:
    model, columns = key
    return str(model) if columns == "encoded" else f"{model} on {columns} columns"
