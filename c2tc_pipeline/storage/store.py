"""Versioned artefacts in a storage root: data files first, then one manifest that is put if absent.

A writer stores its files under an id of its own, ``<key>/data/<writer>/``, which ends with the id of its run. Then one
manifest, ``<key>/manifests/<number>.json``, makes the version visible. Its number follows the newest one that was
taken before the files were stored; a writer that was overtaken since its work began is refused. Readers take the
highest manifest and check every file against it. ``<number>.collected`` marks a version whose files were collected.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.backend import Backend
from c2tc_pipeline.storage.manifest import DamagedArtefactError, check_files, open_manifest, seal_manifest

MANIFEST_FOLDER, DATA_FOLDER = "manifests", "data"
# The kind of a manifest without an artefact, with which a collector reserves a number.
NOTHING = "nothing"
_ENTRY_NAME = re.compile(r"(\d{8,})\.(json|collected)")
# Keys have no capital letters, so no key leads into a writer's folder.
WRITER = re.compile(r"W[0-9a-f]{32}(-[A-Za-z0-9-]{1,64})?")
# A part does not start with a dot, so hidden files are out of reach.
_KEY_PART = re.compile(r"[a-z0-9_|-][a-z0-9_.|-]*")
_MAX_KEY = 200
# How often files are stored again when a collector takes their number meanwhile.
_TRIES = 3


class LostRace(RuntimeError):
    """Another writer published this version first; nothing of this writer is visible."""

    def __init__(self, key: str, version: int, winner: str) -> None:
        # The arguments unchanged, so that the error can be pickled.
        super().__init__(key, version, winner)
        self.key, self.version, self.winner = key, version, winner

    def __str__(self) -> str:
        return f"Version {self.version} of {self.key!r} was published by another writer, {self.winner}; run again."


@dataclass(frozen=True)
class Published:
    """A visible version: its key, number and kind, its writer's id and settings, and the sha256 of each file."""

    key: str
    version: int
    kind: str
    writer: str
    settings: Mapping[str, Any]
    files: Mapping[str, str]


