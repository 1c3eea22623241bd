"""Write the results of an experiment: scores, tables, statistics, figures and a page."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from c2tc_pipeline.bench.experiments.grid import OURS, Experiment, paper_numbers
from c2tc_pipeline.bench.reports.exhibits import experiment_exhibits, experiment_page, rank_exhibit
from c2tc_pipeline.bench.reports.protocol import protocol
from c2tc_pipeline.bench.reports.statistics import (
    anchors_table,
    comparisons_table,
    pooled_table,
    ranking_table,
    standings_table,
)
from c2tc_pipeline.bench.reports.table import METRIC_NAMES, Layout, experiment_table
from c2tc_pipeline.bench.reports.worth import worth_table
from c2tc_pipeline.bench.statistics.comparisons import compare, pool, rank_contenders
from c2tc_pipeline.bench.statistics.runs import (
    WHOLE,
    anchored,
    is_sample,
    named_contenders,
    standings,
    with_mean_of_models,
)
from c2tc_pipeline.bench.statistics.worth import weak_wholes, worths
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.metrics import METRICS
from c2tc_pipeline.evaluation.row_worth import WORTH_METRICS
from c2tc_pipeline.reports.exhibits import Exhibit
from c2tc_pipeline.reports.markdown import ShownTable, markdown_escaped
from c2tc_pipeline.storage.parquet import write_parquet

ARTEFACT_KIND = "experiment"


def write_experiment(
    experiment: Experiment,
    scores: pd.DataFrame,
    directory: Path,
    *,
    command: str = "",
    jobs: int | None = None,
) -> None:
    """Write scores, tables, statistics, figures and a page into an existing directory.

    ``command`` reproduces the results; ``jobs`` is the number of parallel processes, None where it is unknown.
    """
    write_parquet(scores, directory / "scores.parquet")
    layout = layout_of(experiment, scores)
    paper = paper_numbers(experiment.name)
    exhibits = experiment_exhibits(experiment.show.figure, scores, experiment.show.metrics)
    headlines: dict[str, ShownTable] = {}
    statistics: dict[str, ShownTable] = {}
    notices = weak_wholes(scores)
    if experiment.multiples:
        found = worths(scores)
        write_parquet(found, directory / "worth.parquet")
        for metric in WORTH_METRICS:
            headlines[f"Worth of a condensed row by {METRIC_NAMES[metric]}"] = worth_table(found, metric)
    contenders = _contenders(scores)
    if OURS in contenders:
        found, about_ours = _compared(scores, paper)
        write_parquet(found, directory / "statistics.parquet")
        statistics.update(about_ours)
    for metric in METRICS if contenders else ():
        ranks, pictures = _ranked(scores, metric)
        statistics.update(ranks)
        exhibits += pictures
    described = protocol(experiment, scores, jobs=jobs)
    notes = [experiment.question, described, f"Made by: {command}" if command else ""]
    notes = [note for note in [*notes, *notices] if note]
    shown = _shown(scores[~scores["method"].map(is_sample)], layout)
    table = experiment_table(shown, layout, paper)
    sections = {**headlines, "Results": table, **statistics}
    parts = list(map(markdown_escaped, [experiment.title, *notes]))
    parts[0] = f"# {parts[0]}"
    parts += [f"## {title}\n\n{part.markdown()}" for title, part in sections.items()]
    (directory / "table.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    page = experiment_page(experiment.name, {**headlines, "Results": table}, exhibits, statistics, notes=notes)
    (directory / "report.html").write_text(page, encoding="utf-8")
    figures = directory / "figures"
    figures.mkdir()
    for exhibit in exhibits:
        name = re.sub(r"[^a-z0-9]+", "-", exhibit.title.lower()).strip("-")
        (figures / f"{name}.png").write_bytes(exhibit.picture.png())


def layout_of(experiment: Experiment, scores: pd.DataFrame) -> Layout:
    """Return the layout of an experiment's table, with a row for every other field that differs."""
    across = experiment.show.columns
    own = scores[scores["method"] != WHOLE]
    # The whole table has a row of its own where methods are no columns, but none for its space or variant.
    differing = {"space": own, "model": own, "method": scores, "variant": own}
    more = [name for name, part in differing.items() if name not in across and part[name].nunique() > 1]
    return Layout(rows=("table", "ratio", *more), columns=across, metrics=experiment.show.metrics)


def _shown(scores: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Return the scores for the table, with a block for the mean of models where contenders are judged by several."""
    own = scores[scores["method"] != WHOLE]
    if "model" not in layout.rows or len(own[["space", "method", "variant"]].drop_duplicates()) < 2:
        return scores
    return with_mean_of_models(scores, layout.metrics)


def _contenders(scores: pd.DataFrame) -> set[str]:
    """Return the contenders with a score; none where all are variants of one method."""
    named = named_contenders(scores, METRICS)
    done = named[(named["method"] != WHOLE) & (named["status"] == "ok") & named["accuracy"].notna()]
    return set(done["contender"]) if done["method"].nunique() > 1 else set()


def _compared(scores: pd.DataFrame, paper: pd.DataFrame | None) -> tuple[pd.DataFrame, dict[str, ShownTable]]:
    """Return the tests of ours against its rivals, and all tables about ours."""
    found = compare(scores)
    return found, {
        "Against the paper and the whole table": anchors_table(
            pd.concat([anchored(scores, metric, paper) for metric in METRICS])
        ),
        "First, tied or behind": standings_table(pd.concat([standings(scores, metric) for metric in METRICS])),
        "Ours against each rival": comparisons_table(found),
        "Over all tables and ratios": pooled_table(pool(found)),
    }


def _ranked(scores: pd.DataFrame, metric: str) -> tuple[dict[str, ShownTable], list[Exhibit]]:
    """Return the ranks of all contenders, if there is a unit in which all of them ran."""
    try:
        ranking = rank_contenders(scores, metric)
    except InputError:
        return {}, []
    exhibit = rank_exhibit(ranking, metric)
    return {exhibit.title: ranking_table(ranking)}, [exhibit]
