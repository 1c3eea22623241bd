"""An artefact is a directory with a manifest; it appears whole or not at all.

The files are written into a private sibling directory, hashed, listed in ``manifest.json`` and synced; one rename then
makes them visible, or one exchange of names where an artefact is replaced. A reader goes through the manifest (see
:mod:`c2tc_pipeline.storage.manifest`) and refuses a directory whose files do not match it. What a killed writer leaves
lies beside the artefact under a hidden name, for :mod:`c2tc_pipeline.storage.folder_leftovers` to find.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.exchange import exchange
from c2tc_pipeline.storage.files import files_below, relative_name, sync_directory, sync_folder
from c2tc_pipeline.storage.holds import holding
from c2tc_pipeline.storage.manifest import check_files, open_manifest, seal_manifest

MANIFEST_NAME = "manifest.json"
# The endings of hidden siblings: of an artefact that is being written, and of one that another has replaced.
PARTIAL, RETIRED = ".partial", ".retired"


def publish_directory(
    target: str | Path,
    write: Callable[[Path], object],
    *,
    kind: str,
    settings: Mapping[str, Any] | None = None,
    replace: bool = False,
    instead_of: Mapping[str, Any] | None = None,
) -> Path:
    """Write an artefact all or nothing.

    Parameters
    ----------
    target : path
        The directory to create. An empty directory there is taken over.
    write : callable
        Called once with a private directory to fill. If it raises, nothing is published and nothing is left behind.
    kind : str
        What the artefact is; a reader can insist on it.
    settings : mapping, optional
        JSON values recorded in the manifest.
    replace : bool, default=False
        Whether an artefact of the same kind may be replaced. A directory that holds anything which its manifest does
        not list is never replaced.
    instead_of : mapping, optional
        The manifest of the artefact that the new one was made from; none that came or went since is replaced.

    Returns
    -------
    pathlib.Path
        The published directory.

    Raises
    ------
    FileExistsError
        If another writer published first and ``replace`` is false.
    InputError
        If the target exists and is not an artefact of this kind, or not the one that was to be replaced.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = publish_directory(
    ...         Path(folder) / "greeting", lambda d: (d / "a.txt").write_text("hi"), kind="demo"
    ...     )
    ...     sorted(p.name for p in done.iterdir())
    ['a.txt', 'manifest.json']
    """
    target = Path(os.path.abspath(target))
    check_target(target, kind=kind, replace=replace)
    target.parent.mkdir(parents=True, exist_ok=True)
    private = _sibling(target, PARTIAL)
    private.mkdir()
    with holding(private):
        try:
            write(private)
            (private / MANIFEST_NAME).write_bytes(seal_manifest(private, kind=kind, settings=settings or {}))
            sync_directory(private)
            _swap_in(private, target, kind=kind, replace=replace, instead_of=instead_of)
            sync_folder(target.parent)
        except BaseException:
            shutil.rmtree(private, ignore_errors=True)
            raise
    return target


def discard_directory(target: Path) -> None:
    """Take an artefact out of sight in one step, then remove it; one that is gone already is no trouble."""
    retired = _sibling(target, RETIRED)
    with contextlib.suppress(OSError):
        target.rename(retired)
        shutil.rmtree(retired, ignore_errors=True)


def check_target(
    target: str | Path,
    *,
    kind: str,
    replace: bool,
    instead_of: Mapping[str, Any] | None = None,
) -> None:
    """Refuse a target that a later :func:`publish_directory` could not take, before any work is done."""
    target = Path(os.path.abspath(target))
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise InputError(f"Output {str(target)!r} exists and is not a directory; choose another path.")
    ancestor = next((folder for folder in target.parents if folder.exists()), None)
    if ancestor is not None and not ancestor.is_dir():
        raise InputError(f"Output {str(target)!r} can't be made: {str(ancestor)!r} is a file; choose another path.")
    if ancestor is not None and not os.access(ancestor, os.W_OK | os.X_OK):
        raise InputError(
            f"Output {str(target)!r} can't be made: {str(ancestor)!r} may not be written to; choose another path."
        )
    changed = f"Directory {str(target)!r} was replaced or removed meanwhile; run again."
    if not target.exists() or not any(target.iterdir()):
        if instead_of is not None:
            raise InputError(changed)
        return
    if not (target / MANIFEST_NAME).exists():
        raise InputError(
            f"Output directory {str(target)!r} exists and was not made by c2tc; choose another path or empty it."
        )
    manifest = read_manifest(target)
    if instead_of is not None and manifest != instead_of:
        raise InputError(changed)
    if manifest["kind"] != kind:
        raise InputError(
            f"Output directory {str(target)!r} holds a {manifest['kind']!r} artefact, not a {kind!r}; "
            "choose another path."
        )
    listed = {entry["name"] for entry in manifest["files"]} | {MANIFEST_NAME}
    strange = sorted({relative_name(path, target) for path in files_below(target)} - listed)
    if strange:
        raise InputError(
            f"Output directory {str(target)!r} holds {strange[0]!r}, which c2tc did not write; move it away first."
        )
    if not replace:
        raise FileExistsError(f"{str(target)!r} is published already.")


def read_manifest(directory: str | Path) -> dict[str, Any]:
    """Return an artefact's manifest, or say that the directory is no artefact."""
    path = Path(directory) / MANIFEST_NAME
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"Directory {str(directory)!r} has no {MANIFEST_NAME}: it is not a c2tc artefact.") from None
    return open_manifest(content, str(path))


