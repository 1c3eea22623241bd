"""Figures with title, alternative text and caption, for pages and for the metadata of a pipeline step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from c2tc_pipeline.allocation.result import Allocation
from c2tc_pipeline.clustering.loss_curves import LossCurve
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.evaluation.averages import mean_scores
from c2tc_pipeline.reports import figures, wording
from c2tc_pipeline.reports.markdown import escape_punctuation, markdown_escaped
from c2tc_pipeline.reports.picture import Picture, class_styles

TITLES = {"accuracy": "Accuracy", "macro_f1": "Macro-F1", "auc": "AUC"}
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
        "Each class's share of the source rows (pale) and of the condensed rows (full colour). When the shares differ "
        "widely the axis is logarithmic: compare the ends of the bars, not their lengths.",
    )


def projection_exhibit(classes: Sequence[Any], class_rows: Sequence[int], points: pd.DataFrame) -> Exhibit:
    """Show source and condensed rows in two dimensions; ``points`` is the projection of a condensed table."""
    condensed = int((points["kind"] == "condensed").sum())
    return Exhibit(
        "The table in two dimensions",
        figures.projection(class_styles(classes, class_rows), points),
        f"Scatter plot of {wording.counted(condensed, 'condensed row', 'condensed rows')} "
        "among a sample of the source rows.",
        "The encoded rows on their first two principal components. Specks are a sample of the source rows, discs are "
        "condensed rows; the more source rows a disc stands for, the larger it is. "
        f"At most {wording.count(figures.MAX_DISCS)} condensed rows are drawn.",
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
    """Show how much source columns count in distances, given the summary of the column weights."""
    importance, power = weights["importance"], weights["power"]
    first = max(importance, key=importance.__getitem__)
    use = f"A column counts in distances by its importance to the power {power:g}, chosen on rows kept aside."
    if not power:
        use = "All columns count alike in distances: on rows kept aside no power of the importance did better."
    return Exhibit(
        "Importance of columns",
        figures.column_importance(importance),
        f"Bars of the importance of columns for the label, the largest being {first}.",
        "The importance of the source columns in extremely randomised trees on a sample, shared evenly by the encoded "
        f"columns of a source column, the largest being 1. {use}",
    )


def table_exhibits(subject: CondensedTable) -> Iterator[Exhibit]:
    """Yield the exhibits that a condensed table has data for."""
    classes, class_rows, allocation = subject.classes, subject.class_rows, subject.allocation
    yield shares_exhibit(classes, class_rows, [int(count) for count in allocation.counts])
    yield projection_exhibit(classes, class_rows, subject.projection)
    weights = subject.summary.get("column_weights")
    if weights and weights["power"] is not None:
        yield importance_exhibit(weights)
    yield curves_exhibit(classes, class_rows, subject.curves, allocation)
    if len(allocation.trace) > 1:
        yield trace_exhibit(allocation)


def stages_exhibit(stages: Mapping[str, float]) -> Exhibit:
    """Show how long each stage took; there must be at least one."""
    longest = max(stages, key=stages.__getitem__)
    return Exhibit(
        "Time by stage",
        figures.stage_seconds(stages),
        f"Bars of the time of each stage, the longest being {longest} with {wording.seconds(stages[longest])}.",
        "Wall-clock time, in the order in which the stages ran.",
    )


def ratio_exhibit(means: pd.DataFrame, metric: str) -> Exhibit:
    """Show a score against the ratio; ``means`` is what :func:`means_by_ratio` returned, not empty."""
    title = TITLES[metric]
    several = "Dots are means over the seeds, bars one standard deviation to either side."
    spread = several if means["seeds"].max() > 1 else "Each dot is one seed; another seed gives other scores."
    ratios = ", ".join(wording.ratio(ratio) for ratio in dict.fromkeys(means["ratio"]))
    return Exhibit(
        f"{title} against ratio",
        figures.score_by_ratio(means, metric, title.lower() if title == "Accuracy" else title),
        f"{title} of {wording.listed(means['model'])} trained on condensed, random and all rows, at ratio {ratios}.",
        "Models trained on the condensed rows, on as many rows drawn at random, and on the whole table, tested on rows "
        f"that nothing else has seen. {spread}",
    )


def worth_exhibits(means: pd.DataFrame) -> dict[str, Exhibit]:
    """Show the AUC against the number of random rows, with the condensed rows; nothing without random samples."""
    if means.empty or not (means["training_set"] == "random").any() or means["auc"].isna().all():
        return {}
    return {
        "row_worth": Exhibit(
            "AUC against random rows",
            figures.score_by_rows(means, "auc", TITLES["auc"]),
            f"AUC of {wording.listed(means['model'])} by the number of random rows trained on, with the condensed rows "
            "as a mark.",
            "The curve is the mean one-vs-rest AUC on test rows of models trained on random samples, with one standard "
            "deviation over the seeds; the diamond is the condensed table, with rows drawn from it. Where the curve "
            "reaches the height of the diamond, random rows do as well: that number of rows, divided by the condensed "
            "rows, is what one condensed row is worth. The dashed line is the whole table.",
        )
    }


def timeless_means(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the averages over seeds without seconds, which differ between runs over the same rows."""
    return mean_scores(scores).drop(columns="fit_seconds", errors="ignore")


def means_by_ratio(scores: Mapping[float, pd.DataFrame]) -> pd.DataFrame:
    """Return the averages of several ratios in one frame with a column ``ratio``, the smallest ratio first."""
    found = [timeless_means(scores[ratio]).assign(ratio=ratio) for ratio in sorted(scores) if len(scores[ratio])]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()
