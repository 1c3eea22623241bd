"""The commands of the deployment: ``python -m deploy up``, ``check``, ``smoke`` and ``down``."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from c2tc_pipeline.common.defaults import CATALOGUE
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.catalogue import load_catalogue
from deploy.layout import Layout
from deploy.services import all_services
from deploy.stack import holder, running_stack, take_down


class _Commands(click.Group):
    """Commands that report a mistake in one sentence, and stop what they started on SIGINT and SIGTERM."""

    def invoke(self, ctx: click.Context) -> Any:
        # Both, even where a shell that put us into the background had SIGINT ignored: services would inherit that, and
        # Dagster's treat SIGTERM as they treat SIGINT.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort):
            # RuntimeErrors by birth, but only click's way to leave a command, as after --help.
            raise
        except InputError as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(2)
        except RuntimeError as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(1)


def _with_place(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--catalogue", type=click.Path(path_type=Path), default=CATALOGUE, show_default=True, help="The tables."
        ),
        click.option(
            "--folder",
            type=click.Path(path_type=Path),
            default=Path("runs/stack"),
            show_default=True,
            help="Where the stack keeps its data, logs and secrets.",
        ),
    ):
        command = option(command)
    return command


def _with_size(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--memory", default="2GB", show_default=True, help="Memory of each worker of Dask."),
        click.option(
            "--workers", type=click.IntRange(0), default=2, show_default=True, help="Workers of Dask; 0 for no Dask."
        ),
        click.option(
            "--dask-port",
            type=click.IntRange(0, 65535),
            default=8786,
            show_default=True,
            help="Where Dask's scheduler listens, for `engine: dask://127.0.0.1:PORT` in a catalogue; 0 for any.",
        ),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=3000,
            show_default=True,
            help="Where the dashboard listens; 0 for any.",
        ),
    ):
        command = option(command)
    return command


def _layout(folder: Path, catalogue: Path) -> Layout:
    return Layout(folder.absolute(), catalogue.absolute())


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def main() -> None:
    """Run the production deployment on this machine: PostgreSQL, S3, Dask and Dagster's services, on loopback."""


@main.command()
@_with_place
@_with_size
def up(folder: Path, catalogue: Path, port: int, dask_port: int, workers: int, memory: str) -> None:
    """Start all services, and keep them until Ctrl-C, `down`, or one of them ends."""
    load_catalogue(catalogue)
    layout = _layout(folder, catalogue)
    try:
        ports = {"dashboard": port, "dask": dask_port}
        with running_stack(layout, ports=ports, workers=workers, memory=memory, report=click.echo) as stack:
            click.echo(f"The stack is up. Its logs are in {layout.logs}; Ctrl-C stops it.")
            stack.watch()
    except KeyboardInterrupt:
        click.echo("The stack is down.")


@main.command()
@_with_place
@click.option("--workers", type=click.IntRange(0), default=2, show_default=True, help="As given to `up`.")
def check(folder: Path, catalogue: Path, workers: int) -> None:
    """Ask every service of a running stack how it is; exit code 1 if one is not well."""
    layout = _layout(folder, catalogue)
    if holder(layout) is None:
        raise InputError(f"No stack runs in {folder}; start one with: python -m deploy up --folder {folder}")
    ill = 0
    for service in all_services(layout, workers, "2GB"):
        try:
            well = service.is_ready()
        except InputError as error:
            click.echo(str(error), err=True)
            well = False
        ill += not well
        click.echo(f"{service.name:15} {'well' if well else 'NOT WELL'}  {service.where}".rstrip())
    sys.exit(1 if ill else 0)


@main.command()
@_with_place
@_with_size
@click.option("--patience", type=float, default=3600, show_default=True, help="Seconds that each of the jobs may take.")
def smoke(folder: Path, catalogue: Path, port: int, dask_port: int, workers: int, memory: str, patience: float) -> None:
    """Send the tables of the catalogue through the pipeline, and verify what arrives in PostgreSQL and on S3.

    It uses the stack that runs in the folder; where none does, it starts one and stops it afterwards.
    """
    from deploy.smoke import smoke as run_smoke

    tables = load_catalogue(catalogue.absolute())
    layout = _layout(folder, catalogue)
    with ExitStack() as stack:
        if holder(layout) is None:
            ports = {"dashboard": port, "dask": dask_port}
            stack.enter_context(running_stack(layout, ports=ports, workers=workers, memory=memory, report=click.echo))
        arrived = run_smoke(layout, tables, patience, click.echo)
        click.echo("asset                events in PostgreSQL   artefacts on S3")
        for asset, keys in arrived.events.items():
            click.echo(f"{asset:20} {len(keys):20} {len(arrived.artefacts[asset]):17}")
        click.echo(f"All is well: made in {arrived.seconds:.1f} s.")


@main.command()
@_with_place
def down(folder: Path, catalogue: Path) -> None:
    """Stop the stack that runs in the folder, and wait until it has stopped."""
    click.echo("The stack is down." if take_down(_layout(folder, catalogue)) else f"No stack runs in {folder}.")


if __name__ == "__main__":
    main(prog_name="python -m deploy")
