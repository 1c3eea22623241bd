"""HTML pages from Jinja2 templates, and the report of one condensed table.

Functions here prepare plain values; the templates beside this module lay them out. Autoescaping turns every value into
text, after :func:`~c2tc_pipeline.reports.wording.printable` has removed what HTML cannot hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd

from c2tc_pipeline.condensation.display import shown_values
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.exhibits import (
    CLASS_TITLES,
    TITLES,
    class_score_panels,
    column_panels,
    overview_panels,
    score_panels,
    search_panels,
    worth_exhibits,
)
from c2tc_pipeline.reports.markdown import Cell, Column, ShownTable, columns
from c2tc_pipeline.reports.picture import ClassStyle, class_styles
from c2tc_pipeline.reports.verdict import (
    NOT_EVALUATED,
    Headline,
    headline,
    learner_name,
    weak_references,
    worth_interval,
    worth_text,
)

MAX_ROWS = 12
MAX_COLUMNS = 100
PAPER_COLUMNS = 8
"""On paper, ``MAX_ROWS`` condensed rows and this many columns are shown; page.css hides the others."""
_OBJECTIVE = (
    "the squared distances of the source rows to their condensed rows, divided by (rows of the class) to the power "
    "{gamma} and added up over the classes; smaller is better."
)
_BOUND = " On the same loss curves no allocation of as many rows has one below {bound}, so the gap is {gap}."


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: value if hasattr(value, "__html__") else _shown(value),
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: Any) -> str:
    # A percent sign stays with its number.
    return wording.printable(value).replace(" %", "\N{NO-BREAK SPACE}%")


def render_page(template: str, kind: str, name: str, **values: Any) -> str:
    """Return a self-contained page, titled ``kind: name``, from a template that extends ``page.html``."""
    return _environment().get_template(template).render(kind=kind, name=name, **values)


def render_report(table: CondensedTable) -> str:
    """Return a condensed table's report as one self-contained HTML page; the same table gives the same text."""
    summary = table.summary
    means, worth, by_class = (pd.DataFrame(summary.get(name, [])) for name in ("scores", "row_worth", "class_scores"))
    part = table_values(table, means, worth, by_class, summary.get("verdict", ""))
    seconds = summary.get("seconds") or {}
    if seconds:
        longest = max(seconds, key=seconds.__getitem__)
        part["tiles"].append(
            ("Time", wording.seconds(sum(seconds.values())), f"{longest} {wording.seconds(seconds[longest])}")
        )
    name = summary.get("table") or "table"
    settings = {"seed": summary.get("seed"), "ratio": summary.get("ratio"), **summary.get("settings", {})}
    ending = ending_values(table, settings)
    ending["seconds"] = ShownTable(
        columns("stage", "seconds", numeric=["seconds"]), [(stage, f"{value:.2f}") for stage, value in seconds.items()]
    )
    return render_page("report.html", "Condensed table", name, part=part, ending=ending, not_evaluated=NOT_EVALUATED)


def table_values(
    table: CondensedTable, means: pd.DataFrame, worth: pd.DataFrame, by_class: pd.DataFrame, verdict: str
) -> dict[str, Any]:
    """Return the values that the template's ``condensed`` macro shows of one condensed table.

    ``means`` are averaged scores, ``worth`` the row worths and ``by_class`` the averaged scores of classes; all of them
    may be empty.
    """
    found = headline(means, worth)
    scores = []
    if found is not None:
        by_rows = worth_exhibits(means, worth).values()
        scores = [*by_rows, score_panels(means), class_score_panels(table, by_class, found.learner)]
    return {
        "verdict": verdict,
        "tiles": [*_size_tiles(table), *([] if found is None else _score_tiles(found)), *_quality_tiles(table)],
        "notices": [*([] if means.empty else weak_references(means)), *map(str, table.notices)],
        "scores": [panels for panels in scores if panels],
        "numbers": [
            numbers
            for numbers in (
                ("What a condensed row is worth", worth_table(worth)),
                ("Scores", scores_table(means)),
                ("Scores by class", class_scores_table(table, by_class)),
            )
            if numbers[1] is not None
        ],
        "classes": _classes_table(table),
        "overview": overview_panels(table),
        "columns": column_panels(table),
        "search": search_panels(table),
        "explanation": explanation(table),
        "rows": _rows_table(table),
        "rows_left_out": _left_out_on_paper(table),
    }


def ending_values(table: CondensedTable, settings: Mapping[str, Any]) -> dict[str, ShownTable | None]:
    """Return the tables at the end of a page: columns, settings and versions."""
    pairs = columns("name", "value")
    return {
        "columns": _columns_table(table),
        "settings": ShownTable(pairs, list(_flat(settings))),
        "versions": ShownTable(pairs, list(_flat(table.summary.get("versions", {})))),
        "seconds": None,
    }


