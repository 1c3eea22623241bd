"""HTML pages from Jinja2 templates, and the report of one condensed table.

Functions here prepare plain values; the templates beside this module lay them out. Autoescaping turns every value into
text, after :func:`~c2tc_pipeline.reports.wording.printable` has removed what HTML cannot hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd

from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.exhibits import stages_exhibit, table_exhibits, worth_exhibits
from c2tc_pipeline.reports.markdown import Cell, Column, ShownTable, columns
from c2tc_pipeline.reports.picture import ClassStyle, class_styles
from c2tc_pipeline.reports.verdict import weak_references, worth_text

MAX_ROWS = 50
MAX_COLUMNS = 100
TRAINING_SETS = ("condensed", "random", "whole")
_REPEATED = (
    "A condensed row repeats a record when it equals a source row in every column: because it stands for that row "
    "alone (a singleton) or for equal rows, because it was picked (a medoid), or by coincidence."
)
_OBJECTIVE = (
    "The objective adds up, over the classes, the squared distances of the source rows to their condensed rows, "
    "divided by (rows of the class) to the power {gamma}; smaller is better."
)
_BOUND = (
    "No allocation of the same number of rows has an objective below the lower bound on the same loss curves; the gap "
    "is (objective - bound) / objective."
)


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: value if hasattr(value, "__html__") else wording.printable(value),
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_page(template: str, kind: str, name: str, **values: Any) -> str:
    """Return a self-contained page, titled ``kind: name``, from a template that extends ``page.html``."""
    return _environment().get_template(template).render(kind=kind, name=name, **values)


def render_report(table: CondensedTable) -> str:
    """Return a condensed table's report as one self-contained HTML page; the same table gives the same text."""
    summary = table.summary
    part = table_values(
        table,
        MAX_ROWS,
        pd.DataFrame(summary.get("scores", [])),
        pd.DataFrame(summary.get("row_worth", [])),
        summary.get("verdict", ""),
    )
    part["explanation"] = explanation([table])
    if stages := summary.get("seconds"):
        total = wording.seconds(sum(stages.values()))
        part["tiles"].append(("Time", total, wording.counted(len(stages), "stage", "stages")))
        part["exhibits"].append(stages_exhibit(stages))
    name = summary.get("table") or "table"
    settings = {"seed": summary.get("seed"), "ratio": summary.get("ratio"), **summary.get("settings", {})}
    return render_page("report.html", "Condensed table", name, part=part, **ending_values(table, settings))


def table_values(
    table: CondensedTable, max_rows: int, means: pd.DataFrame, worth: pd.DataFrame, verdict: str
) -> dict[str, Any]:
    """Return the values that the template's ``condensed`` macro shows of one condensed table.

    ``means`` are averaged scores and ``worth`` the row worths; both may be empty.
    """
    return {
        "verdict": verdict,
        "tiles": _tiles(table),
        "explanation": "",
        "notices": [*map(str, table.notices), *([] if means.empty else weak_references(means))],
        "worth": worth_table(worth),
        "worth_exhibits": list(worth_exhibits(means).values()),
        "scores": scores_table(means),
        "class_scores": None,
        "classes": _classes_table(table),
        "exhibits": list(table_exhibits(table)),
        "rows": _rows_table(table, max_rows),
    }


def ending_values(table: CondensedTable, settings: Mapping[str, Any]) -> dict[str, ShownTable]:
    """Return the tables at the end of a page: columns, settings and versions."""
    pairs = columns("name", "value")
    return {
        "columns": _columns_table(table),
        "settings": ShownTable(pairs, list(_flat(settings))),
        "versions": ShownTable(pairs, list(_flat(table.summary.get("versions", {})))),
    }


def explanation(tables: Iterable[CondensedTable]) -> str:
    """Explain the headline numbers of these tables."""
    tables = list(tables)
    gammas = dict.fromkeys(wording.number(table.allocation.gamma) for table in tables)
    sentences = [_REPEATED, _OBJECTIVE.format(gamma=" or ".join(gammas))]
    if any(table.summary.get("bound") is not None for table in tables):
        sentences.append(_BOUND)
    return " ".join(sentences)


def repeated_rows(table: CondensedTable) -> Mapping[str, int]:
    """Return the counts of rows that repeat a record; tables stored without them have their singletons."""
    singletons = int((table.weight == 1).sum())
    return table.summary.get("repeated_rows", {"total": singletons, "singletons": singletons})


def _tiles(table: CondensedTable) -> list[tuple[str, str, str]]:
    """Return the headline numbers as title, value and remark."""
    summary, repeated = table.summary, repeated_rows(table)
    rows_in, rows_out = int(summary["rows_in"]), int(summary["rows_out"])
    quality = f"no lower bound is known for allocation by {table.allocation.method}"
    if summary.get("bound") is not None:
        quality = f"lower bound {wording.number(summary['bound'])}, gap {wording.share(summary.get('gap'))}"
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
    rows = f"{wording.count(rows_in)} → {wording.count(rows_out)}"
    return [
        ("Rows", rows, wording.one_in(rows_in, rows_out)),
        ("Objective", wording.number(summary.get("objective")), quality),
        ("Rows that repeat a record", wording.count(repeated["total"]), remark),
    ]


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
            f"{before / after:,.1f}",
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


