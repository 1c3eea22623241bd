"""The command line: ``c2tc condense``, ``c2tc tables``, and the commands of other files.

Commands parse, call the core and print. Mistakes of the user end with one sentence and exit code 2. Heavy imports
happen inside commands, so that ``c2tc --help`` answers at once.
"""

from __future__ import annotations

import gc as garbage
import io
import json
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from c2tc_pipeline import __version__
from c2tc_pipeline.cli.pipeline import run, ui
from c2tc_pipeline.cli.storage import expand, forget, gc, verify
from c2tc_pipeline.common.defaults import CATALOGUE, check_gamma, check_min_rows, check_rows, checked_ratio
from c2tc_pipeline.common.devices import check_engine
from c2tc_pipeline.common.errors import InputError

if TYPE_CHECKING:
    from c2tc_pipeline.tables.spec import TableSpec


# Thresholds of Python's garbage collector.
_COLLECT_AFTER = (50_000, 20, 100)


class _Group(click.Group):
    """A group whose commands report user errors in one sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), "bench"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name != "bench":
            return super().get_command(ctx, cmd_name)
        try:
            command: click.Command = import_module("c2tc_pipeline.bench.commands").bench
        except ModuleNotFoundError:
            return None
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            _fail(str(error), 2)
        except KeyboardInterrupt:
            _fail("Interrupted; nothing was written.", 130)
        except MemoryError:
            _fail("There is not enough memory; close other programs, or give fewer columns.", 1)
        except OSError as error:
            _fail(f"{error.strerror or error}" + (f": {error.filename!r}" if error.filename else ""), 1)


def _ratio(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """Return a ratio, which may be written in percent."""
    if value is None:
        return None
    try:
        number = float(value.removesuffix("%"))
    except ValueError:
        example = value.replace(",", ".") if "," in value else "0.01 or 1%"
        raise InputError(f"--ratio {value!r} is not a number; write it as {example}.") from None
    return number / 100 if value.endswith("%") else number


def _fail(message: str, code: int) -> None:
    click.echo(f"Error: {message}", err=True)
    sys.exit(code)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="c2tc")
def main() -> None:
    """Make big tables small without losing what models learn from them."""
    # Characters that the terminal's encoding lacks must not fail a command whose work is done.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # Imports make some hundred thousand objects that stay; collecting cycles among them takes half a second of every
    # command and frees next to nothing.
    garbage.set_threshold(*_COLLECT_AFTER)


for _command in (run, ui, expand, forget, verify, gc):
    main.add_command(_command)


@main.command()
@click.argument("file", required=False)
@click.option("--table", "table_name", help="A table of the catalogue, instead of FILE and --label.")
@click.option(
    "--catalogue",
    type=click.Path(path_type=Path),
    envvar="C2TC_CATALOGUE",
    default=CATALOGUE,
    show_default=True,
    show_envvar=True,
)
@click.option("--label", help="The column to predict.")
@click.option(
    "--ratio", callback=_ratio, help="Condensed rows as a share of the rows, such as 0.01 or 1%.  [default: 0.01]"
)
@click.option("--rows", type=int, help="Condensed rows in all, instead of --ratio.")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Directory to write; replaced if c2tc made it."
)
@click.option(
    "--role", "roles", multiple=True, metavar="COLUMN=ROLE", help="Role: numeric, string, code or drop; repeatable."
)
@click.option("--missing", metavar="WORDS", help="Further spellings of missing values, such as unknown,n/a.")
@click.option(
    "--label-kind", type=click.Choice(["auto", "classes"]), help="Take any labels as classes.  [default: auto]"
)
@click.option(
    "--strings", type=click.Choice(["auto", "similarity", "target"]), help="Encoding of strings.  [default: auto]"
)
@click.option("--numeric", type=click.Choice(["quantile", "minmax"]), help="Scaling of numbers.  [default: quantile]")
@click.option(
    "--allocation",
    type=click.Choice(["hfils", "optimal", "ratio", "fipc"]),
    help="How rows are split over classes.  [default: hfils]",
)
@click.option("--gamma", help="0 to 1, or 'auto': how far small classes are favoured.  [default: 0.25]")
@click.option(
    "--representative", type=click.Choice(["centroid", "medoid"]), help="Means or real rows.  [default: centroid]"
)
@click.option(
    "--min-rows-per-condensed-row",
    type=click.IntRange(1),
    help="Minimum number of source rows behind every condensed row.  [default: 1]",
)
@click.option(
    "--min-category-rows",
    type=click.IntRange(1),
    help="Members of a condensed row that a category needs to be kept with it.  [default: 1]",
)
@click.option(
    "--column-weights",
    type=click.Choice(["auto", "none"]),
    help="Weigh columns in distances by their importance for the label, or alike.  [default: auto]",
)
@click.option(
    "--split",
    is_flag=True,
    help="Condense the training part of a stratified split; split.parquet lists all parts.",
)
@click.option("--group-duplicates", is_flag=True, help="With --split: keep rows with equal features on one side.")
@click.option(
    "--evaluate",
    is_flag=True,
    help="Test models trained on the condensed, a random and the whole table; needs --split.",
)
@click.option("--seeds", type=click.IntRange(1, 100), help="Trials of each for --evaluate.  [default: 3]")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="The same seed gives the same table.  [default: 0]")
@click.option(
    "--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), help="Where heavy work runs.  [default: auto]"
)
@click.option("--engine", help="Where to compute: local, or a Dask scheduler, as dask://host:8786.  [default: local]")
@click.option("--cache", "cache_dir", type=click.Path(path_type=Path), help="Where weights and curves are kept.")
@click.option("--no-cache", is_flag=True, help="Neither read nor write the cache.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON and nothing else.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def condense(
    file: str | None,
    table_name: str | None,
    catalogue: Path,
    label: str | None,
    ratio: float | None,
    rows: int | None,
    out: Path,
    roles: tuple[str, ...],
    missing: str | None,
    label_kind: str | None,
    gamma: str | None,
    split: bool,
    group_duplicates: bool,
    evaluate: bool,
    seeds: int | None,
    seed: int | None,
    cache_dir: Path | None,
    no_cache: bool,
    as_json: bool,
    quiet: bool,
    **choices: str | int | None,
) -> None:
    """Condense FILE into a few rows that models can train on.

    FILE is CSV, TSV, JSON lines, Parquet, Arrow, Excel, SQLite or DuckDB, a folder of files, a Delta Lake or Iceberg
    table; a path, s3:// or https://, or - for standard input; or a table of a database or of OpenML by its address.

    \b
    Examples:
      c2tc condense adult.csv --label income --ratio 0.001 --out small
      c2tc condense --table departures --ratio 0.001 --out runs/departures
      c2tc condense "postgresql://ann@host/sales?table=people" --label income --out small
      c2tc condense --catalogue paper --table adult --out small

    With --table, settings in the catalogue replace the defaults.
    """
    if ratio is not None and rows is not None:
        raise InputError("Both --ratio and --rows are given; choose one of them.")
    if ratio is not None:
        checked_ratio(ratio)
    if choices["engine"] is not None:
        check_engine(str(choices["engine"]))
    if evaluate and not (split or group_duplicates):
        raise InputError("--evaluate tests on rows that nothing else has seen; add --split, which keeps some aside.")
    if seeds is not None and not evaluate:
        raise InputError("--seeds is the number of trials of --evaluate; add that, or leave --seeds out.")
    changes: dict[str, Any] = {name: value for name, value in choices.items() if value is not None}
    if rows is not None:
        check_rows(rows)
    if seed is not None:
        changes["seed"] = seed
    if gamma is not None:
        changes["gamma"] = _gamma(gamma)
    check_min_rows(changes.get("min_rows_per_condensed_row", 1), changes.get("representative", "centroid"))
    given = _roles(roles)
    if table_name is None and file and label:
        _check_source(file, label, given, out)
    spec = _described(file, table_name, catalogue, label)
    if table_name is not None:
        _check_source(spec.source, spec.label, {**spec.roles, **given}, out)
    spec = spec.model_copy(
        update={
            "roles": {**spec.roles, **given},
            "missing": (*spec.missing, *(word.strip() for word in (missing or "").split(",") if word.strip())),
            "label_kind": label_kind or spec.label_kind,
            "settings": spec.settings.model_copy(update=changes),
            "split": spec.split.model_copy(update={"group_duplicates": True}) if group_duplicates else spec.split,
        }
    )

    from rich.console import Console

    from c2tc_pipeline.cli.job import condense_to_directory
    from c2tc_pipeline.cli.terminal import StageBars, print_summary
    from c2tc_pipeline.sources.addresses import open_source
    from c2tc_pipeline.storage.cache import default_cache_directory

    with StageBars(Console(stderr=True), quiet=quiet or as_json) as bars:
        table = condense_to_directory(
            spec,
            out,
            name=table_name or open_source(spec.source).name,
            ratio=spec.ratios[0] if ratio is None else ratio,
            rows=rows,
            split=split or group_duplicates,
            trials=(seeds or 3) if evaluate else 0,
            cache_dir=None if no_cache else cache_dir or default_cache_directory(),
            listener=bars,
        )
    if as_json:
        from c2tc_pipeline.condensation.table import read_summary

        # Without characters that a terminal or a pipe may not be able to take.
        click.echo(json.dumps(read_summary(out), indent=2))
    elif not quiet:
        print_summary(table, Console())
        click.echo(f"Written: {out}/condensed.parquet, condensed_original.parquet, report.html and more")


@main.command()
@click.argument("catalogue", type=click.Path(path_type=Path), envvar="C2TC_CATALOGUE", default=CATALOGUE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def tables(catalogue: Path, as_json: bool) -> None:
    """List the tables of CATALOGUE and check that each can be read and has its label."""
    from c2tc_pipeline.reports.wording import ratio as ratio_text
    from c2tc_pipeline.tables.catalogue import load_catalogue, validate_catalogue

    loaded = load_catalogue(catalogue)
    reports = validate_catalogue(loaded)
    if as_json:
        listed = [{**vars(report), "label": loaded[report.name].label} for report in reports]
        click.echo(json.dumps(listed, indent=2, ensure_ascii=False))
    else:
        for report in reports:
            spec = loaded[report.name]
            size = f"{report.rows:,} rows" if report.rows is not None else "rows not counted"
            state = f"{size}, {report.columns} columns" if report.problem is None else f"PROBLEM: {report.problem}"
            ratios = ", ".join(map(ratio_text, sorted(spec.ratios)))
            click.echo(f"{report.name}: label {spec.label!r}, ratios {ratios}; {state}")
            if spec.description:
                click.echo(f"    {spec.description.strip()}")
    if any(report.problem is not None for report in reports):
        sys.exit(2)


def _described(file: str | None, table_name: str | None, catalogue: Path, label: str | None) -> TableSpec:
    """Return the spec of the table to condense, from the catalogue or from the command line."""
    from c2tc_pipeline.tables.catalogue import load_catalogue
    from c2tc_pipeline.tables.spec import TableSpec

    if (file is None) == (table_name is None):
        raise InputError("Name a FILE to condense, or a table of the catalogue with --table, but not both.")
    if table_name is not None:
        if label is not None:
            raise InputError("--label is given by the catalogue; leave it out with --table.")
        loaded = load_catalogue(catalogue)
        spec = loaded.table(table_name)
        return spec.model_copy(update={"source": str(loaded.resolve_source(spec))})
    if not label:
        raise InputError("The column to predict is not named; name it with --label.")
    if not file:
        raise InputError("The FILE to condense has an empty name; name a CSV or Parquet file.")
    return TableSpec(name="table", source=file, label=label, ratios=(0.01,))


def _check_source(address: str, label: str, roles: Mapping[str, str], out: Path) -> None:
    """Refuse a source, columns or an output directory that can't be used, before the heavy imports."""
    from c2tc_pipeline.common.defaults import check_columns
    from c2tc_pipeline.condensation import ARTEFACT_KIND
    from c2tc_pipeline.sources.addresses import open_source
    from c2tc_pipeline.storage.artefact import check_target

    check_columns(open_source(address).header().columns, label, roles)
    check_target(out, kind=ARTEFACT_KIND, replace=True)


def _roles(assignments: tuple[str, ...]) -> dict[str, str]:
    roles = {}
    for assignment in assignments:
        column, separator, role = assignment.rpartition("=")
        if not separator or not column:
            raise InputError(f"--role {assignment!r} is not of the form COLUMN=ROLE.")
        roles[column] = role
    return roles


def _gamma(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        gamma: float | str = float(text)
    except ValueError:
        gamma = text
    check_gamma(gamma)
    return gamma


if __name__ == "__main__":
    main()
