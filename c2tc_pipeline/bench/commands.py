"""``c2tc bench``: experiments on the paper's tables or on your own, and the speed and scale measurements."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from c2tc_pipeline.common import defaults
from c2tc_pipeline.common.errors import InputError

SPEED = "speed"
SCALE = "scale"
# Options of speed and of scale beside --data, --out and --quiet; all others are those of experiments.
_OWN = {SPEED: {"tables", "seeds", "parts", "time_limit"}, SCALE: {"rows", "memory"}}


def _names(context: click.Context, option: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (value or "").split(",") if part.strip())


def _numbers(context: click.Context, option: click.Parameter, value: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in _names(context, option, value))
    except ValueError:
        raise InputError(f"--ratios {value!r} must be numbers separated by commas, such as 0.01,0.001.") from None


@click.command()
@click.argument("name", required=False)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder with the paper's tables as Parquet files; departures is also found in data.",
)
@click.option("--catalogue", type=click.Path(path_type=Path), help="A catalogue of your own tables, instead of --data.")
@click.option(
    "--tables", callback=_names, help="Only these tables, separated by commas; with --catalogue, all by default."
)
@click.option("--ratios", callback=_numbers, help="Other ratios, separated by commas.")
@click.option("--spaces", callback=_names, help="Other column spaces, such as hcfe or label, separated by commas.")
@click.option("--methods", callback=_names, help="Only these methods, separated by commas.")
@click.option("--without", callback=_names, help="All methods but these, separated by commas.")
@click.option("--models", callback=_names, help="Other models, separated by commas.")
@click.option("--seeds", type=click.IntRange(1, 100), help="Number of repetitions.")
@click.option("--first-seed", type=click.IntRange(0, 1_000_000), help="Seed of the first repetition.  [default: 0]")
@click.option(
    "--on",
    "judged_on",
    type=click.Choice(["test", "validation"]),
    help="Rows that models are scored on; choose settings on validation rows.  [default: test]",
)
@click.option("--recipe", help="How networks are trained: default or paper.")
@click.option("--group-duplicates", is_flag=True, help="Keep rows with equal features on one side of each split.")
@click.option("--out", type=click.Path(path_type=Path), help="Output directory.  [default: runs/bench/NAME]")
@click.option(
    "--jobs",
    type=click.IntRange(0, 1024),
    help="Parallel processes; 0 runs everything in this one.  [default: one per core]",
)
@click.option("--cache", type=click.Path(path_type=Path), help="Cache directory of finished work.")
@click.option("--parts", callback=_names, help="Only these parts of the speed benchmark, separated by commas.")
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    help="Time limit of each reference of the speed benchmark, in seconds.  [default: 300]",
)
@click.option(
    "--rows", type=click.IntRange(1_000), help="Rows of the largest table of the scale check.  [default: 20,000,000]"
)
@click.option(
    "--memory",
    type=click.FloatRange(0, min_open=True),
    help="Memory limit of the scale check in blocks, in gigabytes.  [default: 1.5]",
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def bench(name: str | None, data: Path | None, out: Path | None, quiet: bool, **options: Any) -> None:
    """Run the experiment NAME, or list them all.

    \b
    Examples:
      c2tc bench
      c2tc bench worth --data tables --tables departures,adult
      c2tc bench overall --data tables --without dm,gm,mtt
      c2tc bench overall --catalogue data/catalog.yaml --tables departures --seeds 2
      c2tc bench my_grid.yaml --data tables
      c2tc bench speed --data tables --parts stages,search

    Finished cells are cached, so a stopped experiment continues from there. It writes scores.parquet,
    statistics.parquet, table.md, report.html and figures. NAME may be a YAML file of your own.

    "speed" measures the package beside reference implementations, on this machine: stages, search, autoencoder,
    throughput, whole and rivals, which are its --parts. --seeds is the number of repeats, --tables restricts it to some
    of adult, diabetes130us, airlines, covertype and jannis. It writes speed.parquet, speed.md, speed.json and figures;
    nothing else should run at the same time.

    "scale" condenses a synthetic table (--rows) and three smaller ones under a memory limit (--memory), and the largest
    in memory beside it. It needs some 15 GB of disk and as much memory for 20 million rows, and writes scale.md and
    scale.json. --data is the folder of the synthetic tables; by default it is temporary.
    """
    if name is None:
        _list()
        return
    if name not in _OWN:
        from c2tc_pipeline.bench.experiments import experiment_path

        # Before the heavy imports.
        experiment_path(name)
    allowed = _OWN.get(name, set(options) - (_OWN[SPEED] | _OWN[SCALE]) | {"tables", "seeds"})
    for option, value in options.items():
        if option not in allowed and value not in (None, False, ()):
            shown = "--on" if option == "judged_on" else f"--{option.replace('_', '-')}"
            raise InputError(f"{shown} has no meaning for 'c2tc bench {name}'; leave it out.")
    out = out or defaults.BENCH / Path(name).stem
    report: Callable[[str], Any] = (lambda line: None) if quiet else (lambda line: click.echo(line, err=True))
    found = ""
    if name == SCALE:
        found = _scale(data, out, report, rows=options["rows"] or 20_000_000, memory=options["memory"] or 1.5)
    elif name == SPEED:
        _speed(data, out, report, options)
    else:
        found = _experiment(name, data, out, quiet, {key: options[key] for key in allowed})
    if not quiet:
        click.echo("\n".join(filter(None, [found, f"Written: {out}"])))


def _list() -> None:
    from c2tc_pipeline.bench.experiments import experiment_names
    from c2tc_pipeline.bench.experiments.grid import load_experiment

    for name in experiment_names():
        experiment = load_experiment(name)
        click.echo(f"{name}: {experiment.title}. {experiment.question}")
    click.echo(f"{SPEED}: Speed beside reference implementations, as ratios within one run.")
    click.echo(f"{SCALE}: A table larger than memory, in blocks under a memory limit, and in memory beside it.")


def _publish(out: Path, kind: str, write: Callable[..., object]) -> None:
    from c2tc_pipeline.storage.artefact import publish_directory

    command = shlex.join(["c2tc", *sys.argv[1:]])
    publish_directory(out, lambda folder: write(folder, command=command), kind=kind, replace=True)


def _scale(data: Path | None, out: Path, report: Callable[[str], Any], *, rows: int, memory: float) -> str:
    from c2tc_pipeline.bench.scale import check_scale
    from c2tc_pipeline.storage.artefact import ScratchDirectory, check_target

    check_target(out, kind=SCALE, replace=True)
    with ScratchDirectory() as scratch:
        done = check_scale(data or Path(scratch), rows, memory_limit=round(memory * 1e9), report=report)
    _publish(out, SCALE, done.write_files)
    return done.to_markdown()


def _speed(data: Path | None, out: Path, report: Callable[[str], Any], options: dict[str, Any]) -> None:
    from c2tc_pipeline.bench.reports.speed import ARTEFACT_KIND, write_speed
    from c2tc_pipeline.bench.speed.measuring import Bench
    from c2tc_pipeline.bench.speed.run import measure_speed
    from c2tc_pipeline.cli.job import condense_to_directory
    from c2tc_pipeline.storage.artefact import check_target

    check_target(out, kind=ARTEFACT_KIND, replace=True)
    done = measure_speed(
        data,
        condense_file=lambda spec, folder, ratio: condense_to_directory(spec, folder, name=spec.name, ratio=ratio),
        bench=Bench(repeats=options["seeds"] or 3, time_limit=options["time_limit"] or 300.0, report=report),
        parts=options["parts"],
        tables=options["tables"],
    )
    _publish(out, ARTEFACT_KIND, lambda folder, command: write_speed(done, folder, command=command))


def _experiment(name: str, data: Path | None, out: Path, quiet: bool, options: dict[str, Any]) -> str:
    from rich.console import Console

    from c2tc_pipeline.bench.experiments.grid import load_experiment, tables_of
    from c2tc_pipeline.bench.experiments.runner import run_experiment
    from c2tc_pipeline.bench.job import ARTEFACT_KIND, write_experiment
    from c2tc_pipeline.bench.progress import WorkBar
    from c2tc_pipeline.storage.artefact import check_target
    from c2tc_pipeline.storage.cache import default_cache_directory
    from c2tc_pipeline.tables.catalogue import load_catalogue

    catalogue, jobs, cache = (options.pop(key) for key in ("catalogue", "jobs", "cache"))
    experiment = load_experiment(name)
    if catalogue is not None and not options["tables"]:
        options["tables"] = tuple(load_catalogue(catalogue))
    options["group_duplicates"] = options["group_duplicates"] or None
    experiment = experiment.restricted(**options)
    specs = tables_of(experiment, data=data, catalogue=catalogue)
    check_target(out, kind=ARTEFACT_KIND, replace=True)
    with WorkBar(Console(stderr=True), experiment.name, quiet=quiet) as bar:
        scores = run_experiment(
            experiment, specs, cache_dir=cache or default_cache_directory(), jobs=jobs, progress=bar
        )
    parallel = os.cpu_count() if jobs is None else jobs

    def write(folder: Path, command: str) -> None:
        write_experiment(experiment, scores, folder, command=command, jobs=parallel)

    _publish(out, ARTEFACT_KIND, write)
    ended = scores.loc[scores["status"] != "ok", "status"].value_counts()
    lost = ", ".join(f"{count} {status}" for status, count in ended.items())
    return f"{len(scores):,} results{f' ({lost})' if lost else ''}"