class ArtefactStore:
    """Versions of artefacts by key, in a local directory, S3 or memory."""

    def __init__(self, root: str | Path) -> None:
        self.backend = Backend(root)

    def publish(
        self,
        key: str,
        write: Callable[[Path], object],
        *,
        kind: str,
        settings: Mapping[str, Any] | None = None,
        after: int | None = None,
        run: str | None = None,
    ) -> Published:
        """Add a version, all or nothing; ``write`` fills a private local directory.

        ``after`` is the newest version when the caller's work began (default: now), ``run`` the id of the run, shown in
        leftovers. Raises ``LostRace`` if another writer published since. If a collector took the number meanwhile,
        ``write`` is called again for another directory.
        """
        began = self.newest_version(key) if after is None else after
        for _ in range(_TRIES):
            version = self._newest_unless_overtaken(key, began) + 1
            # A collector may be removing what was stored before, so each try has an id of its own.
            writer = f"W{uuid.uuid4().hex}" + (f"-{run}" if run else "")
            if not WRITER.fullmatch(writer):
                raise ValueError(f"Run id {run!r} has other characters than letters, digits and dashes.")
            folder = data_folder(key, writer)
            place = {"key": key, "version": version, "writer": writer}
            with self.backend.filling(folder) as directory:
                write(directory)
                manifest = seal_manifest(directory, kind=kind, settings=settings or {}, place=place)
            # Nothing is removed if this fails: the manifest may be stored although the answer was lost.
            if self.backend.put_if_absent(manifest_path(key, version), manifest):
                return _as_published(open_manifest(manifest, key))
        self._newest_unless_overtaken(key, began)
        raise RuntimeError(
            f"Version {version} of {key!r} was not published, since `c2tc gc` took its number {_TRIES} times while its "
            "files were stored; run again when it has ended, and check the clocks of both machines."
        )

    @contextmanager
    def fetch(self, key: str, *, version: int | None = None, kind: str | None = None) -> Iterator[Path]:
        """Yield a local directory, for reading only, with the verified files of a version, by default the newest."""
        while True:
            manifest = self._find(key, version)
            if manifest is None:
                wanted = "version" if version is None else f"version {version}"
                raise InputError(f"There is no {wanted} of {key!r} in {self.backend.root!r}; make it first.")
            if kind is not None and manifest["kind"] != kind:
                raise InputError(f"{key!r} in {self.backend.root!r} holds a {manifest['kind']!r}, not a {kind!r}.")
            folder = data_folder(key, manifest["writer"])
            with self.backend.reading(folder, [entry["name"] for entry in manifest["files"]]) as directory:
                try:
                    check_files(directory, manifest, self.backend.address(folder))
                except (DamagedArtefactError, FileNotFoundError):
                    if manifest["version"] in self.versions(key):
                        raise
                    # It was collected after its manifest was read.
                    continue
                yield directory
                return

    def address(self, published: Published) -> str:
        """Return the address of the folder with a version's files, for people; programs use :meth:`fetch`."""
        return self.backend.address(data_folder(published.key, published.writer))

    def published(self, key: str, version: int) -> Published:
        """Return an existing version; its files are not verified."""
        return _as_published(self.manifest(key, version))

    def latest(self, key: str) -> Published | None:
        """Return the newest version, or None if there is none; its files are not verified."""
        newest = self._find(key, None)
        return None if newest is None else _as_published(newest)

    def newest_version(self, key: str) -> int:
        """Return the highest number that is taken, or 0."""
        return max(self._numbers(key)[0], default=0)

    def versions(self, key: str) -> list[int]:
        """Return the numbers that are taken, in order, without versions whose files were collected."""
        taken, collected = self._numbers(key)
        return sorted(taken - collected)

    def take_number(self, key: str, number: int) -> None:
        """Reserve a number without publishing, so that a writer that is storing files can't publish under it."""
        writer = f"W{uuid.uuid4().hex}"
        place = {"key": check_key(key), "version": number, "writer": writer}
        self.backend.put_if_absent(
            manifest_path(key, number), seal_manifest(None, kind=NOTHING, settings={}, place=place)
        )

    def _newest_unless_overtaken(self, key: str, began: int) -> int:
        """Return the highest number; raise if a version was published after ``began``."""
        numbers = sorted(self._numbers(key)[0])
        newest = max(numbers, default=0)
        if began > newest:
            raise ValueError(f"Version {began} of {key!r} does not exist yet; the newest is {newest}.")
        for number in numbers:
            if number > began and (manifest := self.manifest(key, number))["kind"] != NOTHING:
                raise LostRace(key, number, manifest["writer"])
        return newest

    def _numbers(self, key: str) -> tuple[set[int], set[int]]:
        """Return the numbers that are taken, and those of versions whose files were collected."""
        names = (path.rpartition("/")[2] for path in self.backend.list_files(f"{check_key(key)}/{MANIFEST_FOLDER}"))
        found: dict[str, set[int]] = {"json": set(), "collected": set()}
        for match in map(_ENTRY_NAME.fullmatch, names):
            if match:
                found[match[2]].add(int(match[1]))
        return found["json"], found["collected"]

    def _find(self, key: str, version: int | None) -> dict[str, Any] | None:
        for number in reversed(self.versions(key)):
            if version in (None, number) and (manifest := self.manifest(key, number))["kind"] != NOTHING:
                return manifest
        return None

    def manifest(self, key: str, version: int) -> dict[str, Any]:
        """Return the fields of a version's manifest; raise if it is damaged or of another version."""
        path = manifest_path(key, version)
        shown = self.backend.address(path)
        manifest = open_manifest(self.backend.read_bytes(path), shown)
        in_place = (manifest.get("key"), manifest.get("version")) == (key, version)
        if not in_place or not WRITER.fullmatch(str(manifest.get("writer"))):
            raise DamagedArtefactError(f"Manifest {shown!r} belongs elsewhere; make the artefact again.")
        return manifest


def check_key(key: str) -> str:
    """Return a key, parts joined by slashes, or raise ``InputError`` if it might leave the store."""
    if len(key) > _MAX_KEY:
        raise InputError(f"Key {key[:40]!r}... has {len(key)} characters, more than {_MAX_KEY}; shorten it.")
    for part in key.split("/"):
        if not _KEY_PART.fullmatch(part) or ".." in part:
            raise InputError(
                f"Key {key!r} is not allowed: its part {part!r} may hold only a-z, 0-9, _, -, | and single dots "
                "inside; rename it."
            )
        if part == MANIFEST_FOLDER:
            raise InputError(f"Key {key!r} is not allowed: the store itself uses the name {part!r}; rename it.")
    return key


def data_folder(key: str, writer: str) -> str:
    """Return the folder of a writer's files."""
    return f"{key}/{DATA_FOLDER}/{writer}"


def manifest_path(key: str, version: int, ending: str = "json") -> str:
    """Return the path of a version's manifest, or with ``collected`` of the mark that its files were collected."""
    return f"{key}/{MANIFEST_FOLDER}/{version:08d}.{ending}"


def _as_published(manifest: Mapping[str, Any]) -> Published:
    files = {entry["name"]: entry["sha256"] for entry in manifest["files"]}
    return Published(files=files, **{name: manifest[name] for name in ("key", "version", "kind", "writer", "settings")})
