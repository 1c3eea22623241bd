"""The commands of the deployment: ``python -m deploy up``, ``check``, ``smoke``, ``backup``, ``restore``, ``down``."""

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
from c2tc_pipeline.pipeline.acceptance import STAYS_IN_FORCE, Accepted, has_accepted
from deploy.environment import reference
from deploy.layout import Layout
from deploy.services import STORES, all_services
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
            # Subclasses of RuntimeError by which click leaves a command, as after --help.
            raise
        except InputError as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(2)
        except RuntimeError as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(1)


_folder = click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path("runs/stack"),
    show_default=True,
    callback=lambda _context, _option, value: value.absolute(),
    help="Where the stack keeps its data, logs and secrets.",
)


def _with_settings(command: Callable[..., Any]) -> Callable[..., Any]:
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
        click.option(
            "--catalogue", type=click.Path(path_type=Path), default=CATALOGUE, show_default=True, help="The tables."
        ),
        _folder,
    ):
        command = option(command)
    return command


def _start(folder: Path, catalogue: Path, port: int, dask_port: int, workers: int, memory: str) -> Any:
    """Return the context manager that starts and stops a stack."""
    layout = Layout(folder, catalogue.absolute(), workers, memory)
    try:
        Accepted.of_file(layout.catalogue)
    except InputError as error:
        if not has_accepted(layout.home):
            raise
        click.echo(f"{error} {STAYS_IN_FORCE}")
    return running_stack(layout, ports={"dashboard": port, "dask": dask_port}, report=click.echo)


def _running(folder: Path) -> Layout:
    """Return the layout of the stack that runs in a folder."""
    if holder(folder) is None:
        raise InputError(f"No stack runs in {folder}; start one with: python -m deploy up --folder {folder}")
    return Layout.recorded(folder)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def main() -> None:
    """Run the production deployment on this machine: PostgreSQL, S3, Dask and Dagster's services, on loopback."""


@main.command()
@_with_settings
def up(folder: Path, **settings: Any) -> None:
    """Start all services, and keep them until Ctrl-C or `down`; one that ends is started again."""
    try:
        with _start(folder, **settings) as stack:
            click.echo(f"The stack is up. Its logs are in {stack.layout.logs}; Ctrl-C stops it.")
            stack.watch()
    except KeyboardInterrupt:
        click.echo("The stack is down.")


@main.command()
@_folder
def check(folder: Path) -> None:
    """Check the health of every service of a running stack; exit code 1 if one is not well."""
    ill = 0
    for service in all_services(_running(folder)):
        try:
            well = service.is_ready()
        except InputError as error:
            click.echo(str(error), err=True)
            well = False
        ill += not well
        click.echo(f"{service.name:15} {'well' if well else 'NOT WELL'}  {service.where}".rstrip())
    sys.exit(1 if ill else 0)


@main.command()
@_with_settings
@click.option("--patience", type=float, default=3600, show_default=True, help="Seconds that all of it may take.")
def smoke(folder: Path, patience: float, **settings: Any) -> None:
    """Send all tables through the pipeline, and verify what arrives in PostgreSQL and on S3.

    It uses the stack that runs in the folder, with the catalogue given to `up`; where none does, it starts one and
    stops it afterwards.
    """
    from deploy.smoke import smoke as run_smoke

    with ExitStack() as stack:
        if holder(folder) is None:
            stack.enter_context(_start(folder, **settings))
        arrived = run_smoke(Layout.recorded(folder), patience, click.echo)
        for asset, keys in arrived.events.items():
            click.echo(f"{asset:40} {len(keys):5} partitions")
        click.echo(f"All is well: made in {arrived.seconds:.1f} s; {arrived.files} files verified on S3.")


@main.command()
@_folder
@click.option("--to", "target", type=click.Path(path_type=Path), required=True, help="A new or empty folder.")
def backup(folder: Path, target: Path) -> None:
    """Copy the database and the bucket of the running stack to a folder."""
    from deploy.backup import back_up

    back_up(_running(folder), target.absolute(), click.echo)


@main.command()
@_folder
@click.option("--from", "source", type=click.Path(path_type=Path), required=True, help="What `backup` wrote.")
def restore(folder: Path, source: Path) -> None:
    """Put a back-up in the place of the database and the bucket of a stack that is down."""
    from deploy.backup import restore as put_back

    layout = Layout.recorded(folder) if (folder / "up.json").exists() else Layout(folder, CATALOGUE.absolute())
    with running_stack(layout, ports={}, report=click.echo, names=STORES):
        put_back(layout, source.absolute(), click.echo)


@main.command()
def variables() -> None:
    """Print the reference of environment variables."""
    click.echo(reference())


@main.command()
@_folder
def down(folder: Path) -> None:
    """Stop the stack that runs in the folder, and wait until it has stopped."""
    click.echo("The stack is down." if take_down(folder) else f"No stack runs in {folder}.")


if __name__ == "__main__":
    main(prog_name="python -m deploy")
