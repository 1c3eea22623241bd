"""Commands of the pipeline: ``c2tc run`` and ``c2tc ui``; heavy imports happen inside."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from c2tc_pipeline.cli.storage import storage_option
from c2tc_pipeline.common import defaults

if TYPE_CHECKING:
    from c2tc_pipeline.pipeline.run_events import RunEvent


def _with_place(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for catalogue, storage and instance, which are also environment variables."""
    for option in (
        click.option(
            "--home",
            type=click.Path(path_type=Path),
            envvar="DAGSTER_HOME",
            default=defaults.DAGSTER_HOME,
            show_default=True,
            show_envvar=True,
            help="Folder of the Dagster instance.",
        ),
        storage_option,
        click.option(
            "--catalogue",
            type=click.Path(path_type=Path),
            envvar="C2TC_CATALOGUE",
            default=defaults.CATALOGUE,
            show_default=True,
            show_envvar=True,
        ),
    ):
        command = option(command)
    return command


@click.command()
@click.option("--table", help="One table of the catalogue.  [default: all]")
@click.option("--ratio", type=float, help="One of its ratios.  [default: all]")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=defaults.RESULTS,
    show_default=True,
    help="Folder for results, one folder per table; replaced if c2tc made it.",
)
@click.option("--force", is_flag=True, help="Also make what is up to date.")
@_with_place
def run(
    table: str | None, ratio: float | None, out: Path, force: bool, catalogue: Path, storage: str, home: Path
) -> None:
    """Run the pipeline: tables of the catalogue from source to report, through Dagster, in this process.

    \b
    Examples:
      c2tc run --table departures
      c2tc run --table departures --ratio 0.001

    What is up to date is not made again: same source, settings and algorithms.
    """
    from c2tc_pipeline.tables.catalogue import chosen_cells, load_catalogue

    # Mistakes are reported before Dagster is imported, which takes seconds.
    chosen = chosen_cells(load_catalogue(catalogue.absolute()), table, ratio)

    from rich.console import Console

    from c2tc_pipeline.pipeline.formats import PAGE_NAME
    from c2tc_pipeline.pipeline.instance import Workplace
    from c2tc_pipeline.pipeline.run_events import RunLines, progress_console, scores_table
    from c2tc_pipeline.pipeline.runner import read_results, run_tables
    from c2tc_pipeline.reports.verdict import verdict

    place = Workplace(catalogue, storage, home)
    try:
        with RunLines(progress_console()) as lines:
            done, board = run_tables(place, place.tables(), chosen, out, lines, force=force)
    except KeyboardInterrupt:
        click.echo("Error: Interrupted; what was finished before is stored, and nothing of the rest.", err=True)
        sys.exit(130)
    console = Console(highlight=False)
    for made in done:
        if made.folder is not None:
            console.print()
            scores = read_results(place.store(), made.table, made.ratios)
            for found in scores.values():
                console.print(verdict(found), style="bold", markup=False)
            console.print(scores_table(made.table, scores))
            click.echo(f"Report: {made.folder / PAGE_NAME}")
            for each in made.ratios:
                click.echo(f"Condensed: {made.folder / repr(each) / 'condensed_original.parquet'}")
    failures = [failure for made in done for failure in made.failures] + board
    for failure in failures:
        click.echo(f"Error: {_sentence(failure)}", err=True)
    if failures:
        sys.exit(2 if all(failure.mistake for failure in failures) else 1)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(1, 65535), default=3000, show_default=True)
@_with_place
def ui(host: str, port: int, catalogue: Path, storage: str, home: Path) -> None:
    """Serve the dashboard of the pipeline, with schedules and sensors; Ctrl-C stops it."""
    from c2tc_pipeline.cli.ui import serve_dashboard
    from c2tc_pipeline.pipeline.instance import Workplace

    place = Workplace(catalogue, storage, home)
    sys.exit(serve_dashboard(place, host=host, port=port, report=click.echo))


def _sentence(failure: RunEvent) -> str:
    if failure.mistake:
        return failure.text
    what = f"{failure.asset} of {failure.scope}" if failure.step else "The run"
    return f"{what} failed ({failure.text.rstrip('.')}); c2tc ui shows its log."
