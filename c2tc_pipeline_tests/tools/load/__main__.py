"""The commands that measure what docs/load.md reports."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

SIZES = (30, 100, 300)
FINAL = ("SUCCESS", "FAILURE", "CANCELED")


def _table(title: str, rows: Iterable[tuple[Any, ...]], names: tuple[str, ...]) -> None:
    click.echo(f"\n{title}\n")
    click.echo("| " + " | ".join(names) + " |\n|" + "---|" * len(names))
    for row in rows:
        click.echo("| " + " | ".join(f"{each:.3g}" if isinstance(each, float) else f"{each}" for each in row) + " |")


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="c2tc-load-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure the pipeline under load, and print Markdown tables."""
    warnings.simplefilter("ignore")


@main.command()
@click.argument("sizes", nargs=-1, type=click.IntRange(1))
def catalogue(sizes: tuple[int, ...]) -> None:
    """Definitions and ticks of catalogues of SIZES tables times three ratios; 30, 100 and 300 by default."""
    from c2tc_pipeline.pipeline.instance import open_instance
    from c2tc_pipeline_tests.pipeline.toy_pipeline import record_everything
    from c2tc_pipeline_tests.tools.load import catalogues as measure

    for size in sizes or SIZES:
        with _folder() as folder:
            tables = measure.make_catalogue(folder, size)
            with open_instance(folder / "home") as instance:
                ticks = []
                for _ in range(2):  # nothing made, all made
                    ticks += [*measure.sensor_ticks(instance, tables), *measure.schedule_ticks(instance, tables)]
                    if not instance.get_asset_keys():
                        record_everything(instance, tables)
                ticks += [measure.step_begin(instance, tables, asset) for asset in ("encoded_table", "condensed_table")]
            loading = [("definitions", *measure.load_definitions(folder))]
            loading.append(("dagster definitions validate", measure.validate_definitions(folder), 0.0))
            _table(f"{size} tables: loading", loading, ("what", "CPU seconds", "MB more"))
            names = ("evaluation", "CPU seconds", "statements", "records", "runs requested")
            _table(f"{size} tables: ticks", (tuple(asdict(tick).values()) for tick in ticks), names)


@main.command()
@click.option("--tables", type=click.IntRange(1), default=50, show_default=True)
@click.option("--minutes", type=float, default=15.0, show_default=True, help="At most.")
def delivery(tables: int, minutes: float) -> None:
    """Deliver new tables to a running daemon, and wait for their reports and the leaderboard."""
    from c2tc_pipeline_tests.pipeline.live import Site
    from c2tc_pipeline_tests.tools.load import delivery as measure
    from c2tc_pipeline_tests.tools.load.catalogues import make_catalogue

    measure.adopt_orphans()
    with _folder() as folder, Site(folder) as site:
        make_catalogue(folder, tables)
        with site.running("dagster-daemon", "run"):
            site.call("dagster", "sensor", "start", "--start-all")
            told = measure.follow(site, 60.0 * minutes)
        rows = [(job, status.lower(), number) for (job, status), number in sorted(told.ended.items())]
        _table(f"{tables} tables in {told.seconds:.0f} s", rows, ("job", "ended with", "runs"))
        click.echo(f"\nDaemon, code servers and runs: {measure.cpu_of_children():.0f} CPU seconds.")


@main.command()
@click.option("--tables", type=click.IntRange(1), default=12, show_default=True)
def prompt(tables: int) -> None:
    """CPU seconds of ``c2tc run`` over a whole catalogue: all runs in one process."""
    import os
    import subprocess
    import sys

    from c2tc_pipeline_tests.tools.load.catalogues import make_catalogue
    from c2tc_pipeline_tests.tools.load.delivery import cpu_of_children

    with _folder() as folder:
        make_catalogue(folder, tables)
        environment = {**os.environ, "C2TC_CATALOGUE": "catalog.yaml", "C2TC_CACHE_DIR": str(folder / "cache")}
        for name in ("first time", "up to date"):
            before = cpu_of_children()
            command = [sys.executable, "-m", "c2tc_pipeline", "run"]
            subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
            click.echo(f"c2tc run, {tables} tables, {name}: {cpu_of_children() - before:.0f} CPU seconds.")


@main.command()
@click.option("--steps", type=click.Choice(["apart", "together"]), default="apart", show_default=True)
def run(steps: str) -> None:
    """CPU seconds of a run of each job, for one small table."""
    from c2tc_pipeline_tests.tools.load.delivery import run_costs

    with _folder() as folder:
        _table("A run", run_costs(folder / "site", C2TC_STEPS=steps), ("job", "CPU seconds"))


@main.command()
@click.option("--times", type=click.IntRange(1), default=200, show_default=True)
@click.option("--minutes", type=float, default=60.0, show_default=True, help="At most.")
def soak(times: int, minutes: float) -> None:
    """Make one small table repeatedly in this process, and fit a line to what it costs."""
    from c2tc_pipeline_tests.tools.load.soak import soak as measure

    with _folder() as folder:
        soaked = measure(folder / "soak", times, 60.0 * minutes)
    if not soaked.samples:
        raise click.ClickException(f"Not one materialisation ended in {minutes:g} minutes; give it more.")
    first, last = asdict(soaked.samples[len(soaked.samples) // 4]), asdict(soaked.samples[-1])
    rows = [(name, float(first[name]), float(last[name]), round(soaked.slope(name), 6)) for name in first]
    _table(f"{len(soaked.samples)} materialisations", rows, ("what", "after a quarter", "at the end", "more per run"))


if __name__ == "__main__":
    main(prog_name="python -m c2tc_pipeline_tests.tools.load")
