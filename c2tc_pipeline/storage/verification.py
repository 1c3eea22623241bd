"""Holding everything that is stored against its manifests, and naming what is damaged.

What belongs here: whole stores and folders. A single artefact is verified by whoever reads it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.artefact import MANIFEST_NAME, PARTIAL, RETIRED, read_manifest
from c2tc_pipeline.storage.keys import MANIFEST_FOLDER, check_key
from c2tc_pipeline.storage.manifest import damage_of
from c2tc_pipeline.storage.store import ArtefactStore, collected_path, data_folder, open_version

_ENTRY_NAME = re.compile(r"[0-9a-f]{64}")
_MANIFEST_PATH = re.compile(rf"(?P<key>.+)/{MANIFEST_FOLDER}/(?P<version>\d{{8,}})\.json")


@dataclass(frozen=True)
class Checked:
    """One file that was held against its manifest, or a manifest against its own hash.

    Parameters
    ----------
    address : str
        Which file.
    damage : str or None
        What is wrong with it; None if nothing is.
    size : int
        Bytes that a manifest promises of it.
    is_manifest : bool
        Whether it is a manifest; there is one for each artefact, or version of one.
    """

    address: str
    damage: str | None = None
    size: int = 0
    is_manifest: bool = False


def verify_store(store: ArtefactStore) -> Iterator[Checked]:
    """Hold every version in a store against its manifest; what was collected on purpose is left out.

    Parameters
    ----------
    store : ArtefactStore
        Where to look. In a place without local paths, one file at a time is copied to this machine.

    Examples
    --------
    >>> store = ArtefactStore("memory://example-of-verifying")
    >>> done = store.publish("greeting", lambda d: (d / "a.txt").write_text("hi"), kind="demo")
    >>> [(checked.address.rpartition("/")[2], checked.damage) for checked in verify_store(store)]
    [('00000001.json', None), ('a.txt', None)]
    """
    backend = store.backend
    listed = backend.list_files("")
    there = set(listed)
    seen = set()
    for path in listed:
        match = _MANIFEST_PATH.fullmatch(path)
        if match is None:
            continue
        key, version = match["key"], int(match["version"])
        shown = backend.address(path)
        try:
            manifest = open_version(backend.read_bytes(path), check_key(key), version, shown)
        except InputError:
            yield Checked(shown, "is damaged", is_manifest=True)
            continue
        yield Checked(shown, is_manifest=True)
        folder = data_folder(key, manifest["writer"])
        if collected_path(key, version) in there or folder in seen:
            continue
        seen.add(folder)
        for entry in manifest["files"]:
            with backend.reading(folder, [entry["name"]]) as directory:
                damage = damage_of(directory / entry["name"], entry)
            if damage is not None and version not in store.versions(key):
                # Collected since all was listed.
                break
            yield Checked(backend.address(f"{folder}/{entry['name']}"), damage, entry["size"])


def verify_folder(folder: Path) -> Iterator[Checked]:
    """Hold every artefact below a folder against its manifest, such as the entries of a cache.

    Parameters
    ----------
    folder : Path
        Where to look, at any depth; what killed writers left there is passed over.
    """
    for parent, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if not name.endswith((PARTIAL, RETIRED)))
        directory = Path(parent)
        if MANIFEST_NAME not in files:
            # Entries of a cache have names that nothing else has, so that one without its manifest is noticed.
            if _ENTRY_NAME.fullmatch(directory.name):
                yield Checked(str(directory / MANIFEST_NAME), "is missing", is_manifest=True)
            continue
        shown = str(directory / MANIFEST_NAME)
        try:
            manifest = read_manifest(directory)
        except InputError:
            yield Checked(shown, "is damaged", is_manifest=True)
            continue
        yield Checked(shown, is_manifest=True)
        for entry in manifest["files"]:
            yield Checked(str(directory / entry["name"]), damage_of(directory / entry["name"], entry), entry["size"])
