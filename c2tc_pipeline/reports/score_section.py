"""The section of the report that says how good the condensed table is."""

from __future__ import annotations

from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.markup import Column, Markup, element, table
from c2tc_pipeline.reports.subject import ReportSubject


def scores_section(subject: ReportSubject) -> Markup:
    """Return the scores of models trained on the condensed table and on its rivals; nothing when none were made."""
    scores = subject.summary.get("scores")
    if not scores:
        return Markup("")
    columns = [
        Column("model"),
        Column("trained on"),
        Column("rows", True),
        Column("accuracy, %", True),
        Column("macro-F1, %", True),
        Column("seconds to fit", True),
    ]
    body = [
        (
            row["model"],
            row["training_set"],
            wording.count(row["rows"]),
            wording.percentage(row["accuracy"], row["accuracy_std"]),
            wording.percentage(row["macro_f1"], row["macro_f1_std"]),
            wording.seconds(row["fit_seconds"]),
        )
        for row in scores
    ]
    trials = wording.counted(scores[0]["seeds"], "seed", "seeds")
    return element(
        "section",
        element("h2", "Scores"),
        table(columns, body),
        element(
            "p",
            "Models trained on the condensed rows, on as many rows drawn at random, and on the whole table, tested on "
            "rows of the test split, which nothing else has seen. Mean and standard deviation over "
            f"{trials}; each seed draws another random sample.",
            css="faint",
        ),
    )
