"""Figures with title, alternative text and caption, alone or side by side, for pages and metadata of the pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from c2tc_pipeline.allocation.problem import Allocation
from c2tc_pipeline.clustering.loss_curves import LossCurve
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.evaluation.row_worth import mean_scores
from c2tc_pipeline.reports import figures, wording
from c2tc_pipeline.reports.distributions import column_distributions
from c2tc_pipeline.reports.markdown import escape_punctuation, markdown_escaped
from c2tc_pipeline.reports.picture import Picture, class_styles
from c2tc_pipeline.reports.verdict import learner_name

TITLES = {"accuracy": "Accuracy", "macro_f1": "Macro-F1", "auc": "AUC"}
CLASS_TITLES = {"recall": "Recall", "precision": "Precision", "f1": "F1", "auc": "AUC"}
_MEANING = {
    "accuracy": "Accuracy",
    "macro_f1": "Macro-F1",
    "auc": "AUC, which says how well each class is separated from the others,",
}
METADATA_SVG_BYTES = 45_000
"""Metadata embeds larger pictures as PNG: it is stored in the event log, again for each materialisation."""


@dataclass(frozen=True)
class Exhibit:
    """A picture with title, alternative text and caption."""

    title: str
    picture: Picture
    alternative: str
    caption: str

    def markdown(self) -> str:
        """Return picture and caption as Markdown of at most some 60 kB."""
        image = f"![{escape_punctuation(self.alternative)}]({self.picture.data_uri(METADATA_SVG_BYTES)})"
        return f"{image}\n\n{markdown_escaped(self.caption)}" if self.caption else image


@dataclass(frozen=True)
class Panels:
    """Exhibits that stand side by side under one title, with one caption."""

    title: str
    exhibits: Sequence[Exhibit]
    caption: str

    @classmethod
    def of(cls, title: str, exhibits: Sequence[Exhibit]) -> Panels:
        """Put exhibits side by side, with their captions below."""
        return cls(title, exhibits, " ".join(exhibit.caption for exhibit in exhibits))

    def markdown(self) -> str:
        """Return the pictures and the caption as Markdown."""
        pictures = " ".join(replace(exhibit, caption="").markdown() for exhibit in self.exhibits)
        return f"{pictures}\n\n{markdown_escaped(self.caption)}"


def shares_exhibit(classes: Sequence[Any], class_rows: Sequence[int], counts: Sequence[int]) -> Exhibit:
    """Show each class's share before and after."""
    styles = class_styles(classes, class_rows)
    changes = ", ".join(
        f"{style.short} from {wording.share(before / sum(class_rows))} to {wording.share(after / sum(counts))}"
        for style, before, after in zip(styles[:5], class_rows, counts, strict=False)
    )
    return Exhibit(
        "Class shares",
        figures.class_shares(styles, class_rows, counts),
        f"Bars of the share of each class before and after: {changes}.",
        "Each class's share of the source rows (pale) and of the condensed rows (full colour); where shares differ "
        "widely the axis is logarithmic.",
    )


def projection_exhibit(classes: Sequence[Any], class_rows: Sequence[int], points: pd.DataFrame) -> Exhibit:
    """Show source and condensed rows in two dimensions; ``points`` is the projection of a condensed table."""
    condensed = int((points["kind"] == "condensed").sum())
    return Exhibit(
        "The table in two dimensions",
        figures.projection(class_styles(classes, class_rows), points),
        f"Scatter plot of {wording.counted(condensed, 'condensed row', 'condensed rows')} "
        "among a sample of the source rows.",
        "On the first two principal components of the encoded rows, specks are a sample of the source rows, discs are "
        "condensed rows, larger the more source rows they stand for.",
    )


def curves_exhibit(
    classes: Sequence[Any], class_rows: Sequence[int], curves: Sequence[LossCurve], allocation: Allocation
) -> Exhibit:
    """Show the loss curves with the chosen allocation."""
    counts = [int(count) for count in allocation.counts]
    return Exhibit(
        "Loss curves",
        figures.loss_curves(class_styles(classes, class_rows), curves, counts, allocation.gamma),
        "Curves of each class's term in the objective, falling with its number of condensed rows.",
        "What each class adds to the objective, by the number of condensed rows it gets. The large dot is the number "
        "it got. A class with a loss of zero there has no dot.",
    )


