"""Published directories: written aside, listed in ``manifest.json``, synced, then made visible by one rename.

Where an artefact is replaced, the old one is first renamed to a hidden name beside it. A writer that is killed between
the two renames loses nothing: the next reader, writer or ``c2tc gc`` renames the old one back.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage import manifest as manifests
from c2tc_pipeline.storage.manifest import files_below, relative_name, sync_folder

MANIFEST_NAME = "manifest.json"
# Endings of the hidden siblings of an artefact: one being written, and one being replaced.
PARTIAL, RETIRED = ".partial", ".retired"
SCRATCH_PREFIX = "c2tc-scratch-"
_MAX_SWAPS = 5


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
        target.rename(removed)
        shutil.rmtree(removed, ignore_errors=True)


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
    if ancestor is not None and not (ancestor.is_dir() and os.access(ancestor, os.W_OK | os.X_OK)):
        wrong = "may not be written to" if ancestor.is_dir() else "is a file"
        raise InputError(f"Output {str(target)!r} can't be made: {str(ancestor)!r} {wrong}; choose another path.")
    changed = f"Directory {str(target)!r} was replaced or removed meanwhile; run again."
    if not (target.exists() or restore(target)) or not any(target.iterdir()):
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
    unknown = sorted({relative_name(path, target) for path in files_below(target)} - listed)
    if unknown:
        raise InputError(
            f"Output directory {str(target)!r} holds {unknown[0]!r}, which c2tc did not write; move it away first."
        )
    if not replace:
        raise FileExistsError(f"{str(target)!r} is published already.")


def read_manifest(directory: str | Path) -> dict[str, Any]:
    """Return an artefact's manifest; raise if the directory is no artefact."""
    path = Path(directory) / MANIFEST_NAME
    try:
        if not path.parent.exists():
            restore(path.parent)
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
    """Rename an artefact back that a killed replacement left aside; return whether there was one."""
    target = Path(os.path.abspath(target))
    for retired in sorted(target.parent.glob(f".{glob.escape(target.name)}.*{RETIRED}")):
        with contextlib.suppress(OSError, InputError):
            verify_directory(retired)
            # Fails if a new artefact has appeared by now.
            retired.rename(target)
            return True
    return False


def _sibling(target: Path, ending: str) -> Path:
    return target.parent / f".{target.name}.{uuid.uuid4().hex}{ending}"


def _swap_in(private: Path, target: Path, *, kind: str, replace: bool, instead_of: Mapping[str, Any] | None) -> None:
    """Make ``private`` visible as ``target``; a rename onto a directory that is not empty fails, so one writer wins."""
    if instead_of is None:
        with contextlib.suppress(OSError):
            private.rename(target)
            return
    for _ in range(_MAX_SWAPS):
        # Checked again, because another directory may have appeared while this one was written.
        check_target(target, kind=kind, replace=replace, instead_of=instead_of)
        retired = _sibling(target, RETIRED)
        try:
            with contextlib.suppress(FileNotFoundError):
                target.rename(retired)
            # And after the rename, because a file may have been added since.
            check_target(retired, kind=kind, replace=True, instead_of=instead_of)
            private.rename(target)
        except (OSError, InputError) as error:
            with contextlib.suppress(OSError):
                retired.rename(target)
            if isinstance(error, InputError) or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                check_target(target, kind=kind, replace=replace, instead_of=instead_of)
                raise
        else:
            shutil.rmtree(retired, ignore_errors=True)
            return
        # Another writer published between the two renames; its artefact is the one to replace now.
        shutil.rmtree(retired, ignore_errors=True)
    raise FileExistsError(f"{str(target)!r} is being replaced by other writers.")