def explanation(table: CondensedTable) -> str:
    """Explain the objective of a table, and its bound if there is one."""
    summary = table.summary
    text = f"The objective is {wording.number(summary.get('objective'))}: " + _OBJECTIVE.format(
        gamma=wording.number(table.allocation.gamma)
    )
    if summary.get("bound") is not None:
        text += _BOUND.format(bound=wording.number(summary["bound"]), gap=wording.gap(summary.get("gap")))
    return text


def repeated_rows(table: CondensedTable) -> dict[str, int]:
    """Return how many condensed rows repeat a record, by reason; tables stored without them have their singletons."""
    singletons = int((table.weight == 1).sum())
    return table.summary.get("repeated_rows", {"total": singletons, "singletons": singletons})


Tiles = list[tuple[str, str, str]]


def _size_tiles(table: CondensedTable) -> Tiles:
    rows_in, rows_out = int(table.summary["rows_in"]), int(table.summary["rows_out"])
    rows = f"{wording.count(rows_in)} → {wording.count(rows_out)}"
    return [("Rows", rows, wording.one_in(rows_in, rows_out))]


def _score_tiles(found: Headline) -> Tiles:
    """Return accuracy and row worth, as far as they were measured."""
    remarks = []
    if found.whole is not None:
        remarks.append(f"whole table {100 * found.whole:.1f} %")
    if found.random is not None:
        remarks.append(f"random rows {100 * found.random:.1f} %")
    tiles = [("Accuracy", f"{100 * found.accuracy:.1f} %", ", ".join(remarks) or learner_name(found.learner))]
    if found.worth is not None:
        interval = worth_interval(found.worth)
        tiles.append(
            ("A condensed row is worth", worth_text(found.worth), f"{interval}, by AUC" if interval else "by AUC")
        )
    return tiles


def _quality_tiles(table: CondensedTable) -> Tiles:
    repeated = repeated_rows(table)
    names = {
        "singletons": ("singleton", "singletons"),
        "equal_rows": ("for equal rows", "for equal rows"),
        "medoids": ("medoid", "medoids"),
        "coincidences": ("by coincidence", "by coincidence"),
    }
    reasons = ", ".join(wording.counted(repeated[name], *forms) for name, forms in names.items() if repeated.get(name))
    remark = reasons or "none equals a source row"
    if repeated.get("drawn"):
        remark += f"; {wording.count(repeated['drawn'])} of {wording.count(repeated['drawn_rows'])} drawn rows"
    return [("Rows that repeat a record", wording.count(repeated["total"]), remark)]


def _class_cell(style: ClassStyle) -> Cell:
    return Cell(wording.shortened(style.label, 120), colour=style.colour)


def _classes_table(table: CondensedTable) -> ShownTable:
    rows, counts = np.asarray(table.class_rows), np.asarray(table.allocation.counts)
    numbers = ("source rows", "share", "condensed rows", "share", "source rows behind one")
    body = [
        (
            _class_cell(style),
            wording.count(before),
            wording.share(before / rows.sum()),
            wording.count(after),
            wording.share(after / counts.sum()),
            wording.per_row(before / after),
        )
        for style, before, after in zip(class_styles(table.classes, table.class_rows), rows, counts, strict=True)
    ]
    return ShownTable(
        [Column(table.label_name), *columns(*numbers, numeric=numbers)],
        body,
        "The last column is the mean number of source rows that one condensed row stands for.",
    )


def _columns_table(table: CondensedTable) -> ShownTable:
    body = [
        (
            wording.shortened(row["column"], 160),
            wording.cell(row["role"]),
            wording.cell(row["encoding"]),
            wording.cell(row["reason"], limit=300),
            wording.count(row["distinct"]),
            wording.count(row["missing"]),
        )
        for row in table.roles.to_dict("records")
    ]
    names = ("column", "role", "encoding", "reason", "distinct", "missing")
    return ShownTable(
        columns(*names, numeric=names[4:]),
        body,
        "The inferred role of each column and its encoding. Roles can be set by hand.",
    )


def _rows_table(table: CondensedTable) -> ShownTable:
    """Return condensed rows of all classes in the original schema, the label first."""
    original, label = table.original_rows, table.label_name
    features = [name for name in original.columns if name != label]
    places = sampled_places(table.weight.to_numpy(), table.allocation.counts)
    shown = original[[label, *features[:MAX_COLUMNS]]].iloc[places]
    heads = [Column(wording.shortened(name, 40), dtype.kind in "iuf") for name, dtype in shown.dtypes.items()]
    texts = [map(wording.cell, shown_values(shown[name], original[name])) for name in shown.columns]
    body = list(zip(map(wording.count, table.weight.iloc[places]), *texts, strict=True))
    rows = wording.counted(len(original), "row", "rows")
    extent = f"All {rows}" if len(places) == len(original) else f"{len(places)} of {rows}, from all classes"
    if len(features) > MAX_COLUMNS:
        extent += f", the first {MAX_COLUMNS} of {wording.count(len(features))} columns"
    return ShownTable(
        [Column("stands for", True), *heads],
        body,
        f"{extent}, in the units and categories of the source table. The first column is how many source rows a row "
        "stands for.",
    )


