"""What people see of a run in a terminal: a line for each asset, and the scores at the end.

On a terminal the step at work is shown with its time; in a file or a pipe there are plain lines only.
"""

from __future__ import annotations

import io
import os
import sys
from types import TracebackType
from typing import TextIO

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from c2tc_pipeline.pipeline.run_events import RunEvent

_SETS = ("condensed", "random", "whole")
_METRICS = ("accuracy", "macro_f1")
_NAME_WIDTH = 19
_PARTITION_WIDTH = 15


def progress_console() -> Console:
    """Return a console on the error stream that a run can't take away.

    While a run is at work, Dagster leads the process's output into a file, which is shown with its logs. Progress is
    for the person who waits and goes where that output went before.
    """
    return Console(file=_own_copy(sys.stderr), highlight=False)


class RunLines:
    """Shows the events of runs, one line for each that is worth one; a context manager.

    Parameters
    ----------
    console : Console
        Where to.

    Examples
    --------
    >>> lines = RunLines(Console(width=80))
    >>> lines.begin("flights")
    >>> with lines:
    ...     lines(RunEvent("made", "encoder", seconds=11.94, cached=True))
    ✓ encoder             flights            11.9 s  cached
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None
        self._partition = ""

    def begin(self, partition: str) -> None:
        """Name the partition of the next run."""
        self._partition = partition

    def __enter__(self) -> RunLines:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def __call__(self, event: RunEvent) -> None:
        """Show an event."""
        name, text = escape(event.step), escape(event.text)
        match event.kind:
            case "started":
                self._show(f"{name} {escape(self._partition)}")
            case "ended":
                self._show(None)
            case "made":
                self._show(None)
                cached = "  cached" if event.cached else ""
                self._line(f"[green]✓[/] {self._columns(name)} {event.seconds:6.1f} s{cached}")
            case "warned":
                self._line(f"[yellow]! {self._columns(name)}[/] {text}")
            case "retrying":
                self._line(f"[yellow]↻ {self._columns(name)}[/] {text} Tried again in {event.seconds:.0f} s.")
            case "waiting":
                self._line(f"[yellow]… {self._columns(name)}[/] Waiting: {text}.")
            case "failed":
                self._show(None)
                self._line(f"[red]✗ {self._columns(name)}[/] failed")

    def _columns(self, name: str) -> str:
        return f"{name:<{_NAME_WIDTH}} {escape(self._partition):<{_PARTITION_WIDTH}}"

    def _line(self, markup: str) -> None:
        # A sentence is not broken into lines: the terminal does that, and a pipe needs none.
        self._console.print(markup, soft_wrap=True)

    def _show(self, description: str | None) -> None:
        """Show that a step is at work, or that none is."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = None if description is None else self._progress.add_task(description, total=None)


def scores_table(title: str, scores: pd.DataFrame, seconds: dict[float, float]) -> Table:
    """Return the scores of one table, a line for each ratio and model.

    Parameters
    ----------
    title : str
        What stands above.
    scores : DataFrame
        As :func:`~c2tc_pipeline.evaluation.averages.gather_scores` returns them, of one table.
    seconds : dict of float to float
        How long each ratio took.
    """
    shown = Table(title=escape(title), title_justify="left", box=None, header_style="dim", pad_edge=False)
    shown.add_column("ratio")
    shown.add_column("rows in → out", justify="right")
    shown.add_column("model")
    for heading in ("accuracy %", "macro-F1 %"):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column("time", justify="right", no_wrap=True)
    for cell in _cells(scores):
        for number, (model, found) in enumerate(cell.groupby("model", sort=False)):
            # Ratio, rows and time stand at the first model of a cell.
            ratio, rows_in, rows_out = (found[name].iloc[0] for name in ("ratio", "rows_in", "rows_out"))
            about = (f"{ratio:g}", f"{rows_in:,} → {rows_out:,}", f"{seconds[float(ratio)]:.0f} s")
            told, size, took = about if number == 0 else ("", "", "")
            by_set = found.set_index("training_set")
            shown.add_row(told, size, escape(str(model)), *(_percentages(by_set[name]) for name in _METRICS), took)
    shown.caption = "Scores on test rows of models trained on: " + " / ".join(_SETS) + "."
    shown.caption_justify = "left"
    return shown


def _cells(scores: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the scores of each ratio, the largest first."""
    return [scores[scores["ratio"] == ratio] for ratio in sorted(scores["ratio"].unique(), reverse=True)]


def _percentages(by_set: pd.Series[float]) -> str:
    return " / ".join(f"{100 * by_set[each]:.1f}" for each in _SETS)


def _own_copy(stream: TextIO) -> TextIO:
    try:
        descriptor = os.dup(stream.fileno())
    except (OSError, io.UnsupportedOperation):
        # Not a file of the operating system, so nothing can be led elsewhere.
        return stream
    return open(descriptor, "w", encoding=stream.encoding, errors="backslashreplace", buffering=1)
