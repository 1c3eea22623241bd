"""A manifest lists an artefact's files with their sizes and hashes, and carries a hash of itself.

A reader holds every file against it: a flipped byte in a Parquet file would otherwise be read silently as other data.
What belongs here: making, reading and checking manifests. What does not: where they are stored and when they appear.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.storage.files import files_below, relative_name
from c2tc_pipeline.storage.hashing import hash_file, hash_json

MANIFEST_FORMAT = "c2tc-artefact/1"


class DamagedArtefactError(InputError):
    """A stored artefact does not match its manifest; the message names the file."""


def seal_manifest(
    directory: Path, *, kind: str, settings: Mapping[str, Any], place: Mapping[str, Any] | None = None
) -> bytes:
    """Return the manifest of the files below a directory, as the bytes to store.

    Parameters
    ----------
    directory : pathlib.Path
        Holds the files, and nothing else.
    kind : str
        What the artefact is.
    settings : mapping
        JSON values to record.
    place : mapping, optional
        More JSON fields that tie the manifest to where it is stored.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.txt").write_text("hi")
    ...     open_manifest(seal_manifest(Path(folder), kind="demo", settings={}), "here")["files"][0]["size"]
    2
    """
    files = [
        {"name": relative_name(path, directory), "size": path.stat().st_size, "sha256": hash_file(path)}
        for path in files_below(directory)
    ]
    content = {"format": MANIFEST_FORMAT, "kind": kind, "files": files, "settings": dict(settings), **(place or {})}
    # Sealed in the form that a reader gets: through JSON and back, tuples are lists and every key is a string.
    content = json.loads(json.dumps(content))
    manifest = {**content, "sha256": hash_json(content)}
    return (json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def open_manifest(content: bytes, shown: str) -> dict[str, Any]:
    """Return a manifest's fields, or say that it is damaged.

    Parameters
    ----------
    content : bytes
        What is stored.
    shown : str
        The manifest's address, for the message.

    Raises
    ------
    DamagedArtefactError
        If it is not a manifest, does not match its own hash or lists a file outside the artefact.
    """
    try:
        manifest = json.loads(content.decode())
        seal = manifest.pop("sha256")
        well_formed = (
            manifest["format"] == MANIFEST_FORMAT
            and hash_json(manifest) == seal
            and all(_stays_inside(entry["name"]) for entry in manifest["files"])
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        well_formed = False
    if not well_formed:
        raise DamagedArtefactError(f"Manifest {shown!r} is damaged; make the artefact again.")
    return dict(manifest)


def check_files(directory: Path, manifest: Mapping[str, Any], shown: str) -> None:
    """Hold every file of an artefact against its manifest.

    Parameters
    ----------
    directory : pathlib.Path
        Where the files are.
    manifest : mapping
        From :func:`open_manifest`.
    shown : str
        The address of the directory, for the message.

    Raises
    ------
    DamagedArtefactError
        Naming the first file that is missing or differs in size or sha256.
    """
    for entry in manifest["files"]:
        path, name = directory / entry["name"], f"{shown}/{entry['name']}"
        if not path.is_file():
            raise DamagedArtefactError(f"File {name!r} is missing; make the artefact again.")
        if path.stat().st_size != entry["size"] or hash_file(path) != entry["sha256"]:
            raise DamagedArtefactError(f"File {name!r} does not match its manifest; make the artefact again.")


def _stays_inside(name: str) -> bool:
    """Tell whether a file's name, joined to a directory, leads below it."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts
