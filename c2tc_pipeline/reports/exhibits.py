"""Pictures with the words that belong to them, for the pages and for the metadata of a pipeline step.

What belongs here: title, alternative text and caption of each picture. How a picture is drawn is in ``figures.py``,
``search_figures.py`` and ``score_figures.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from c2tc_pipeline.allocation.result import Allocation
from c2tc_pipeline.clustering.loss_curves import LossCurve
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.class_styles import class_styles
from c2tc_pipeline.reports.figures import MOST_DISCS, class_shares, projection, stage_seconds
from c2tc_pipeline.reports.markdown import picture_markdown
from c2tc_pipeline.reports.markup import Markup, figure
from c2tc_pipeline.reports.picture import Showable
from c2tc_pipeline.reports.score_figures import score_by_ratio
from c2tc_pipeline.reports.search_figures import allocation_trace, loss_curves
from c2tc_pipeline.reports.subject import ReportSubject

TITLES = {"accuracy": "Accuracy", "macro_f1": "Macro-F1"}


@dataclass(frozen=True)
class Exhibit:
    """A picture and what is said about it.

    Parameters
    ----------
    title : str
        Its heading.
    picture : Showable
        The picture.
    alternative : str
        What it shows, for people who cannot see it.
    caption : str
        How to read it.
    """

    title: str
    picture: Showable
    alternative: str
    caption: str

    def html(self) -> Markup:
        """Return picture and caption as part of a page."""
        return figure(self.picture.svg(), self.alternative, self.caption)

    def markdown(self) -> str:
        """Return picture and caption as Markdown, for instance for the metadata of a Dagster asset."""
        return picture_markdown(self.picture, self.alternative, self.caption)


def shares_exhibit(classes: Sequence[Any], class_rows: Sequence[int], counts: Sequence[int]) -> Exhibit:
    """Return each class's share before and after.

    Examples
    --------
    >>> shares_exhibit(["no", "yes"], [90, 10], [6, 4]).alternative
    'Bars of the share of each class before and after: no from 90 % to 60 %, yes from 10 % to 40 %.'
    """
    styles = class_styles(classes, class_rows)
    changes = ", ".join(
        f"{style.short} from {wording.share(before / sum(class_rows))} to {wording.share(after / sum(counts))}"
        for style, before, after in zip(styles[:5], class_rows, counts, strict=False)
    )
    return Exhibit(
        "Class shares",
        class_shares(styles, class_rows, counts),
        f"Bars of the share of each class before and after: {changes}.",
        "Each class's share of the source rows (pale) and of the condensed rows (full colour). When the shares differ "
        "widely the axis is logarithmic: compare the ends of the bars, not their lengths.",
    )


def projection_exhibit(classes: Sequence[Any], class_rows: Sequence[int], points: pd.DataFrame) -> Exhibit:
    """Return source and condensed rows in two dimensions; ``points`` is what a condensed table's projection holds."""
    condensed = int((points["kind"] == "condensed").sum())
    return Exhibit(
        "The table in two dimensions",
        projection(class_styles(classes, class_rows), points),
        f"Scatter plot of {wording.counted(condensed, 'condensed row', 'condensed rows')} "
        "among a sample of the source rows.",
        "The encoded rows on their first two principal components. Specks are a sample of the source rows, discs are "
        "condensed rows; the more source rows a disc stands for, the larger it is. "
        f"At most {wording.count(MOST_DISCS)} condensed rows are drawn.",
    )


def curves_exhibit(
    classes: Sequence[Any], class_rows: Sequence[int], curves: Sequence[LossCurve], allocation: Allocation
) -> Exhibit:
    """Return the loss curves with the chosen allocation."""
    counts = [int(count) for count in allocation.counts]
    return Exhibit(
        "Loss curves",
        loss_curves(class_styles(classes, class_rows), curves, counts, allocation.gamma),
        "Curves of each class's term in the objective, falling with its number of condensed rows.",
        "What each class adds to the objective, by the number of condensed rows it gets. The large dot is the number "
        "it got. A class with a loss of zero there has no dot.",
    )


def trace_exhibit(allocation: Allocation) -> Exhibit:
    """Return the search for the allocation, which must have a trace."""
    return Exhibit(
        "Search for the allocation",
        allocation_trace(allocation),
        f"The best objective falls from {wording.number(allocation.trace[0].best)} "
        f"to {wording.number(allocation.trace[-1].best)} "
        f"in {wording.counted(len(allocation.trace) - 1, 'iteration', 'iterations')}.",
        f"Each iteration of {allocation.method} proposes another way to share out the condensed rows and keeps it when "
        "the objective falls. The search cost "
        f"{wording.counted(allocation.evaluations, 'k-means run', 'k-means runs')}.",
    )


def table_exhibits(subject: ReportSubject) -> Iterator[Exhibit]:
    """Return the exhibits that a condensed table has something to show in."""
    classes, class_rows, allocation = subject.classes, subject.class_rows, subject.allocation
    yield shares_exhibit(classes, class_rows, [int(count) for count in allocation.counts])
    yield projection_exhibit(classes, class_rows, subject.projection)
    if subject.curves is not None:
        yield curves_exhibit(classes, class_rows, subject.curves, allocation)
    if len(allocation.trace) > 1:
        yield trace_exhibit(allocation)


def stages_exhibit(stages: Mapping[str, float]) -> Exhibit:
    """Return how long each stage took; there must be at least one."""
    longest = max(stages, key=stages.__getitem__)
    return Exhibit(
        "Time by stage",
        stage_seconds(stages),
        f"Bars of the time of each stage, the longest being {longest} with {wording.seconds(stages[longest])}.",
        "Wall-clock time, in the order in which the stages ran.",
    )


def ratio_exhibit(means: pd.DataFrame, metric: str) -> Exhibit:
    """Return a score against the ratio.

    Parameters
    ----------
    means : DataFrame
        What :func:`~c2tc_pipeline.reports.score_means.means_by_ratio` returned, not empty.
    metric : {"accuracy", "macro_f1"}
        Which score.
    """
    title = TITLES[metric]
    several = "Dots are means over the seeds, bars one standard deviation to either side."
    spread = several if means["seeds"].max() > 1 else "Each dot is one seed; another seed gives other scores."
    ratios = ", ".join(wording.ratio(ratio) for ratio in dict.fromkeys(means["ratio"]))
    models = ", ".join(wording.shortened(model, 40) for model in dict.fromkeys(means["model"]))
    return Exhibit(
        f"{title} against ratio",
        score_by_ratio(means, metric, title.lower() if metric == "accuracy" else title),
        f"{title} of {models} trained on condensed, random and all rows, at ratio {ratios}.",
        "Models trained on the condensed rows, on as many rows drawn at random, and on the whole table, tested on rows "
        f"that nothing else has seen. {spread}",
    )