def _left_out_on_paper(table: CondensedTable) -> str:
    """Return how many condensed rows and columns are not on paper, empty if all are."""
    left = {
        "row": len(table.original_rows)
        - len(sampled_places(table.weight.to_numpy(), table.allocation.counts)[:MAX_ROWS]),
        # The first column shown is that of the weights.
        "column": table.original_rows.shape[1] + 1 - PAPER_COLUMNS,
    }
    found = [wording.counted(number, f"more {name}", f"more {name}s") for name, number in left.items() if number > 0]
    return f"Not printed: {' and '.join(found)}." if found else ""


def sampled_places(weight: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the places of some ``MAX_ROWS`` rows, as many of each class, evenly from heaviest to lightest."""
    sizes = np.minimum(counts, max(1, MAX_ROWS // len(counts)))
    ends = np.cumsum(counts)
    chosen = []
    for start, end, size in zip(ends - counts, ends, sizes, strict=True):
        by_weight = start + np.argsort(-weight[start:end], kind="stable")
        chosen.append(by_weight[np.linspace(0, len(by_weight) - 1, size).round().astype(int)])
    return np.concatenate(chosen)


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested settings as dotted names and JSON values."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            yield f"{prefix}{name}", wording.shortened(text, 200)


def scores_table(means: pd.DataFrame) -> ShownTable | None:
    """Return averaged scores by model and training set, None when there are none; fit times when they are given."""
    if means.empty:
        return None
    timed = "fit_seconds" in means.columns
    titles = [*(f"{title}, %" for title in TITLES.values()), "log-loss", "Brier score"]
    numbers = ["rows", *titles, *(["seconds to fit"] if timed else [])]
    body = [
        (
            learner_name((row["model"], row["columns"])),
            row["training_set"].replace("_", " "),
            wording.count(row["rows"]),
            *(wording.percentage(row[name], row[f"{name}_std"]) for name in TITLES),
            *(wording.number(row[name]) for name in ("log_loss", "brier")),
            *([wording.seconds(row["fit_seconds"])] if timed else []),
        )
        for row in means.to_dict("records")
    ]
    return ShownTable(
        columns("model", "trained on", *numbers, numeric=numbers),
        body,
        "Trained on rows drawn from the condensed table (condensed), on its rows themselves (condensed bare), on "
        "random rows of the source (as many, as many with the same classes and class weights, several times as many), "
        "and on the whole table; tested on rows that nothing else has seen. The nearest neighbour is trained on the "
        "condensed rows themselves. AUC is one-vs-rest, the mean over classes; of log-loss and Brier score less is "
        f"better. {_over_seeds(int(means['seeds'].iloc[0]))}",
    )


def _over_seeds(seeds: int) -> str:
    if seeds == 1:
        return "One seed; another seed gives other scores."
    return f"Mean and standard deviation over {seeds} seeds; each draws another random sample."


def worth_table(worth: pd.DataFrame) -> ShownTable | None:
    """Return the worth of a condensed row by model and metric, None when it was not measured."""
    if worth.empty:
        return None
    body = [
        (
            learner_name((row["model"], row["columns"])),
            TITLES[row["metric"]],
            worth_text(row),
            worth_interval(row) or "one draw",
        )
        for row in worth.to_dict("records")
    ]
    return ShownTable(
        columns("model", "by", "a condensed row is worth", "interval", numeric=["interval"]),
        body,
        "The number of random rows that give a model the score it has from the condensed rows, divided by the number "
        "of condensed rows. The interval holds nine in ten of the values from resampled draws and seeds. AUC does not "
        "depend on the class mix; accuracy and macro-F1 do.",
    )


def class_scores_table(table: CondensedTable, by_class: pd.DataFrame) -> ShownTable | None:
    """Return what :func:`~c2tc_pipeline.evaluation.row_worth.class_means` returned as a table, None without scores."""
    if by_class.empty:
        return None
    styles = class_styles(table.classes, table.class_rows)
    ordered = by_class.sort_values(["model", "columns", "class"], kind="stable")
    body = [
        (
            learner_name((row["model"], row["columns"])),
            _class_cell(styles[row["class"]]),
            row["training_set"],
            *(wording.percentage(row[metric], 0.0) for metric in CLASS_TITLES),
        )
        for row in ordered.to_dict("records")
    ]
    titles = [f"{title}, %" for title in CLASS_TITLES.values()]
    return ShownTable(
        [Column("model"), Column(table.label_name), Column("trained on"), *columns(*titles, numeric=titles)],
        body,
        "Means over the seeds. AUC is against all other classes. A dash: no test row is of this class.",
    )
