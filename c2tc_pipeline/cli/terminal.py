"""Terminal output of ``c2tc condense``: progress bars, and the summary at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from c2tc_pipeline.evaluation.row_worth import COMPARED_SETS
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.verdict import NOT_EVALUATED, learner_name, weak_references, worth_number

if TYPE_CHECKING:
    from c2tc_pipeline.condensation.table import CondensedTable

# More classes than this are summed up in one last line.
_CLASSES_SHOWN = 20
_COLUMNS_SHOWN = 20


class StageBars(Progress):
    """One progress bar per stage, on the error stream, so that output stays clean."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        done = SpinnerColumn(finished_text="[green]✓[/]")
        columns = (done, TextColumn("{task.description}"), BarColumn(bar_width=30), TimeElapsedColumn())
        super().__init__(*columns, console=console, disable=quiet)
        self._stages: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show progress; the signature is that of a stage listener."""
        if stage not in self._stages:
            self._stages[stage] = self.add_task(stage, total=total)
        self.update(self._stages[stage], completed=done, total=total)


def print_summary(table: CondensedTable, console: Console) -> None:
    """Print verdict, sizes, scores, classes, columns, notices, objective and seconds, as the report has them."""
    summary = table.summary
    console.print()
    if summary.get("verdict"):
        console.print(escape(summary["verdict"]), style="bold")
    else:
        console.print(NOT_EVALUATED)
    console.print(
        f"[bold]{escape(summary['table'])}[/]: {wording.count(summary['rows_in'])} rows → "
        f"[bold]{wording.count(summary['rows_out'])}[/] "
        f"({wording.one_in(summary['rows_in'], summary['rows_out'])}), {summary['columns_in']} columns → "
        f"{summary['columns_encoded']} encoded"
    )
    if summary.get("scores"):
        console.print(_scores(summary))
    console.print(_classes(table))
    console.print(_columns(table))
    for notice in table.notices:
        console.print(f"[yellow]Notice[/] {escape(str(notice))}")
    for sentence in weak_references(pd.DataFrame(summary["scores"])) if summary.get("scores") else ():
        console.print(f"[yellow]Notice[/] {escape(sentence)}")
    bound = summary["bound"]
    known = "" if bound is None else f", bound {wording.number(bound)} (gap {wording.gap(summary['gap'])})"
    console.print(
        f"Objective {wording.number(summary['objective'])}{known}; allocation {table.allocation.method}, "
        f"gamma {table.allocation.gamma:g}, {summary['kmeans_runs']} k-means runs"
    )
    seconds = summary["seconds"]
    stages = " · ".join(f"{stage} {value:.2f}" for stage, value in seconds.items())
    # The report was written before the last stage ended.
    total = sum(value for stage, value in seconds.items() if stage != "write")
    console.print(f"Seconds: {stages} · [bold]in all but writing {wording.seconds(total)}[/]")


def _table(title: str, *, texts: Sequence[str], numbers: Sequence[str] = ()) -> Table:
    shown = Table(title=title, title_justify="left", box=None, header_style="dim", pad_edge=False)
    for heading in texts:
        shown.add_column(heading, overflow="fold")
    for heading in numbers:
        shown.add_column(heading, justify="right", no_wrap=True)
    return shown


def _columns(table: CondensedTable) -> Table:
    shown = _table("Columns", texts=("column", "role", "encoding", "why"))
    # Of a wide table only the columns that are not numeric are shown.
    wide = len(table.roles) > _COLUMNS_SHOWN
    rows = (table.roles[table.roles["role"] != "numeric"] if wide else table.roles).head(_COLUMNS_SHOWN)
    for row in rows.to_dict(orient="records"):
        shown.add_row(*(escape(str(row[name])) for name in ("column", "role", "encoding", "reason")))
    if len(table.roles) > len(rows):
        shown.add_row(f"… and {len(table.roles) - len(rows)} more, in the report", "", "", "")
    return shown


def _classes(table: CondensedTable) -> Table:
    numbers = ("rows before", "share", "rows after", "share", "rows behind one")
    shown = _table(f"Classes of {escape(table.label_name)}", numbers=numbers, texts=("class",))
    counts = pd.DataFrame({"label": table.classes, "before": table.class_rows, "after": table.allocation.counts})
    counts = counts.sort_values("before", ascending=False, kind="stable")
    rows_in, rows_out = sum(table.class_rows), int(table.allocation.counts.sum())
    for label, before, after in counts.head(_CLASSES_SHOWN).itertuples(index=False):
        shares = wording.share(before / rows_in), wording.share(after / rows_out)
        counts_shown = wording.count(before), shares[0], wording.count(after), shares[1]
        shown.add_row(escape(wording.shortened(label, 40)), *counts_shown, wording.per_row(before / after))
    rest = counts.iloc[_CLASSES_SHOWN:]
    if len(rest):
        shown.add_row(f"… {len(rest)} others", f"{rest['before'].sum():,}", "", f"{rest['after'].sum():,}", "", "")
    return shown


def _scores(summary: dict[str, Any]) -> Table:
    """Return a line for each model: its scores from the condensed, a random and the whole table, and the row worth."""
    means, worth = pd.DataFrame(summary["scores"]), pd.DataFrame(summary.get("row_worth", []))
    shown = _table("Scores on test rows, %", texts=("model",), numbers=("accuracy", "AUC", "row worth"))
    worths = {} if worth.empty else worth[worth["metric"] == "auc"].set_index(["model", "columns"]).to_dict("index")
    kinds = [kind for kind in COMPARED_SETS if kind in set(means["training_set"])]
    for key, own in means.groupby(["model", "columns"], sort=False):
        by_set = own.set_index("training_set")
        scores = (
            "/".join(wording.percentage(by_set[name][kind], 0.0) for kind in kinds) for name in ("accuracy", "auc")
        )
        shown.add_row(escape(learner_name(key)), *scores, worth_number(worths.get(key, {"bound": None})))
    trained = {"condensed": "the condensed table", "random": "as many random rows", "whole": "the whole table"}
    shown.caption = (
        f"Trained on {' / '.join(trained[kind] for kind in kinds)}. Row worth: random rows that a condensed row "
        "replaces, by AUC. The report has more scores."
    )
    shown.caption_justify = "left"
    return shown