def trace_exhibit(allocation: Allocation) -> Exhibit:
    """Show the search for the allocation, which must have a trace."""
    first, last = allocation.trace[0].best, allocation.trace[-1].best
    runs = wording.counted(allocation.evaluations, "k-means run", "k-means runs")
    return Exhibit(
        "Search for the allocation",
        figures.allocation_trace(allocation),
        f"The best objective falls from {wording.number(first)} to {wording.number(last)} "
        f"in {wording.counted(len(allocation.trace) - 1, 'iteration', 'iterations')}.",
        f"Each iteration of {allocation.method} proposes another allocation of the condensed rows and keeps it when "
        f"the objective falls. The search cost {runs}.",
    )


def importance_exhibit(weights: Mapping[str, Any]) -> Exhibit:
    """Show the importance of source columns for the label, given the summary of the column weights."""
    importance, power = weights["importance"], weights["power"]
    first = max(importance, key=importance.__getitem__)
    factor = "its importance" if power == 1 else f"the power {power:g} of its importance"
    use = f"Each column is multiplied by {factor} before distances are measured, which did best on rows kept aside."
    if not power:
        use = "All columns count alike in distances: weighting them by importance did no better on rows kept aside."
    return Exhibit(
        "Importance of columns",
        figures.column_importance(importance),
        f"Bars of the importance of columns for the label, the largest being {first}.",
        "How much extremely randomised trees, fitted to a sample, use each source column to predict the label, "
        "relative to the most important one; of a source column with several encoded columns, the mean over these. "
        f"{use}",
    )


def overview_panels(table: CondensedTable) -> Panels:
    """Show the classes before and after, the importance of columns if it is known, and the rows in two dimensions."""
    counts = [int(count) for count in table.allocation.counts]
    weights = table.summary.get("column_weights")
    return Panels.of(
        "Classes, columns and rows",
        [
            shares_exhibit(table.classes, table.class_rows, counts),
            *([importance_exhibit(weights)] if weights and weights["power"] is not None else []),
            projection_exhibit(table.classes, table.class_rows, table.projection),
        ],
    )


def column_panels(table: CondensedTable) -> Panels:
    """Show the distributions of the most important columns in the source and in drawn rows."""
    exhibits = [
        Exhibit(
            each.column,
            figures.distribution(each),
            f"Distribution of {wording.shortened(each.column, 60)} in the source and in drawn rows.",
            "",
        )
        for each in column_distributions(table)
    ]
    return Panels(
        "Distributions of columns",
        exhibits,
        "The most important columns first. Grey is the source table, blue are rows drawn from the condensed table with "
        "the classes of the source. The few numbers beyond the limits are in the first and last bar; percentages are "
        "those of the source.",
    )


def search_panels(table: CondensedTable) -> Panels:
    """Show the loss curves and, if there was one, the search for the allocation."""
    found = [curves_exhibit(table.classes, table.class_rows, table.curves, table.allocation)]
    if len(table.allocation.trace) > 1:
        found.append(trace_exhibit(table.allocation))
    return Panels.of("Allocation", found)


def rows_panels(means: pd.DataFrame, metric: str, worth: pd.DataFrame | None = None) -> Panels:
    """Show a score of each learner against the number of random rows, with condensed tables as marks.

    ``means`` are averaged scores of one condensed table, with its row worths, or of tables of several ratios.
    """
    title = TITLES[metric]
    by_learner = {}
    if worth is not None and len(worth):
        records = worth[worth["metric"] == metric].to_dict("records")
        by_learner = {learner_name((row["model"], row["columns"])): row for row in records}
    return Panels(
        "What a condensed row is worth" if by_learner else f"{title} against rows trained on",
        [
            Exhibit(
                name,
                figures.score_by_rows(own, metric, title, name=name, worth=by_learner.get(name)),
                f"{title} of {wording.shortened(name, 60)} by the number of random rows trained on, with the condensed "
                "table as a mark.",
                "",
            )
            for name, own in figures.learners(means)
        ],
        f"{_MEANING[metric]} on test rows that nothing else has seen"
        + (", with one standard deviation over the seeds" if means["seeds"].max() > 1 else "")
        + (
            ". The line leads from the condensed table to the number of random rows that do as well; divided by the "
            "number of condensed rows, that is what one condensed row is worth."
            if by_learner
            else "."
        )
        + (
            " The pale band is its interval."
            if any(row["high"] > 1.05 * row["low"] for row in by_learner.values())
            else ""
        ),
    )


