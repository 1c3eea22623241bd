"""The commands that look after what is stored: ``c2tc verify`` and ``c2tc gc``.

As in :mod:`c2tc_pipeline.cli.main`, which gathers all commands, heavy imports happen inside.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from c2tc_pipeline.common import defaults
from c2tc_pipeline.common.errors import InputError

if TYPE_CHECKING:
    from c2tc_pipeline.storage.maintenance import Leftover
    from c2tc_pipeline.storage.store import ArtefactStore


def _with_places(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments that say what to look at."""
    for option in (
        click.option(
            "--cache",
            type=click.Path(path_type=Path, exists=True, file_okay=False),
            help="The cache.  [default: as in the pipeline]",
        ),
        click.option(
            "--storage",
            envvar="C2TC_STORAGE",
            default=str(defaults.STORAGE),
            show_default=True,
            show_envvar=True,
            help="Where artefacts are stored: a path or s3://bucket/prefix.",
        ),
        click.argument("folders", nargs=-1, type=click.Path(path_type=Path, exists=True, file_okay=False)),
    ):
        command = option(command)
    return command


@click.command()
@_with_places
def verify(folders: tuple[Path, ...], storage: str, cache: Path | None) -> None:
    """Verify stored artefacts against their manifests, and name what is damaged.

    Looked at are the storage, the cache, runs/results, runs/bench, and FOLDERS: others that c2tc condense or bench
    wrote. The exit code is 0 if all is whole, 1 if something is damaged or a folder of FOLDERS holds no artefact, and 2
    if a place can't be looked at.

    \b
    Examples:
      c2tc verify
      c2tc verify --storage s3://bucket/c2tc small
    """
    from c2tc_pipeline.storage.maintenance import Checked, verify_folder, verify_store

    store = _open_store(storage)

    def checks() -> Iterator[Checked]:
        yield from verify_store(store)
        for folder in _plain_folders((), cache):
            yield from verify_folder(folder)
        for folder in folders:
            found = list(verify_folder(folder))
            # Whoever names a folder has an artefact in mind; one that lost its manifest is not whole.
            yield from found or [Checked(str(folder), "holds no artefact, or one without its manifest.json")]

    artefacts = files = size = damaged = 0
    for checked in checks():
        artefacts += checked.is_manifest
        files += not checked.is_manifest
        size += checked.size
        if checked.damage is not None:
            damaged += 1
            click.echo(f"Damaged: {checked.address} {checked.damage}")
    state = f"{damaged:,} damaged; make what they belong to again" if damaged else "all whole"
    click.echo(f"{artefacts:,} artefacts, {files:,} files, {size:,} bytes: {state}.")
    if damaged:
        sys.exit(1)


@click.command()
@_with_places
@click.option("--keep", type=click.IntRange(1), help="Versions of each partition that stay.  [default: all]")
@click.option(
    "--older-than",
    "hours",
    type=click.FloatRange(0),
    default=24.0,
    show_default=True,
    help="Hours since the last change of a leftover.",
)
@click.option("--dry-run", is_flag=True, help="Show what there is, and remove nothing.")
def gc(
    folders: tuple[Path, ...], storage: str, cache: Path | None, keep: int | None, hours: float, dry_run: bool
) -> None:
    """Remove what killed and overtaken writers left behind, and with --keep old versions too.

    Looked at are the storage, the cache, runs/results, runs/bench, temporary directories, and FOLDERS: others that
    c2tc condense or bench wrote. Runs may be active meanwhile if they take less than --older-than for a step.

    \b
    Examples:
      c2tc gc --dry-run
      c2tc gc --keep 3
    """
    from c2tc_pipeline.pipeline import PINNED
    from c2tc_pipeline.storage.maintenance import Collector

    collector = Collector(older_than=hours * 3600, dry_run=dry_run)
    store = _open_store(storage)

    def leftovers() -> Iterator[Leftover]:
        yield from collector.store(store, keep=keep, pinned=PINNED)
        for folder in _plain_folders(folders, cache):
            yield from collector.folder(folder)
        yield from collector.scratch()

    sizes: list[int] = []
    staying = 0
    for found in leftovers():
        click.echo(str(found))
        if found.stays:
            staying += 1
        else:
            sizes.append(found.size)
    done = "would be removed" if dry_run else "removed"
    click.echo(f"{len(sizes):,} leftovers, {sum(sizes):,} bytes {done}; {staying:,} stay.")


def _open_store(storage: str) -> ArtefactStore:
    """Open the storage; one that somebody named and that is not there is a typing error, and not an empty one."""
    from c2tc_pipeline.storage.store import ArtefactStore

    store = ArtefactStore(storage)
    if store.backend.exists():
        return store
    if click.get_current_context().get_parameter_source("storage") is not ParameterSource.DEFAULT:
        raise InputError(
            f"There is no storage at {store.backend.root}; correct --storage or C2TC_STORAGE, or run the pipeline "
            "first, which makes it."
        )
    click.echo(f"Nothing was stored in {storage} yet.")
    return store


def _plain_folders(named: tuple[Path, ...], cache: Path | None) -> list[Path]:
    from c2tc_pipeline.storage.cache import default_cache_directory

    usual = [cache or default_cache_directory(), defaults.RESULTS, defaults.BENCH]
    return [folder for folder in (*usual, *named) if folder.is_dir()]
