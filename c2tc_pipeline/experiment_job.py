"""An experiment from its grid to a directory of results: what ``c2tc bench`` and the pipeline's step run."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.evaluation.averages import METRICS
from c2tc_pipeline.evaluation.experiments.grid import OURS, Experiment
from c2tc_pipeline.evaluation.experiments.group import WHOLE
from c2tc_pipeline.evaluation.experiments.paper_numbers import paper_numbers
from c2tc_pipeline.evaluation.statistics import (
    anchored,
    compare,
    pool,
    rank_contenders,
    relative_regret,
    standings,
    summarise_regret,
)
from c2tc_pipeline.reports.exhibits import Exhibit
from c2tc_pipeline.reports.experiment_exhibits import experiment_exhibits, rank_exhibit
from c2tc_pipeline.reports.experiment_layout import Layout
from c2tc_pipeline.reports.experiment_page import experiment_page
from c2tc_pipeline.reports.experiment_shown import ShownTable
from c2tc_pipeline.reports.experiment_statistics import (
    anchors_table,
    comparisons_table,
    pooled_table,
    ranking_table,
    regret_table,
    standings_table,
)
from c2tc_pipeline.reports.experiment_table import experiment_table
from c2tc_pipeline.storage.parquet import write_parquet

ARTEFACT_KIND = "experiment"


def write_experiment(experiment: Experiment, scores: pd.DataFrame, directory: Path, *, command: str = "") -> None:
    """Write scores, tables, statistics, figures and a page into an existing directory.

    Parameters
    ----------
    experiment : Experiment
        What was run.
    scores : DataFrame
        What :func:`~c2tc_pipeline.evaluation.experiments.runner.run_experiment` returned.
    directory : path
        Where to.
    command : str
        What makes the same again, for people.
    """
    write_parquet(scores, directory / "scores.parquet")
    layout = layout_of(experiment, scores)
    paper = _paper(experiment.name)
    exhibits = experiment_exhibits(experiment.show.figure, scores, experiment.show.metrics)
    statistics: dict[str, ShownTable] = {}
    if _comparable(scores):
        found, shown, ranked = _statistics(scores, paper)
        write_parquet(found, directory / "statistics.parquet")
        statistics.update(shown)
        exhibits += ranked
    notes = [experiment.question, protocol(experiment, scores), f"Made by: {command}" if command else ""]
    notes = [note for note in notes if note]
    table = experiment_table(scores, layout, paper)
    parts = [f"# {experiment.title}", *notes, table.markdown()]
    parts += [f"## {title}\n\n{part.markdown()}" for title, part in statistics.items()]
    (directory / "table.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    page = experiment_page(
        experiment.name, scores, layout, paper=paper, exhibits=exhibits, statistics=statistics, notes=notes
    )
    (directory / "report.html").write_text(page, encoding="utf-8")
    figures = directory / "figures"
    figures.mkdir()
    for exhibit in exhibits:
        name = re.sub(r"[^a-z0-9]+", "-", exhibit.title.lower()).strip("-")
        (figures / f"{name}.png").write_bytes(exhibit.picture.png())


def layout_of(experiment: Experiment, scores: pd.DataFrame) -> Layout:
    """Return the layout of an experiment's table: what it says, with a row for all else that differs."""
    across = experiment.show.columns
    own = scores[scores["method"] != WHOLE]
    more = [name for name in ("space", "model", "method", "variant") if name not in across and own[name].nunique() > 1]
    return Layout(rows=("table", "ratio", *more), columns=across, metrics=experiment.show.metrics)


def protocol(experiment: Experiment, scores: pd.DataFrame) -> str:
    """Return in one sentence how the scores came about, and on what."""
    seeds = "1 seed" if experiment.seeds == 1 else f"{experiment.seeds} seeds"
    judged = f"; networks trained with recipe {experiment.recipe!r}" if experiment.models else ""
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    split = ", rows with equal features on one side" if experiment.group_duplicates else ""
    return (
        f"{seeds}, each a split of its own (80 % training, 10 % validation, 10 % test rows{split}), a condensation and "
        f"a start of the models; mean ± standard deviation over them{judged}; {len(scores):,} results on {machine}."
    )


def _paper(name: str) -> pd.DataFrame | None:
    try:
        return paper_numbers(name)
    except InputError:
        return None


def _comparable(scores: pd.DataFrame) -> bool:
    own = scores[(scores["method"] != WHOLE) & (scores["status"] == "ok")]
    return own["method"].nunique() > 1 and OURS in set(own["method"]) and own["accuracy"].notna().any()


def _statistics(
    scores: pd.DataFrame, paper: pd.DataFrame | None
) -> tuple[pd.DataFrame, Mapping[str, ShownTable], list[Exhibit]]:
    compared = compare(scores)
    shown = {
        "Against the paper and the whole table": anchors_table(
            pd.concat([anchored(scores, metric, paper) for metric in METRICS])
        ),
        "First, tied or behind": standings_table(pd.concat([standings(scores, metric) for metric in METRICS])),
        "Ours against each rival": comparisons_table(compared),
        "Over all tables and ratios": pooled_table(pool(compared)),
    }
    exhibits: list[Exhibit] = []
    for metric in METRICS:
        if {WHOLE, "random"} <= set(scores["method"]):
            shown[f"Relative regret, {metric}"] = regret_table(summarise_regret(relative_regret(scores, metric)))
        ranking = rank_contenders(scores, metric)
        shown[f"Mean ranks, {metric}"] = ranking_table(ranking)
        exhibits.append(rank_exhibit(ranking, metric))
    return compared, shown, exhibits