def worth_exhibits(means: pd.DataFrame, worth: pd.DataFrame) -> dict[str, Panels]:
    """Show the AUC against the number of random rows; nothing without random samples."""
    if means.empty or not (means["training_set"] == "random").any() or means["auc"].isna().all():
        return {}
    return {"row_worth": rows_panels(means, "auc", worth)}


def score_panels(means: pd.DataFrame) -> Panels:
    """Show each score of each learner from the condensed, a random and the whole table."""
    kinds = [kind for kind in figures.TRAINING_SETS if kind in set(means["training_set"])]
    names = [name for name, _ in figures.learners(means)]
    exhibits = []
    for metric, title in TITLES.items():
        by_set = {kind: dict(_by_learner(means[means["training_set"] == kind], metric)) for kind in kinds}
        values = {kind: [found.get(name, float("nan")) for name in names] for kind, found in by_set.items()}
        picture = figures.score_dots(f"{title}, %", names, values)
        exhibits.append(Exhibit(title, picture, f"{title} of {wording.listed(names)} by the rows trained on.", ""))
    return Panels(
        "Scores",
        exhibits,
        "Models trained on the condensed table (diamond, first number), on as many random rows (disc) and on the whole "
        "table (bar, last number), tested on rows that nothing else has seen.",
    )


def class_score_panels(table: CondensedTable, means: pd.DataFrame, learner: tuple[str, str]) -> Panels | None:
    """Show the scores of the largest classes for one learner, from what ``class_means`` returned; None without it."""
    own = means[(means["model"] == learner[0]) & (means["columns"] == learner[1])] if len(means) else means
    if own.empty:
        return None
    largest = sorted(range(len(table.classes)), key=lambda place: (-table.class_rows[place], place))
    largest = sorted(largest[: figures.MAX_BARS])
    names = [str(table.classes[place]) for place in largest]
    kinds = [kind for kind in figures.TRAINING_SETS if kind in set(own["training_set"])]
    exhibits = []
    # F1 is in the numbers.
    for metric in ("recall", "precision", "auc"):
        title = CLASS_TITLES[metric]
        values = {
            kind: own[own["training_set"] == kind].set_index("class")[metric].reindex(largest).tolist()
            for kind in kinds
        }
        picture = figures.score_dots(f"{title}, %", names, values)
        exhibits.append(Exhibit(title, picture, f"{title} of each class by the rows trained on.", ""))
    shown = "" if len(largest) == len(table.classes) else f" The {len(largest)} largest classes are shown."
    return Panels(
        f"Class by class: {learner_name(learner)}",
        exhibits,
        "Recall is the share of a class's test rows that are found, precision the share of rows predicted as the class "
        "that are of it, AUC how well the class is ranked before all others. Marks and numbers as above: "
        f"condensed table (diamond), as many random rows (disc), whole table (bar).{shown}",
    )


def _by_learner(means: pd.DataFrame, metric: str) -> Iterator[tuple[str, float]]:
    for name, own in figures.learners(means):
        yield name, float(own[metric].iloc[0])


def timeless_means(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the averages over seeds without seconds, which differ between runs over the same rows."""
    return mean_scores(scores).drop(columns="fit_seconds", errors="ignore")


def means_by_ratio(scores: Mapping[float, pd.DataFrame]) -> pd.DataFrame:
    """Return the averages of several ratios in one frame with a column ``ratio``, the smallest ratio first."""
    found = [timeless_means(scores[ratio]).assign(ratio=ratio) for ratio in sorted(scores) if len(scores[ratio])]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()
