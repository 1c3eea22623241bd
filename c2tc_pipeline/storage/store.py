"""Artefacts in numbered versions, each of them whole, in a directory, in S3 or in memory.

A writer's files go under an id of its own, ``<key>/data/<writer>/``. When all of them are there, one small manifest,
``<key>/manifests/<number>.json``, is put if it is absent: it makes the version visible. Its number is the next one
after the newest version that existed when the writer started, so a writer that was overtaken finds its number taken,
however late it comes. A reader takes the highest manifest and holds every file against it. No number is used twice.

What belongs here: keys, versions and the order of writes. What does not: how bytes reach a place (the backends).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.storage.keys import MANIFEST_FOLDER, check_key
from c2tc_pipeline.storage.manifest import DamagedArtefactError, check_files, open_manifest, seal_manifest
from c2tc_pipeline.storage.roots import open_backend
from c2tc_pipeline.storage.s3_backend import S3Access

_MANIFEST_NAME = re.compile(r"(\d{8,})\.json")
# The capital letter occurs in no key, so no key leads into a writer's folder.
_WRITER = re.compile(r"W[0-9a-f]{32}")


class LostRace(RuntimeError):
    """Another writer published this version first; nothing of this writer's is visible.

    Parameters
    ----------
    key : str
        What both wrote.
    version : int
        The number both wanted.
    winner : str
        The id of the writer that has it.
    """

    def __init__(self, key: str, version: int, winner: str) -> None:
        # The arguments as they are, so that the error survives a trip between processes.
        super().__init__(key, version, winner)
        self.key, self.version, self.winner = key, version, winner

    def __str__(self) -> str:
        return f"Version {self.version} of {self.key!r} was published by another writer, {self.winner}; run again."


@dataclass(frozen=True)
class Published:
    """One visible version of an artefact.

    Parameters
    ----------
    key, version : str, int
        What it is a version of, and which one.
    kind : str
        What the artefact is.
    writer : str
        The id under which its files are stored.
    settings : mapping
        What the writer recorded.
    files : mapping of str to str
        The sha256 of each file by name.
    """

    key: str
    version: int
    kind: str
    writer: str
    settings: Mapping[str, Any]
    files: Mapping[str, str]


class ArtefactStore:
    """Versions of artefacts by key.

    Parameters
    ----------
    root : str or path
        A path, ``file:///path``, ``s3://bucket/prefix`` or ``memory://name``.
    access : S3Access, optional
        Endpoint and credentials for ``s3://``; absent, the environment decides.

    Examples
    --------
    >>> store = ArtefactStore("memory://example-of-a-store")
    >>> for text in "first", "second":
    ...     done = store.publish("greeting", lambda d: (d / "a.txt").write_text(text), kind="demo")
    >>> done.version, store.versions("greeting")
    (2, [1, 2])
    >>> with store.fetch("greeting") as directory:
    ...     (directory / "a.txt").read_text()
    'second'
    """

    def __init__(self, root: str | Path, *, access: S3Access | None = None) -> None:
        self.backend = open_backend(root, access)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.backend.root!r})"

    def publish(
        self,
        key: str,
        write: Callable[[Path], object],
        *,
        kind: str,
        settings: Mapping[str, Any] | None = None,
        after: int | None = None,
    ) -> Published:
        """Add a version, all or nothing.

        Parameters
        ----------
        key : str
            See :func:`~c2tc_pipeline.storage.keys.check_key`.
        write : callable
            Called once with a private local directory to fill. If it raises, nothing is published.
        kind : str
            What the artefact is; a reader can insist on it.
        settings : mapping, optional
            JSON values to record.
        after : int, optional
            The newest version when the work began (see :meth:`newest_version`), for a caller whose work does not happen
            in ``write``. Absent, the work begins now.

        Raises
        ------
        LostRace
            If another writer published since the work began. Files of this writer that are stored already are
            leftovers.
        """
        check_key(key)
        newest = self.newest_version(key)
        if after is not None and after > newest:
            raise ValueError(f"Version {after} of {key!r} does not exist yet; the newest is {newest}.")
        version = (newest if after is None else after) + 1
        if version <= newest:
            raise LostRace(key, version, self._manifest(key, version)["writer"])
        writer = f"W{uuid.uuid4().hex}"
        with self.backend.filling(_data_folder(key, writer)) as directory:
            write(directory)
            place = {"key": key, "version": version, "writer": writer}
            manifest = seal_manifest(directory, kind=kind, settings=settings or {}, place=place)
        # From here on nothing of this writer's is removed, whatever happens: the manifest may be there although the
        # answer says otherwise.
        if not self.backend.put_if_absent(_manifest_path(key, version), manifest):
            raise LostRace(key, version, self._manifest(key, version)["writer"])
        return _as_published(open_manifest(manifest, key))

    @contextmanager
    def fetch(self, key: str, *, version: int | None = None, kind: str | None = None) -> Iterator[Path]:
        """Give out a local directory with the files of a version, verified; it is for reading only.

        Parameters
        ----------
        key : str
            Which artefact.
        version : int, optional
            Which of its versions; absent, the newest.
        kind : str, optional
            What it has to be.

        Raises
        ------
        DamagedArtefactError
            Naming the file that is missing or differs from what was published.
        InputError
            If there is no such version, or it is of another kind.
        """
        known = self.versions(key)
        if not known or version not in (None, *known):
            wanted = "version" if version is None else f"version {version}"
            raise InputError(f"There is no {wanted} of {key!r} in {self.backend.root!r}; make it first.")
        manifest = self._manifest(key, known[-1] if version is None else version)
        if kind is not None and manifest["kind"] != kind:
            raise InputError(f"{key!r} in {self.backend.root!r} holds a {manifest['kind']!r}, not a {kind!r}.")
        folder = _data_folder(key, manifest["writer"])
        with self.backend.reading(folder, [entry["name"] for entry in manifest["files"]]) as directory:
            check_files(directory, manifest, self.backend.address(folder))
            yield directory

    def address(self, published: Published) -> str:
        """Return the address of the folder with a version's files, for people; programs use :meth:`fetch`."""
        return self.backend.address(_data_folder(published.key, published.writer))

    def published(self, key: str, version: int) -> Published:
        """Return one version of an artefact, which must be there; its files are not verified."""
        return _as_published(self._manifest(key, version))

    def latest(self, key: str) -> Published | None:
        """Return the newest version of an artefact, or None if there is none; its files are not verified."""
        newest = self.newest_version(key)
        return _as_published(self._manifest(key, newest)) if newest else None

    def newest_version(self, key: str) -> int:
        """Return the number of the newest version, 0 if there is none."""
        return max(self.versions(key), default=0)

    def versions(self, key: str) -> list[int]:
        """Return the numbers of all versions, oldest first."""
        names = (path.rpartition("/")[2] for path in self.backend.list_files(f"{check_key(key)}/{MANIFEST_FOLDER}"))
        return sorted(int(match[1]) for match in map(_MANIFEST_NAME.fullmatch, names) if match)

    def leftovers(self, key: str) -> list[str]:
        """Return the files that belong to no version: of writers that lost, died or are still at work."""
        # Listed before the manifests: what is published in between is then no leftover.
        start = f"{check_key(key)}/data/"
        stored = [(path, path.removeprefix(start).partition("/")[0]) for path in self.backend.list_files(start[:-1])]
        published = {self._manifest(key, version)["writer"] for version in self.versions(key)}
        return [path for path, writer in stored if _WRITER.fullmatch(writer) and writer not in published]

    def _manifest(self, key: str, version: int) -> dict[str, Any]:
        path = _manifest_path(key, version)
        shown = self.backend.address(path)
        manifest = open_manifest(self.backend.read_bytes(path), shown)
        at_home = (manifest.get("key"), manifest.get("version")) == (key, version)
        if not at_home or not _WRITER.fullmatch(str(manifest.get("writer"))):
            raise DamagedArtefactError(f"Manifest {shown!r} belongs elsewhere; make the artefact again.")
        return manifest


def _data_folder(key: str, writer: str) -> str:
    return f"{key}/data/{writer}"


def _manifest_path(key: str, version: int) -> str:
    return f"{key}/{MANIFEST_FOLDER}/{version:08d}.json"


def _as_published(manifest: Mapping[str, Any]) -> Published:
    return Published(
        key=manifest["key"],
        version=manifest["version"],
        kind=manifest["kind"],
        writer=manifest["writer"],
        settings=manifest["settings"],
        files={entry["name"]: entry["sha256"] for entry in manifest["files"]},
    )
