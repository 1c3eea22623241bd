"""Commands on what was written: ``c2tc expand``, ``forget``, ``verify`` and ``gc``; heavy imports happen inside."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from c2tc_pipeline.common import defaults
from c2tc_pipeline.common.errors import InputError, counted

if TYPE_CHECKING:
    from c2tc_pipeline.storage.maintenance import Leftover
    from c2tc_pipeline.storage.store import ArtefactStore


storage_option = click.option(
    "--storage",
    envvar="C2TC_STORAGE",
    default=str(defaults.STORAGE),
    show_default=True,
    show_envvar=True,
    help="Where artefacts are stored: a path or s3://bucket/prefix.",
)


def _with_places(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments that name the places to check."""
    for option in (
        click.option(
            "--cache",
            type=click.Path(path_type=Path, exists=True, file_okay=False),
            help="The cache.  [default: as in the pipeline]",
        ),
        storage_option,
        click.argument("folders", nargs=-1, type=click.Path(path_type=Path, exists=True, file_okay=False)),
    ):
        command = option(command)
    return command


@click.command()
@_with_places
def verify(folders: tuple[Path, ...], storage: str, cache: Path | None) -> None:
    """Verify stored artefacts against their manifests, and name what is damaged.

    Checks the storage, the cache, runs/results, runs/bench, and FOLDERS: others that c2tc condense or bench wrote. The
    exit code is 0 if nothing is damaged, 1 if something is or a folder of FOLDERS holds no artefact, and 2 if a place
    can't be read.

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
            # A folder that is named should hold an artefact; one that lost its manifest is damaged.
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
@click.option("--keep", type=click.IntRange(1), help="Newest versions of each artefact to keep.  [default: all]")
@click.option(
    "--older-than", "hours", type=click.FloatRange(0), default=24.0, show_default=True, help="Hours since last change."
)
@click.option("--dry-run", is_flag=True, help="Show what there is, and remove nothing.")
def gc(
    folders: tuple[Path, ...], storage: str, cache: Path | None, keep: int | None, hours: float, dry_run: bool
) -> None:
    """Remove the files that killed and overtaken writers left behind, and with --keep old versions too.

    Checks the storage, the cache, runs/results, runs/bench, temporary directories, and FOLDERS: others that c2tc
    condense or bench wrote. Runs may be active if none of their steps takes longer than --older-than.

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

    removed, staying = [], 0
    for found in leftovers():
        click.echo(str(found))
        staying += bool(found.stays)
        removed += [] if found.stays else [found.size]
    done = "would be removed" if dry_run else "removed"
    click.echo(f"{len(removed):,} leftovers, {sum(removed):,} bytes {done}; {staying:,} stay.")


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--ids", type=click.Path(path_type=Path), required=True, help="A text file with one id per line.")
@click.option("--key", help="The column that holds the ids.  [default: ids are positions counted from 0]")
@click.option("--source", help="Address of the source, if it was moved; its content must be the same.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON and nothing else.")
def forget(directory: Path, ids: Path, key: str | None, source: str | None, as_json: bool) -> None:
    """Forget source rows in DIRECTORY, written by c2tc condense.

    Condensed rows that stand for these rows are computed again from the others, as if the rows had not been there;
    all other condensed rows stay as they are. The source is read and must be unchanged: forget first, then delete
    there.

    \b
    Examples:
      c2tc forget small --ids rows.txt
      c2tc forget small --ids persons.txt --key person_id
    """
    _check_condensed(directory)
    wanted = read_ids(ids)

    from c2tc_pipeline.cli.job import forget_in_directory

    found = forget_in_directory(directory, wanted, ids, key=key, source=source)
    if as_json:
        click.echo(json.dumps({**found.counts(), "rows_in": len(found.table.membership), "rows_out": len(found.table)}))
        return
    if not found.rows:
        click.echo(f"No condensed row of {directory} stands for any of these rows; nothing was changed.")
        return
    click.echo(
        f"Forgot {counted(found.rows, 'source row')} of {directory}: {counted(found.recomputed, 'condensed row')} "
        f"computed again, {found.disappeared} gone, {found.merged} merged; {len(found.table)} are left."
    )
    if found.strings_removed:
        click.echo(f"Removed from the encoder: {counted(found.strings_removed, 'string')} that no remaining row has.")
    stays = "scales, class shares and network weights"
    if found.strings_kept:
        stays += f", and {counted(found.strings_kept, 'string')} that the codes of other rows depend on"
    click.echo(f"What the encoder learnt from the rows stays: {stays}. To be rid of that, condense anew without them.")


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--rows", type=click.IntRange(1), help="Rows to draw.  [default: 20,000 or more, see docs/condense.md]")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="Parquet file to write; an existing one is kept."
)
@click.option(
    "--space",
    type=click.Choice(["original", "encoded"]),
    default="original",
    show_default=True,
    help="Columns of the source, or the numbers that the encoder made of them.",
)
@click.option(
    "--class-mix",
    type=click.Choice(["condensed", "source"]),
    default="condensed",
    show_default=True,
    help="Class shares as in training on the condensed rows, or as in the source.",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, help="The same seed gives the same rows.")
def expand(directory: Path, rows: int | None, out: Path, space: str, class_mix: str, seed: int) -> None:
    """Draw training rows from DIRECTORY, written by c2tc condense or run.

    The rows are drawn from the condensed rows and their spread. The file has them with their label and a weight, which
    says how much each row counts.

    \b
    Example:
      c2tc expand small --rows 20000 --out train.parquet
    """
    _check_condensed(directory)
    if out.suffix not in (".parquet", ".pq"):
        raise InputError(f"Output {str(out)!r} must be a Parquet file; end its name in .parquet.")
    if out.exists():
        raise InputError(f"Output {str(out)!r} exists; choose another name or remove it.")
    if not out.parent.is_dir():
        raise InputError(f"Output {str(out)!r} can't be made: there is no folder {str(out.parent)!r}; create it.")
    try:
        with tempfile.TemporaryFile(dir=out.parent):
            pass
    except OSError:
        raise InputError(
            f"Output {str(out)!r} can't be made: its folder may not be written to; choose another."
        ) from None

    from c2tc_pipeline.cli.job import expand_to_file

    written = expand_to_file(directory, out, rows=rows, space=space, class_mix=class_mix, seed=seed)
    click.echo(f"Written: {out} ({written:,} rows)")


def _check_condensed(directory: Path) -> None:
    """Refuse a directory that c2tc condense did not write, before the heavy imports."""
    from c2tc_pipeline.storage.artefact import read_manifest

    if not directory.is_dir():
        raise InputError(f"There is no directory {str(directory)!r}; name one that c2tc condense wrote.")
    read_manifest(directory)


def read_ids(path: Path) -> dict[int, str]:
    """Return the ids in a file by their line, counted from 1; empty lines are left out."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"The file {path} is not UTF-8 text; write one id per line.") from None
    except FileNotFoundError:
        raise InputError(f"There is no file {path}; name one with one id per line.") from None
    except OSError:
        raise InputError(f"The file {path} can't be read; check that it is a file and its permissions.") from None
    found = {number: line.strip() for number, line in enumerate(lines, start=1) if line.strip()}
    if not found:
        raise InputError(f"The file {path} holds no id; write one per line.")
    return found


def _open_store(storage: str) -> ArtefactStore:
    """Open the storage; raise InputError if it was named and does not exist, which is a typing error."""
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
