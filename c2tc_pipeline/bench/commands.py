"""``c2tc bench``: the experiments, on the paper's tables or on your own."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from c2tc_pipeline.common import defaults
from c2tc_pipeline.common.errors import InputError

SPEED = "speed"
SCALE = "scale"


@click.command()
@click.argument("name", required=False)
@click.option("--data", type=click.Path(path_type=Path), help="Folder with the paper's tables as Parquet files.")
@click.option("--catalogue", type=click.Path(path_type=Path), help="A catalogue of your own tables, instead of --data.")
@click.option("--tables", help="Only these tables, separated by commas; with --catalogue, all of it by default.")
@click.option("--ratios", help="Other ratios, separated by commas.")
@click.option("--spaces", help="Other column spaces, such as hcfe or label, separated by commas.")
@click.option("--methods", help="Only these methods, separated by commas.")
@click.option("--without", help="All methods but these, separated by commas.")
@click.option("--models", help="Other models, separated by commas.")
@click.option("--seeds", type=click.IntRange(1, 100), help="Another number of repetitions.")
@click.option("--first-seed", type=click.IntRange(0, 1_000_000), help="The first of them.  [default: 0]")
@click.option(
    "--on",
    "judged_on",
    type=click.Choice(["test", "validation"]),
    help="Rows that models are scored on: settings are chosen on validation rows.  [default: test]",
)
@click.option("--recipe", help="How networks are trained: default or paper.")
@click.option("--group-duplicates", is_flag=True, help="Keep rows with equal features on one side of each split.")
@click.option("--out", type=click.Path(path_type=Path), help="Directory to write.  [default: runs/bench/NAME]")
@click.option(
    "--jobs", type=click.IntRange(0, 1024), help="Processes side by side; 0: none but this one.  [default: one a core]"
)
@click.option("--cache", "cache_dir", type=click.Path(path_type=Path), help="Where what is done is kept.")
@click.option("--parts", help="Only these parts of the speed, separated by commas; see below.")
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    help="Seconds that each reference of the speed may take.  [default: 300]",
)
@click.option(
    "--rows", type=click.IntRange(1_000), help="Rows of the largest made table of the scale.  [default: 20,000,000]"
)
@click.option(
    "--memory",
    type=click.FloatRange(0, min_open=True),
    help="Gigabytes that a condensation in blocks may have.  [default: 1.5]",
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def bench(
    name: str | None,
    data: Path | None,
    catalogue: Path | None,
    tables: str | None,
    ratios: str | None,
    spaces: str | None,
    methods: str | None,
    without: str | None,
    models: str | None,
    seeds: int | None,
    first_seed: int | None,
    judged_on: str | None,
    recipe: str | None,
    group_duplicates: bool,
    out: Path | None,
    jobs: int | None,
    cache_dir: Path | None,
    parts: str | None,
    time_limit: float | None,
    rows: int | None,
    memory: float | None,
    quiet: bool,
) -> None:
    """Run the experiment NAME, or list them all.

    \b
    Examples:
      c2tc bench
      c2tc bench overall --data tables --without dm,gm,mtt
      c2tc bench overall --catalogue data/catalog.yaml --tables flights --seeds 2
      c2tc bench my_grid.yaml --data tables
      c2tc bench speed --data tables --parts stages,search

    What is done is kept in the cache cell by cell: an experiment that was stopped goes on where it was. It writes
    scores.parquet, statistics.parquet, table.md, report.html and figures. NAME may be a YAML file of your own.

    "speed" measures everything beside its references, on this machine: stages, search, autoencoder, throughput, whole
    and rivals, which are its --parts. --seeds is how often each is repeated, --tables restricts it to some of adult,
    diabetes130us, airlines, covertype and jannis. It writes speed.parquet, speed.md, speed.json and figures; nothing
    else should run meanwhile.

    "scale" condenses a made table (--rows) and three smaller ones in blocks under a limit of memory (--memory), and the
    largest in memory beside it. It needs some 15 GB of disk and as much memory for 20 million rows, and writes
    scale.md and scale.json. --data is where the tables are made and kept; without it they go to a temporary folder.
    """
    of_experiments = {
        "--catalogue": catalogue,
        "--ratios": ratios,
        "--spaces": spaces,
        "--methods": methods,
        "--without": without,
        "--models": models,
        "--first-seed": first_seed,
        "--on": judged_on,
        "--recipe": recipe,
        "--group-duplicates": group_duplicates,
        "--jobs": jobs,
        "--cache": cache_dir,
    }
    if name != SCALE:
        _refuse({"--rows": rows, "--memory": memory}, "is for the check of scale alone; leave it out")
    if name is None:
        _list()
    elif name == SCALE:
        asked = {"--tables": tables, "--seeds": seeds, "--parts": parts, "--time-limit": time_limit}
        _refuse({**of_experiments, **asked}, "plays no part in the check of scale; leave it out")
        _scale(
            data,
            rows=rows or 20_000_000,
            memory_limit=round((memory or 1.5) * 1e9),
            out=out or defaults.BENCH / SCALE,
            quiet=quiet,
        )
    elif name == SPEED:
        _refuse(of_experiments, "plays no part in the benchmark of speed; leave it out")
        _speed(
            data,
            parts=_parts(parts),
            tables=_parts(tables),
            repeats=seeds,
            time_limit=time_limit or 300.0,
            out=out or defaults.BENCH / SPEED,
            quiet=quiet,
        )
    else:
        _refuse({"--parts": parts, "--time-limit": time_limit}, "is for the benchmark of speed alone; leave it out")
        _experiment(
            name,
            data,
            catalogue,
            {
                "tables": _parts(tables),
                "ratios": _numbers(ratios),
                "spaces": _parts(spaces),
                "methods": _parts(methods),
                "without": _parts(without),
                "models": _parts(models),
                "seeds": seeds,
                "first_seed": first_seed,
                "judged_on": judged_on,
                "recipe": recipe,
                "group_duplicates": group_duplicates or None,
            },
            out=out or defaults.BENCH / Path(name).stem,
            jobs=jobs,
            cache_dir=cache_dir,
            quiet=quiet,
        )


def _list() -> None:
    from c2tc_pipeline.bench.experiments.grid import experiment_names, load_experiment

    for name in experiment_names():
        experiment = load_experiment(name)
        click.echo(f"{name}: {experiment.title}. {experiment.question}")
    click.echo(f"{SPEED}: Everything beside its references, as ratios within one run.")
    click.echo(f"{SCALE}: A table larger than memory, in blocks under a limit of memory, and in memory beside it.")


def _scale(data: Path | None, *, rows: int, memory_limit: int, out: Path, quiet: bool) -> None:
    from c2tc_pipeline.bench.scale.bench import check_scale
    from c2tc_pipeline.storage.artefact import ScratchDirectory, check_target, publish_directory

    check_target(out, kind=SCALE, replace=True)
    with ScratchDirectory() as made:
        done = check_scale(
            data or Path(made),
            rows,
            memory_limit=memory_limit,
            report=(lambda line: None) if quiet else (lambda line: click.echo(line, err=True)),
        )
    command = shlex.join(["c2tc", *sys.argv[1:]])
    publish_directory(out, lambda folder: done.write_files(folder, command=command), kind=SCALE, replace=True)
    if not quiet:
        click.echo(done.to_markdown())


def _speed(
    data: Path | None,
    *,
    parts: tuple[str, ...],
    tables: tuple[str, ...],
    repeats: int | None,
    time_limit: float,
    out: Path,
    quiet: bool,
) -> None:
    from c2tc_pipeline.bench.reports.speed import ARTEFACT_KIND, write_speed
    from c2tc_pipeline.bench.speed.bench import Bench
    from c2tc_pipeline.bench.speed.run import measure_speed
    from c2tc_pipeline.cli.job import condense_to_directory
    from c2tc_pipeline.reports.wording import counted
    from c2tc_pipeline.storage.artefact import check_target, publish_directory

    check_target(out, kind=ARTEFACT_KIND, replace=True)
    bench = Bench(
        repeats=repeats or 3,
        time_limit=time_limit,
        report=(lambda line: None) if quiet else (lambda line: click.echo(line, err=True)),
    )
    done = measure_speed(
        data,
        condense_file=lambda spec, folder, ratio: condense_to_directory(spec, folder, name=spec.name, ratio=ratio),
        bench=bench,
        parts=parts,
        tables=tables,
    )
    command = shlex.join(["c2tc", *sys.argv[1:]])
    publish_directory(out, lambda folder: write_speed(done, folder, command=command), kind=ARTEFACT_KIND, replace=True)
    if not quiet:
        if done.noise.too_much:
            click.echo("The machine was too noisy to tell; measure again when nothing else runs.", err=True)
        click.echo(counted(len(done.rows), "comparison", "comparisons"))
        click.echo(f"Written: {out}/speed.md, speed.parquet and more")


def _experiment(
    name: str,
    data: Path | None,
    catalogue: Path | None,
    changes: dict[str, Any],
    *,
    out: Path,
    jobs: int | None,
    cache_dir: Path | None,
    quiet: bool,
) -> None:
    from rich.console import Console

    from c2tc_pipeline.bench.experiments.catalogue import tables_of
    from c2tc_pipeline.bench.experiments.grid import load_experiment
    from c2tc_pipeline.bench.experiments.runner import run_experiment
    from c2tc_pipeline.bench.job import ARTEFACT_KIND, write_experiment
    from c2tc_pipeline.cli.terminal import WorkBar
    from c2tc_pipeline.storage.artefact import check_target, publish_directory
    from c2tc_pipeline.storage.cache import default_cache_directory
    from c2tc_pipeline.tables.catalogue import load_catalogue

    experiment = load_experiment(name)
    if catalogue is not None and not changes["tables"]:
        changes["tables"] = tuple(load_catalogue(catalogue))
    experiment = experiment.restricted(**changes)
    specs = tables_of(experiment, data=data, catalogue=catalogue)
    check_target(out, kind=ARTEFACT_KIND, replace=True)
    with WorkBar(Console(stderr=True), experiment.name, quiet=quiet) as bar:
        scores = run_experiment(
            experiment, specs, cache_dir=cache_dir or default_cache_directory(), jobs=jobs, progress=bar
        )
    command = shlex.join(["c2tc", *sys.argv[1:]])
    splits = {name: spec.split for name, spec in specs.items()}
    side_by_side = os.cpu_count() if jobs is None else jobs
    publish_directory(
        out,
        lambda directory: write_experiment(
            experiment, scores, directory, command=command, splits=splits, jobs=side_by_side
        ),
        kind=ARTEFACT_KIND,
        replace=True,
    )
    if not quiet:
        ended = scores.loc[scores["status"] != "ok", "status"].value_counts()
        lost = ", ".join(f"{count} {status}" for status, count in ended.items())
        click.echo(f"{len(scores):,} results{f' ({lost})' if lost else ''}")
        click.echo(f"Written: {out}/report.html, table.md, scores.parquet and more")


def _refuse(options: dict[str, Any], why: str) -> None:
    for option, value in options.items():
        if value not in (None, False):
            raise InputError(f"{option} {why}.")


def _parts(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _numbers(text: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in _parts(text))
    except ValueError:
        raise InputError(f"--ratios {text!r} must be numbers separated by commas, such as 0.01,0.001.") from None
