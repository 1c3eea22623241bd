"""``c2tc bench``: the experiments, on the paper's tables or on your own."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from c2tc_pipeline.errors import InputError

SPEED = "speed"


@click.command()
@click.argument("name", required=False)
@click.option("--data", type=click.Path(path_type=Path), help="Folder with the paper's tables as Parquet files.")
@click.option("--catalogue", type=click.Path(path_type=Path), help="A catalogue of your own tables, instead of --data.")
@click.option("--tables", help="Only these tables, separated by commas; with --catalogue, all of it by default.")
@click.option("--ratios", help="Other ratios, separated by commas.")
@click.option("--methods", help="Only these methods, separated by commas.")
@click.option("--without", help="All methods but these, separated by commas.")
@click.option("--models", help="Other models, separated by commas.")
@click.option("--seeds", type=click.IntRange(1, 100), help="Another number of repetitions.")
@click.option("--recipe", help="How networks are trained: default or paper.")
@click.option("--group-duplicates", is_flag=True, help="Keep rows with equal features on one side of each split.")
@click.option("--out", type=click.Path(path_type=Path), help="Directory to write.  [default: runs/bench/NAME]")
@click.option(
    "--jobs", type=click.IntRange(0, 1024), help="Processes side by side; 0: none but this one.  [default: one a core]"
)
@click.option("--cache", "cache_dir", type=click.Path(path_type=Path), help="Where what is done is kept.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def bench(
    name: str | None,
    data: Path | None,
    catalogue: Path | None,
    tables: str | None,
    ratios: str | None,
    methods: str | None,
    without: str | None,
    models: str | None,
    seeds: int | None,
    recipe: str | None,
    group_duplicates: bool,
    out: Path | None,
    jobs: int | None,
    cache_dir: Path | None,
    quiet: bool,
) -> None:
    """Run the experiment NAME, or list them all.

    \b
    Examples:
      c2tc bench
      c2tc bench overall --data tables --without dm,gm,mtt
      c2tc bench overall --catalogue data/catalog.yaml --tables flights --seeds 2
      c2tc bench my_grid.yaml --data tables

    What is done is kept in the cache cell by cell: an experiment that was stopped goes on where it was. It writes
    scores.parquet, statistics.parquet, table.md, report.html and figures. NAME may be a YAML file of your own; "speed"
    measures the core against its references.
    """
    if name is None:
        _list()
    elif name == SPEED:
        _speed(data, out)
    else:
        _experiment(
            name,
            data,
            catalogue,
            {
                "tables": _parts(tables),
                "ratios": _numbers(ratios),
                "methods": _parts(methods),
                "without": _parts(without),
                "models": _parts(models),
                "seeds": seeds,
                "recipe": recipe,
                "group_duplicates": group_duplicates or None,
            },
            out=out or Path("runs/bench") / Path(name).stem,
            jobs=jobs,
            cache_dir=cache_dir,
            quiet=quiet,
        )


def _list() -> None:
    from c2tc_pipeline.evaluation.experiments.grid import experiment_names, load_experiment

    for name in experiment_names():
        experiment = load_experiment(name)
        click.echo(f"{name}: {experiment.title}. {experiment.question}")
    click.echo(f"{SPEED}: The core beside its references, as ratios within one run.")


def _speed(data: Path | None, out: Path | None) -> None:
    from c2tc_pipeline.evaluation.speed import measure_speed
    from c2tc_pipeline.storage import publish_directory

    if data is None:
        raise InputError("The speed is measured on the paper's tables; name their folder with --data.")
    results = measure_speed(data, report=click.echo)
    if out is not None:

        def write(directory: Path) -> None:
            (directory / "speed.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")

        publish_directory(out, write, kind=SPEED, replace=True)


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

    from c2tc_pipeline.evaluation.experiments.catalogue import tables_of
    from c2tc_pipeline.evaluation.experiments.grid import load_experiment
    from c2tc_pipeline.evaluation.experiments.runner import run_experiment
    from c2tc_pipeline.experiment_job import ARTEFACT_KIND, write_experiment
    from c2tc_pipeline.storage import default_cache_directory, publish_directory
    from c2tc_pipeline.storage.artefact import check_target
    from c2tc_pipeline.tables import load_catalogue
    from c2tc_pipeline.terminal import WorkBar

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


def _parts(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _numbers(text: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in _parts(text))
    except ValueError:
        raise InputError(f"--ratios {text!r} must be numbers separated by commas, such as 0.01,0.001.") from None
