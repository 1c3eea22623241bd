"""The verdict on a condensed table: one sentence from measured scores, and warnings about weak references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from c2tc_pipeline.evaluation.row_worth import mean_scores, row_worth
from c2tc_pipeline.reports import wording

# How far, as a fraction, a model may score lower on the whole table than on a part of it.
_TOLERANCE = 0.005
NO_SCORES = "No model could be trained and tested on the condensed rows."
NOT_EVALUATED = (
    "How well models learn from these rows was not measured: c2tc condense with --split --evaluate does, and in Python "
    "evaluate(small, test, train)."
)


@dataclass(frozen=True)
class Headline:
    """Headline scores: those of the model that does best on the condensed rows.

    Accuracies are None where they were not measured. ``worth`` is a row of
    :func:`~c2tc_pipeline.evaluation.row_worth.row_worth` by AUC. Of the learners in ``as_good`` the condensed rows have
    no higher AUC than a random sample of the same size, of those in ``maybe_as_good`` that is within the interval.
    """

    learner: tuple[str, str]
    rows: int
    accuracy: float
    random: float | None = None
    whole: float | None = None
    whole_rows: int = 0
    worth: Mapping[Any, Any] | None = None
    as_good: tuple[str, ...] = ()
    maybe_as_good: tuple[str, ...] = ()

    @property
    def kept(self) -> float | None:
        """The accuracy as a share of that of the whole table."""
        return self.accuracy / self.whole if self.whole else None


def headline(means: pd.DataFrame, worth: pd.DataFrame) -> Headline | None:
    """Return the headline of averaged scores and row worths of one condensed table, None without scores.

    The model is the one that does best on the condensed rows, by AUC if all models have one, else by accuracy.
    """
    if means.empty:
        return None
    means = means[means["accuracy"].notna()]
    condensed = means[means["training_set"] == "condensed"]
    if condensed.empty:
        return None
    measure = "accuracy" if condensed["auc"].isna().any() else "auc"
    best = condensed.sort_values(measure, ascending=False, kind="stable").iloc[0]
    learner = (str(best["model"]), str(best["columns"]))
    own = means[(means["model"] == learner[0]) & (means["columns"] == learner[1])].set_index("training_set")
    by_auc = worth[worth["metric"] == "auc"].to_dict("records") if len(worth) else []
    worths = {(row["model"], row["columns"]): row for row in by_auc}
    not_above = {key: row["bound"] == "less" or row["worth"] <= 1 for key, row in worths.items()}
    return Headline(
        learner,
        int(best["rows"]),
        float(best["accuracy"]),
        float(own["accuracy"]["random"]) if "random" in own.index else None,
        float(own["accuracy"]["whole"]) if "whole" in own.index else None,
        int(own["rows"]["whole"]) if "whole" in own.index else 0,
        worths.get(learner),
        tuple(learner_name(key) for key in worths if not_above[key]),
        tuple(learner_name(key) for key, row in worths.items() if row["low"] <= 1 and not not_above[key]),
    )


def verdict(scores: pd.DataFrame) -> str:
    """Return the verdict sentence for the scores of one condensed table."""
    found = headline(mean_scores(scores), row_worth(scores))
    return NO_SCORES if found is None else sentence(found)


def sentence(found: Headline) -> str:
    """Return the sentence about headline scores."""
    rows, name = wording.counted(found.rows, "condensed row", "condensed rows"), learner_name(found.learner)
    here = f"{100 * found.accuracy:.1f} %"
    if found.whole is None or found.kept is None:
        return f"{name} trained on {rows} predicts {here} of test rows right."
    stand, them = ("stands", "it") if found.rows == 1 else ("stand", "them")
    kept = wording.share(round(found.kept, 3))
    text = (
        f"{rows} {stand} for {wording.count(found.whole_rows)}: {name} trained on {them} predicts {here} of test rows "
        f"right, {kept} of what it reaches on the whole table ({100 * found.whole:.1f} %)"
    )
    if found.random is not None:
        no_less = found.random >= found.accuracy
        text += f"; {'a random sample of the same size' if no_less else 'as many random rows'} "
        text += f"{'does as well with' if no_less else 'give'} {100 * found.random:.1f} %"
    if found.worth is not None:
        text += f"; one condensed row is worth {worth_text(found.worth)}"
    for names, does in ((found.as_good, "does as well"), (found.maybe_as_good, "may do as well")):
        if names:
            text += f". By AUC a random sample of the same size {does} for {' and for '.join(names)}"
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
    return side + _two_digits(row["worth"])


def worth_interval(row: Mapping[Any, Any]) -> str:
    """Return the interval of a row worth, ``2.1 to 4.8``; empty where it has none, as after a single draw."""
    return "" if row["low"] == row["high"] else f"{_two_digits(row['low'])} to {_two_digits(row['high'])}"


def _two_digits(value: float) -> str:
    return f"{value:.2g}" if value < 99.5 else f"{value:.0f}"


def weak_references(means: pd.DataFrame) -> list[str]:
    """Return a sentence for each model that scores lower on the whole table than on a part of it."""
    found = []
    for key, own in means.groupby(["model", "columns"], sort=False):
        accuracy = own.set_index("training_set")["accuracy"].dropna()
        if "whole" not in accuracy:
            continue
        part = str(accuracy.drop("whole").idxmax()) if len(accuracy) > 1 else "whole"
        if accuracy[part] > accuracy["whole"] + _TOLERANCE:
            shown = part.replace("_", " ")
            found.append(
                f"{learner_name(key)} has {100 * accuracy['whole']:.1f} % accuracy on the whole table and "
                f"{100 * accuracy[part]:.1f} % on the {shown} rows: its whole-table score is not a sound reference."
            )
    return found


def learner_name(key: Any) -> str:
    """Return the name of a model and its kind of columns; encoded columns are not named."""
    model, columns = key
    return str(model) if columns == "encoded" else f"{model} on {columns} columns"
