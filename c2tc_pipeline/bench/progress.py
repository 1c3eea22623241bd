"""Progress bar of an experiment."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class WorkBar(Progress):
    """One progress bar for a long piece of work, with an estimate of the time left."""

    def __init__(self, console: Console, name: str, *, quiet: bool = False) -> None:
        left = (TextColumn("left"), TimeRemainingColumn())
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=40),
            TimeElapsedColumn(),
            *left,
        )
        # Cells differ a hundredfold in length, so the speed is the mean of the last hour.
        super().__init__(*columns, console=console, disable=quiet, speed_estimate_period=3_600)
        self._work = self.add_task(escape(name), total=None)

    def __call__(self, done: float, total: float) -> None:
        """Show progress."""
        self.update(self._work, completed=done, total=total)