def verify_directory(directory: str | Path, *, kind: str | None = None) -> dict[str, Any]:
    """Check every file of an artefact against its manifest and return the manifest.

    Raises
    ------
    DamagedArtefactError
        Naming the first file that is missing or differs in size or sha256.
    """
    directory = Path(directory)
    manifest = read_manifest(directory)
    if kind is not None and manifest["kind"] != kind:
        raise InputError(f"Directory {str(directory)!r} holds a {manifest['kind']!r} artefact, not a {kind!r}.")
    check_files(directory, manifest, str(directory))
    return manifest


def _sibling(target: Path, ending: str) -> Path:
    return target.parent / f".{target.name}.{uuid.uuid4().hex}{ending}"


def _swap_in(private: Path, target: Path, *, kind: str, replace: bool, instead_of: Mapping[str, Any] | None) -> None:
    """Make ``private`` visible as ``target``; a rename onto a non-empty directory fails, so one writer wins."""
    if instead_of is None:
        with contextlib.suppress(OSError):
            private.rename(target)
            return
    # Looks again, because the other directory may have appeared while this one was being written.
    check_target(target, kind=kind, replace=replace, instead_of=instead_of)
    overtaken = f"{str(target)!r} was replaced by another writer at the same time."
    try:
        exchanged = exchange(private, target)
    except FileNotFoundError:
        raise FileExistsError(overtaken) from None
    if exchanged:
        try:
            check_target(private, kind=kind, replace=True, instead_of=instead_of)
        except InputError:
            # Somebody put it there since it was looked at, and wants it back.
            exchange(private, target)
            check_target(target, kind=kind, replace=replace, instead_of=instead_of)
            raise
        shutil.rmtree(private, ignore_errors=True)
        return
    # Between these two renames there is no artefact; a writer that is killed there leaves the old one beside it.
    retired = _sibling(target, RETIRED)
    try:
        target.rename(retired)
    except FileNotFoundError:
        raise FileExistsError(overtaken) from None
    try:
        private.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            retired.rename(target)
            raise
        # Another writer published between the two renames: its artefact stands, and the old one has had its day.
        shutil.rmtree(retired, ignore_errors=True)
        raise FileExistsError(overtaken) from None
    shutil.rmtree(retired, ignore_errors=True)
