"""A manifest lists an artefact's files with their sizes and hashes, and carries a hash of itself.

A reader holds every file against it: a flipped byte in a Parquet file would otherwise be read silently as other data.
What belongs here: making, reading and checking manifests. What does not: where they are stored and when they appear.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.files import files_below, relative_name
from c2tc_pipeline.storage.hashing import hash_file, hash_json

MANIFEST_FORMAT = "c2tc-artefact/1"
# What file systems take, in bytes; ours are a few letters, two folders deep.
_LONGEST_NAME, _DEEPEST_NAME = 255, 8
MISSING = "is missing"


class DamagedArtefactError(InputError):
    """A stored artefact does not match its manifest; the message names the file."""


@contextmanager
def refusing_damage(shown: str) -> Iterator[None]:
    """Turn whatever a reader stumbles over, in files that match their manifest, into one sentence.

    They were made by another version or program, or on purpose: a seal tells that nothing changed since, and not who
    made them.

    Parameters
    ----------
    shown : str
        The address of the artefact.

    Examples
    --------
    >>> with refusing_damage("small"):
    ...     {}["label"]
    Traceback (most recent call last):
    ...
    c2tc_pipeline.storage.manifest.DamagedArtefactError: The artefact 'small' holds what can't be read as such
    (KeyError); make it again.
    """
    try:
        yield
    except InputError:
        raise
    except MemoryError:
        raise InputError(
            f"The artefact {shown!r} is damaged, or needs more memory than there is; make it again or add memory."
        ) from None
    except Exception as error:
        # A disk that fails is no damage, and may work again; it tells so by a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DamagedArtefactError(
            f"The artefact {shown!r} holds what can't be read as such ({type(error).__name__}); make it again."
        ) from error


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
    return seal_fields({"kind": kind, "files": files, "settings": dict(settings), **(place or {})})


def seal_fields(fields: Mapping[str, Any]) -> bytes:
    """Return a manifest with these fields, as the bytes to store."""
    # Sealed in the form that a reader gets: through JSON and back, tuples are lists and every key is a string.
    content = json.loads(json.dumps({**fields, "format": MANIFEST_FORMAT}))
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
        damage = damage_of(directory / entry["name"], entry)
        if damage is not None:
            wrong = "is missing" if damage == MISSING else "does not match its manifest"
            raise DamagedArtefactError(f"File {shown + '/' + entry['name']!r} {wrong}; make the artefact again.")


def damage_of(path: Path, entry: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a file, going by its entry in a manifest; None if nothing is.

    Examples
    --------
    >>> damage_of(Path("no such file"), {"size": 2, "sha256": "00"})
    'is missing'
    """
    if not path.is_file():
        return MISSING
    size = path.stat().st_size
    if size != entry["size"]:
        return f"has {size:,} bytes instead of {entry['size']:,}"
    return None if hash_file(path) == entry["sha256"] else "has another sha256"


def _is_entry(entry: Mapping[str, Any]) -> bool:
    """Tell whether a file is described in full, by a name that leads below the directory it is joined to."""
    name, size, digest = entry["name"], entry["size"], entry["sha256"]
    path = PurePosixPath(name)
    stays_inside = bool(path.parts) and not path.is_absolute() and ".." not in path.parts
    # No name of ours has any of these; elsewhere than here a backslash divides folders and a colon names a disk.
    is_plain = name.isprintable() and not set(name) & set("\\:")
    is_short = all(len(part.encode()) <= _LONGEST_NAME for part in path.parts) and len(path.parts) <= _DEEPEST_NAME
    return stays_inside and is_plain and is_short and type(size) is int and size >= 0 and isinstance(digest, str)
