"""Published directories: written aside, listed in ``manifest.json``, synced, then made visible by one rename.

Where an artefact is replaced, the old one is first renamed to a hidden name beside it. A writer that is killed between
the two renames loses nothing: the next reader, writer or ``c2tc gc`` renames the old one back. All of them hold a lock
on the parent directory for the renames, so that none of them reads between the two renames of another.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage import manifest as manifests
from c2tc_pipeline.storage.manifest import files_below, relative_name, sync_folder

MANIFEST_NAME = "manifest.json"
# Endings of the hidden siblings of an artefact: one being written, and one being replaced.
PARTIAL, RETIRED = ".partial", ".retired"
SCRATCH_PREFIX = "c2tc-scratch-"


class ScratchDirectory(tempfile.TemporaryDirectory[str]):
    """Temporary directory named after its process, so that ``c2tc gc`` recognises those of killed processes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(prefix=f"{SCRATCH_PREFIX}{os.getpid()}-", **options)


def publish_directory(
    target: str | Path,
    write: Callable[[Path], object],
    *,
    kind: str,
    settings: Mapping[str, Any] | None = None,
    replace: bool = False,
    instead_of: Mapping[str, Any] | None = None,
) -> Path:
    """Write an artefact all or nothing: ``write`` fills a private directory, which then becomes ``target``.

    With ``replace`` an artefact of the same kind is replaced, unless it holds a file that its manifest does not list.
    ``instead_of`` is the manifest of the only artefact that may be replaced. Raises ``FileExistsError`` if another
    writer was first, ``InputError`` if the target is not an artefact that may be replaced.
    """
    target = Path(os.path.abspath(target))
    check_target(target, kind=kind, replace=replace)
    target.parent.mkdir(parents=True, exist_ok=True)
    private = _sibling(target, PARTIAL)
    private.mkdir()
    try:
        write(private)
        (private / MANIFEST_NAME).write_bytes(manifests.seal_manifest(private, kind=kind, settings=settings or {}))
        manifests.sync_directory(private)
        _swap_in(private, target, kind=kind, replace=replace, instead_of=instead_of)
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(private, ignore_errors=True)
        raise
    return target


def discard_directory(target: Path) -> None:
    """Remove an artefact in one visible step; a missing one is ignored."""
    # Not under the name of a replaced one, which would be restored.
    removed = _sibling(target, PARTIAL)
    with contextlib.suppress(OSError):
        with _locked(target.parent):
            target.rename(removed)
        shutil.rmtree(removed, ignore_errors=True)


def check_target(target: str | Path, *, kind: str, replace: bool) -> None:
    """Refuse a target that a later :func:`publish_directory` could not take, before any work is done."""
    target = Path(os.path.abspath(target))
    with _locked(target.parent):
        _check_locked(target, kind=kind, replace=replace)


def _check_locked(target: Path, *, kind: str, replace: bool, instead_of: Mapping[str, Any] | None = None) -> None:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise InputError(f"Output {str(target)!r} exists and is not a directory; choose another path.")
    ancestor = next((folder for folder in target.parents if folder.exists()), None)
    if ancestor is not None and not (ancestor.is_dir() and os.access(ancestor, os.W_OK | os.X_OK)):
        wrong = "may not be written to" if ancestor.is_dir() else "is a file"
        raise InputError(f"Output {str(target)!r} can't be made: {str(ancestor)!r} {wrong}; choose another path.")
    changed = f"Directory {str(target)!r} was replaced or removed meanwhile; run again."
    if not (target.exists() or _restore_locked(target)) or not any(target.iterdir()):
        if instead_of is not None:
            raise InputError(changed)
        return
    if not (target / MANIFEST_NAME).exists():
        raise InputError(
            f"Output directory {str(target)!r} exists and was not made by c2tc; choose another path or empty it."
        )
    manifest = _read_manifest(target)
    if instead_of is not None and manifest != instead_of:
        raise InputError(changed)
    if manifest["kind"] != kind:
        raise InputError(
            f"Output directory {str(target)!r} holds a {manifest['kind']!r} artefact, not a {kind!r}; "
            "choose another path."
        )
    listed = {entry["name"] for entry in manifest["files"]} | {MANIFEST_NAME}
    unknown = sorted({relative_name(path, target) for path in files_below(target)} - listed)
    if unknown:
        raise InputError(
            f"Output directory {str(target)!r} holds {unknown[0]!r}, which c2tc did not write; move it away first."
        )
    if not replace:
        raise FileExistsError(f"{str(target)!r} is published already; choose another path, or give replace=True.")


def read_manifest(directory: str | Path) -> dict[str, Any]:
    """Return an artefact's manifest; raise if the directory is not an artefact."""
    directory = Path(os.path.abspath(directory))
    if not (directory / MANIFEST_NAME).exists():
        # Waits for a replacement under way.
        restore(directory)
    return _read_manifest(directory)


def _read_manifest(directory: Path) -> dict[str, Any]:
    path = directory / MANIFEST_NAME
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"Directory {str(directory)!r} has no {MANIFEST_NAME}: it is not a c2tc artefact.") from None
    return manifests.open_manifest(content, str(path))


def verify_directory(directory: str | Path, *, kind: str | None = None) -> dict[str, Any]:
    """Check every file of an artefact against its manifest and return the manifest."""
    directory = Path(directory)
    manifest = read_manifest(directory)
    if kind is not None and manifest["kind"] != kind:
        raise InputError(f"Directory {str(directory)!r} holds a {manifest['kind']!r} artefact, not a {kind!r}.")
    manifests.check_files(directory, manifest, str(directory))
    return manifest


def restore(target: Path) -> bool:
    """Undo a replacement that was killed: rename the old artefact back; return whether there was one."""
    target = Path(os.path.abspath(target))
    with _locked(target.parent):
        return not target.exists() and _restore_locked(target)


def _restore_locked(target: Path) -> bool:
    for retired in sorted(target.parent.glob(f".{glob.escape(target.name)}.*{RETIRED}")):
        with contextlib.suppress(OSError, InputError):
            manifests.check_files(retired, _read_manifest(retired), str(retired))
            retired.rename(target)
            return True
    return False


def _sibling(target: Path, ending: str) -> Path:
    return target.parent / f".{target.name}.{uuid.uuid4().hex}{ending}"


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold an exclusive lock on a directory, if it exists. The system releases the lock of a killed process."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        # Nothing can be renamed in it.
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _swap_in(private: Path, target: Path, *, kind: str, replace: bool, instead_of: Mapping[str, Any] | None) -> None:
    """Make ``private`` visible as ``target``."""
    retired = _sibling(target, RETIRED)
    with _locked(target.parent):
        # Checked again, because another directory may have appeared while this one was written.
        _check_locked(target, kind=kind, replace=replace, instead_of=instead_of)
        try:
            if target.exists():
                target.rename(retired)
                # And after the rename, because a file may have been added since.
                _check_locked(retired, kind=kind, replace=True, instead_of=instead_of)
            private.rename(target)
        except BaseException:
            with contextlib.suppress(OSError):
                retired.rename(target)
            # A file that was added is reported by the target's own name.
            _check_locked(target, kind=kind, replace=replace, instead_of=instead_of)
            raise
    shutil.rmtree(retired, ignore_errors=True)