def _rows_table(table: CondensedTable, max_rows: int) -> ShownTable:
    """Return the first condensed rows in the original schema, the label first."""
    original, label = table.original_rows, table.label_name
    features = [name for name in original.columns if name != label]
    shown = original[[label, *features[:MAX_COLUMNS]]].iloc[:max_rows]
    heads = [Column(wording.shortened(name, 40), dtype.kind in "iuf") for name, dtype in shown.dtypes.items()]
    body = [
        (wording.count(weight), *(wording.cell(value) for value in row))
        for weight, row in zip(table.weight.iloc[:max_rows], shown.itertuples(index=False), strict=True)
    ]
    extent = wording.counted(len(original), "row", "rows")
    extent = f"All {extent}" if len(shown) == len(original) else f"The first {len(shown)} of {extent}"
    if len(features) > MAX_COLUMNS:
        extent += f", the first {MAX_COLUMNS} of {wording.count(len(features))} columns"
    return ShownTable(
        [Column("stands for", True), *heads],
        body,
        f"{extent}, in the units and categories of the source table. "
        "The first column is the row's weight: how many source rows it stands for.",
    )


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
    metrics = ["accuracy, %", "macro-F1, %", "AUC, %", "log-loss", "Brier score"]
    numbers = ["rows", *metrics, *(["seconds to fit"] if timed else [])]
    body = [
        (
            row["model"],
            row["columns"],
            row["training_set"],
            wording.count(row["rows"]),
            *(wording.percentage(row[name], row[f"{name}_std"]) for name in ("accuracy", "macro_f1", "auc")),
            *(wording.number(row[name]) for name in ("log_loss", "brier")),
            *([wording.seconds(row["fit_seconds"])] if timed else []),
        )
        for row in means.to_dict("records")
    ]
    return ShownTable(
        columns("model", "columns", "trained on", *numbers, numeric=numbers),
        body,
        "Models trained on rows drawn from the condensed table (condensed), on its rows themselves (condensed_bare), "
        "on rows drawn at random from the source (as many as condensed rows, as many with their classes and class "
        "weights, and several times as many), and on the whole table, tested on rows of the test split, which nothing "
        "else has seen. The nearest neighbour is trained on the condensed rows themselves. AUC is one-vs-rest, the "
        "mean over classes; of log-loss and Brier score less is better. Mean and standard deviation over "
        f"{wording.counted(int(means['seeds'].iloc[0]), 'seed', 'seeds')}; each seed draws another random sample.",
    )


def worth_table(worth: pd.DataFrame) -> ShownTable | None:
    """Return the worth of a condensed row by model and metric, None when it was not measured."""
    if worth.empty:
        return None
    titles = {"auc": "AUC", "accuracy": "accuracy", "macro_f1": "macro-F1"}
    body = [
        (
            row["model"],
            row["columns"],
            titles[row["metric"]],
            worth_text(row),
            # A single draw has no interval.
            "one draw" if row["low"] == row["high"] else f"{row['low']:.2g} to {row['high']:.2g}",
        )
        for row in worth.to_dict("records")
    ]
    return ShownTable(
        columns("model", "columns", "by", "a condensed row is worth", "interval", numeric=["interval"]),
        body,
        "The number of random rows that give a model the score it has from the condensed rows, divided by the number "
        "of condensed rows. The interval holds nine in ten of the values from resampled draws and seeds. AUC does not "
        "depend on the class mix; accuracy and macro-F1 do.",
    )


def class_scores_table(table: CondensedTable, scores: pd.DataFrame) -> ShownTable | None:
    """Return F1 and AUC of each class by model and training set, from one row per trained model; None without scores.

    Models on original columns are left out.
    """
    if scores.empty:
        return None
    scores = scores[scores["columns"] == "encoded"]
    found = {}
    for (model, name), group in scores.groupby(["model", "training_set"], sort=False):
        for metric in ("class_f1", "class_auc"):
            # A class without test rows has no score, whatever the seed.
            values = np.array([[np.nan if v is None else v for v in row] for row in group[metric]], dtype=np.float64)
            found[model, name, metric] = (values.mean(axis=0), values.std(axis=0))
    names = [name for name in TRAINING_SETS if name in set(scores["training_set"])]
    shown = [(name, metric) for metric in ("class_f1", "class_auc") for name in names]
    absent = np.full((2, len(table.classes)), np.nan)
    body = [
        (
            model,
            _class_cell(style),
            *(wording.percentage(*(part[place] for part in found.get((model, *key), absent))) for key in shown),
        )
        for model in scores["model"].unique()
        for place, style in enumerate(class_styles(table.classes, table.class_rows))
    ]
    titles = {"class_f1": "F1", "class_auc": "AUC"}
    return ShownTable(
        [Column("model"), Column(table.label_name), *(Column(f"{titles[m]} {n}, %", True) for n, m in shown)],
        body,
        "F1 and AUC (against all other classes) of each class for models trained on the condensed rows, on random rows "
        "and on the whole table; mean and standard deviation over the seeds. A dash: no test row is of this class.",
    )
