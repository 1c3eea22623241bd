"""Hashes, and manifests: an artefact's files with sizes and sha256, sealed by a sha256 of the manifest itself.

Readers check every file against the manifest: pyarrow reads a flipped byte of a Parquet file as other data, silently.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from c2tc_pipeline.common.errors import InputError

MANIFEST_FORMAT = "c2tc-artefact/1"
# Seconds and cache hits, which differ between equal runs, go into a file of this name; content hashes leave it out.
TIMINGS_NAME = "timings.json"
MISSING = "is missing"
_MAX_NAME_BYTES, _MAX_DEPTH = 255, 8


def hash_json(value: Any) -> str:
    """Return the sha256 of a JSON value, independent of the order of keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def hash_array(array: np.ndarray) -> str:
    """Return the sha256 of an array's values, shape and dtype; object arrays are refused."""
    if array.dtype.hasobject:
        raise TypeError("An array of Python objects has no stable bytes to hash; convert it first.")
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    # Viewed as plain bytes, because datetime arrays do not export a buffer.
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def hash_file(path: Path) -> str:
    """Return the sha256 of a file, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class DamagedArtefactError(InputError):
    """A stored artefact does not match its manifest; the message names the file."""


@contextmanager
def refusing_damage(shown: str) -> Iterator[None]:
    """Turn the errors of a reader into ``DamagedArtefactError``: matching files may still be of another program."""
    try:
        yield
    except InputError:
        raise
    except MemoryError:
        raise InputError(
            f"The artefact {shown!r} is damaged, or needs more memory than there is; make it again or add memory."
        ) from None
    except Exception as error:
        # I/O errors, which have an errno, are not damage and may be transient.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DamagedArtefactError(
            f"The artefact {shown!r} can't be read ({type(error).__name__}); make it again."
        ) from error


def seal_manifest(
    directory: Path | None, *, kind: str, settings: Mapping[str, Any], place: Mapping[str, Any] | None = None
) -> bytes:
    """Return the manifest of the files below a directory, if any; ``place`` ties it to where it is stored."""
    paths = {relative_name(path, directory): path for path in files_below(directory)} if directory else {}
    files = [{"name": name, "size": path.stat().st_size, "sha256": hash_file(path)} for name, path in paths.items()]
    fields = {"kind": kind, "files": files, "settings": dict(settings), "format": MANIFEST_FORMAT, **(place or {})}
    # Hashed as a reader gets it: after a round trip through JSON tuples are lists and every key is a string.
    content = json.loads(json.dumps(fields))
    manifest = {**content, "sha256": hash_json(content)}
    return (json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def open_manifest(content: bytes, shown: str) -> dict[str, Any]:
    """Return a manifest's fields; raise if it does not match its own hash or lists a file outside the artefact."""
    try:
        manifest = json.loads(content.decode())
        seal = manifest.pop("sha256")
        well_formed = (
            manifest["format"] == MANIFEST_FORMAT
            and hash_json(manifest) == seal
            and isinstance(manifest["kind"], str)
            and isinstance(manifest["settings"], dict)
            and all(_is_entry(entry) for entry in manifest["files"])
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        well_formed = False
    if not well_formed:
        raise DamagedArtefactError(f"Manifest {shown!r} is damaged; make the artefact again.")
    return dict(manifest)


def check_files(directory: Path, manifest: Mapping[str, Any], shown: str) -> None:
    """Check every file of an artefact against its manifest; raise with the name of the first that differs."""
    for entry in manifest["files"]:
        damage = damage_of(directory / entry["name"], entry)
        if damage is not None:
            wrong = MISSING if damage == MISSING else "does not match its manifest"
            raise DamagedArtefactError(f"File {shown + '/' + entry['name']!r} {wrong}; make the artefact again.")


def damage_of(path: Path, entry: Mapping[str, Any]) -> str | None:
    """Return how a file differs from its entry in a manifest, or None."""
    if not path.is_file():
        return MISSING
    size = path.stat().st_size
    if size != entry["size"]:
        return f"has {size:,} bytes instead of {entry['size']:,}"
    return None if hash_file(path) == entry["sha256"] else "has another sha256"


def _is_entry(entry: Mapping[str, Any]) -> bool:
    """Return whether a manifest's entry is complete and its name stays below the artefact's directory."""
    name, size, digest = entry["name"], entry["size"], entry["sha256"]
    path = PurePosixPath(name)
    stays_inside = bool(path.parts) and not path.is_absolute() and ".." not in path.parts
    # On other systems a backslash separates folders and a colon follows a drive.
    is_plain = name.isprintable() and not set(name) & set("\\:")
    is_short = all(len(part.encode()) <= _MAX_NAME_BYTES for part in path.parts) and len(path.parts) <= _MAX_DEPTH
    return stays_inside and is_plain and is_short and type(size) is int and size >= 0 and isinstance(digest, str)


def files_below(directory: Path) -> list[Path]:
    """Return everything below a directory that is not a directory itself, sorted; links are not followed."""
    return sorted(path for path in directory.rglob("*") if path.is_symlink() or not path.is_dir())


def relative_name(path: Path, directory: Path) -> str:
    """Return a file's name within a directory, with slashes."""
    return path.relative_to(directory).as_posix()


def sync_directory(directory: Path) -> None:
    """Flush every file and folder below a directory to disk."""
    for path in files_below(directory):
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
    for below in directory.rglob("*"):
        if below.is_dir() and not below.is_symlink():
            sync_folder(below)
    sync_folder(directory)


def sync_folder(folder: Path) -> None:
    """Flush the names in one folder to disk; otherwise a power cut may lose the name of a new file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
