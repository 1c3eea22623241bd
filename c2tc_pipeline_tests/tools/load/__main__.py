"""The measurements of docs/load.md: its commands are ``catalogue``, ``run``, ``backfill``, ``soak``."""

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
    """Definitions, ticks and pages of catalogues of SIZES tables times three ratios; 30, 100 and 300 by default."""
    from c2tc_pipeline.pipeline.instance import open_instance
    from c2tc_pipeline_tests.pipeline.live import Site, running_dashboard
    from c2tc_pipeline_tests.tools.load.catalogues import make_catalogue, record_everything
    from c2tc_pipeline_tests.tools.load.definitions import load_definitions, validate_definitions
    from c2tc_pipeline_tests.tools.load.pages import launch, pages
    from c2tc_pipeline_tests.tools.load.ticks import schedule_ticks, sensor_ticks, step_frame

    for size in sizes or SIZES:
        with _folder() as folder:
            tables = make_catalogue(folder, size)
            with open_instance(folder / "home") as instance:
                looks = [*sensor_ticks(instance, tables, "nothing made")]
                looks += schedule_ticks(instance, tables, "nothing made")
                records = record_everything(instance, tables)
                looks += sensor_ticks(instance, tables, "all made")
                looks += schedule_ticks(instance, tables, "all made")
                looks += [step_frame(instance, tables, asset) for asset in ("encoded_table", "condensed_table")]
            loaded, (wall, cpu) = load_definitions(folder), validate_definitions(folder)
            _table(
                f"{size} tables, {records} materialisations: loading",
                [
                    ("definitions", loaded.seconds, loaded.cpu, loaded.grown_mb, loaded.held_mb),
                    ("dagster definitions validate", wall, cpu, "", ""),
                ],
                ("what", "seconds", "CPU seconds", "MB more", "MB in all"),
            )
            names = ("who", "seconds", "CPU seconds", "statements", "records", "runs asked for")
            _table(f"{size} tables: ticks", (tuple(asdict(tick).values()) for tick in looks), names)
            with Site(folder) as site, running_dashboard(site) as dashboard:
                answers = [*pages(dashboard), launch(dashboard, next(iter(tables)))]
            rows = [(page.name, page.seconds, page.size) for page in answers]
            _table(f"{size} tables: pages", rows, ("page", "seconds", "bytes"))


@main.command()
@click.option("--tables", type=click.IntRange(1), default=300, show_default=True)
@click.option("--minutes", type=float, default=15.0, show_default=True, help="For both jobs together.")
def backfill(tables: int, minutes: float) -> None:
    """Backfill a whole catalogue through the queue: first the ingest, then the cells of what was ingested."""
    from c2tc_pipeline.pipeline.jobs import CONDENSE, INGEST
    from c2tc_pipeline_tests.pipeline.live import Site, running_dashboard
    from c2tc_pipeline_tests.tools.load.backfill import backfill as launch
    from c2tc_pipeline_tests.tools.load.catalogues import make_catalogue
    from c2tc_pipeline_tests.tools.load.cpu import adopt_orphans, cpu_of_children, wait_for_all

    adopt_orphans()
    with _folder() as folder, Site(folder) as site:
        known = make_catalogue(folder, tables)
        with site.running("dagster-daemon", "run"), running_dashboard(site) as dashboard:
            ingest = launch(site, dashboard, INGEST, list(known), 30.0 * minutes)
            ingested = site.instance.get_materialized_partitions(_key(INGEST[-1]))
            cells = [f"{name}|{ratio!r}" for name in known if name in ingested for ratio in known[name].ratios]
            condense = launch(site, dashboard, CONDENSE, cells, 30.0 * minutes)
        wait_for_all()
        rows = [
            (
                name,
                told.wanted,
                told.queued_after,
                told.most_at_once,
                told.ended["SUCCESS"],
                told.ended["FAILURE"],
                told.ended["CANCELED"],
                told.seconds,
                told.per_minute,
            )
            for name, told in (("ingest_job", ingest), ("condense_job", condense))
        ]
        names = (
            "job",
            "partitions",
            "all queued after s",
            "most at once",
            "succeeded",
            "failed",
            "cancelled",
            "seconds",
            "a minute",
        )
        _table(f"Backfill of {tables} tables, at most {minutes:g} minutes", rows, names)
        click.echo(f"\nDaemon, dashboard, code servers and runs: {cpu_of_children():.0f} CPU seconds.")


@main.command()
@click.option("--times", type=click.IntRange(1), default=1, show_default=True)
@click.option("--steps", type=click.Choice(["apart", "together"]), default="apart", show_default=True)
@click.option("--forked/--fresh", default=True, show_default=True, help="Copies of a prepared process, or new ones.")
def run(times: int, steps: str, forked: bool) -> None:
    """CPU seconds of a run of each job, for one small table."""
    from c2tc_pipeline_tests.tools.load.run_cost import run_costs

    for _ in range(times):
        with _folder() as folder:
            costs = run_costs(folder / "site", forked=forked, C2TC_STEPS=steps)
            _table("A run", costs, ("job", "CPU seconds"))


def _key(asset: str) -> Any:
    import dagster as dg

    return dg.AssetKey(asset)


@main.command()
@click.option("--times", type=click.IntRange(0), default=200, show_default=True, help="Runs in one process.")
@click.option("--launched", type=click.IntRange(0), default=12, show_default=True, help="Runs by the daemon.")
@click.option("--minutes", type=float, default=60.0, show_default=True, help="For each of the two, at most.")
def soak(times: int, launched: int, minutes: float) -> None:
    """Make one small table again and again, and fit a line to what it costs."""
    from c2tc_pipeline_tests.tools.load.soak import Sample, soak_in_one_process, soak_through_the_daemon

    for name, measure, wanted in (
        ("in one process", soak_in_one_process, times),
        ("by the daemon", soak_through_the_daemon, launched),
    ):
        if not wanted:
            continue
        with _folder() as folder:
            told = measure(folder / "soak", wanted, 60.0 * minutes)
        if not told.samples:
            raise click.ClickException(f"Not one materialisation {name} ended in {minutes:g} minutes; give it more.")
        first, last = told.samples[len(told.samples) // 4], told.samples[-1]
        rows = [
            (field, float(asdict(first)[field]), float(asdict(last)[field]), round(told.slope(field), 6))
            for field in Sample.__dataclass_fields__
        ]
        title = f"{len(told.samples)} materialisations {name}"
        _table(title, rows, ("what", "after a quarter", "at the end", "more a run"))


if __name__ == "__main__":
    main(prog_name="python -m c2tc_pipeline_tests.tools.load")
