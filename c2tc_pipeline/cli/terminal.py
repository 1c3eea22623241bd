"""Terminal output of ``c2tc condense``: progress bars, and the summary at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.reports.verdict import weak_references
from c2tc_pipeline.reports.wording import percentage

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
    """Print sizes, classes, objective, columns, notices, seconds and scores of a condensed table."""
    summary = table.summary
    console.print()
    if summary.get("verdict"):
        console.print(escape(summary["verdict"]), style="bold")
    console.print(
        f"[bold]{escape(summary['table'])}[/]: {summary['rows_in']:,} rows → [bold]{summary['rows_out']:,}[/] "
        f"(1 : {summary['rows_in'] / summary['rows_out']:,.0f}), {summary['columns_in']} columns → "
        f"{summary['columns_encoded']} encoded"
    )
    console.print(_columns(table))
    console.print(_classes(table))
    bound = "" if summary["bound"] is None else f", bound {summary['bound']:,.6g} (gap {summary['gap']:.2%})"
    console.print(
        f"Objective {summary['objective']:,.6g}{bound}; allocation {table.allocation.method}, "
        f"gamma {table.allocation.gamma:g}, {summary['kmeans_runs']} k-means runs"
    )
    seconds = summary["seconds"]
    stages = " · ".join(f"{stage} {value:.2f}" for stage, value in seconds.items())
    console.print(f"Seconds: {stages} · [bold]total {sum(seconds.values()):.2f}[/]")
    for notice in table.notices:
        console.print(f"[yellow]Notice[/] {escape(str(notice))}")
    if "scores" in summary:
        console.print(_scores(summary["scores"]))
        for sentence in weak_references(pd.DataFrame(summary["scores"])):
            console.print(f"[yellow]Notice[/] {escape(sentence)}")


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
        shares = f"{before / rows_in:.1%}", f"{after / rows_out:.1%}"
        shown.add_row(escape(str(label)), f"{before:,}", shares[0], f"{after:,}", shares[1], f"{before / after:,.0f}")
    rest = counts.iloc[_CLASSES_SHOWN:]
    if len(rest):
        shown.add_row(f"… {len(rest)} others", f"{rest['before'].sum():,}", "", f"{rest['after'].sum():,}", "", "")
    return shown


def _scores(scores: list[dict[str, Any]]) -> Table:
    numbers = ("rows", "accuracy", "macro-F1", "AUC", "seconds")
    shown = _table("Scores on test rows", texts=("model", "columns", "trained on"), numbers=numbers)
    for column in shown.columns:
        column.no_wrap = True
    for row in scores:
        shown.add_row(
            escape(row["model"]),
            row["columns"],
            row["training_set"].replace("_", " "),
            f"{row['rows']:,}",
            *(percentage(row[name], row[f"{name}_std"]) for name in ("accuracy", "macro_f1", "auc")),
            f"{row['fit_seconds']:.2f}",
        )
    return shown
