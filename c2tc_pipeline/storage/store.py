"""Artefacts in numbered versions, each of them whole, in a directory, in S3 or in memory.

A writer's files go under an id of its own, ``<key>/data/<writer>/``, which ends with the id of its run if it has one.
When all of them are there, one small manifest, ``<key>/manifests/<number>.json``, is put if it is absent: it makes the
version visible. Its number is the next one after the newest that was taken when the writer began to store files, and no
other version may have come since its work began, so a writer that was overtaken is refused, however late it comes. One
whose number went to a collector, which publishes nothing, stores its files once more, under another id and number. A
reader takes the highest manifest and holds every file against it. No number is used twice, and no clock is asked.

Manifests stay for good. A version whose files were collected is marked by ``<number>.collected`` beside its manifest.

What belongs here: keys, versions and the order of writes. What does not: how bytes reach a place (the backends), and
what is removed when (:mod:`c2tc_pipeline.storage.store_leftovers`).
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
from c2tc_pipeline.storage.keys import MANIFEST_FOLDER, check_key
from c2tc_pipeline.storage.manifest import DamagedArtefactError, check_files, open_manifest, seal_fields, seal_manifest
from c2tc_pipeline.storage.roots import open_backend
from c2tc_pipeline.storage.s3_backend import S3Access

DATA_FOLDER = "data"
# The kind of a manifest that only takes a number: there is no artefact behind it.
NOTHING = "nothing"
_ENTRY_NAME = re.compile(r"(\d{8,})\.(json|collected)")
# The capital letter occurs in no key, so no key leads into a writer's folder.
_WRITER = re.compile(r"W[0-9a-f]{32}(-[A-Za-z0-9-]{1,64})?")


# How often files are stored if each time a collector takes their number meanwhile. Once is rare, thrice is a collector
# that can't see holds, by a clock that is far ahead.
_TRIES = 3


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


class NumberCollectedError(RuntimeError):
    """A collector took the number of a version each time its files were stored; nothing of them is visible.

    Parameters
    ----------
    key : str
        What was to be published.
    version : int
        The number that was taken last.
    """

    def __init__(self, key: str, version: int) -> None:
        super().__init__(key, version)
        self.key, self.version = key, version

    def __str__(self) -> str:
        return (
            f"Version {self.version} of {self.key!r} was not published, since `c2tc gc` took its number while its "
            f"files were stored, {_TRIES} times in a row; run again when it has ended, and check the clocks of both "
            "machines."
        )


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
        run: str | None = None,
    ) -> Published:
        """Add a version, all or nothing.

        Parameters
        ----------
        key : str
            See :func:`~c2tc_pipeline.storage.keys.check_key`.
        write : callable
            Called with a private local directory to fill; again, with another one, if `c2tc gc` took the number
            meanwhile. If it raises, nothing is published.
        kind : str
            What the artefact is; a reader can insist on it.
        settings : mapping, optional
            JSON values to record.
        after : int, optional
            The newest version when the work began (see :meth:`newest_version`), for a caller whose work does not happen
            in ``write``. Absent, the work begins now.
        run : str, optional
            The id of the writer's run, letters, digits and dashes; it becomes part of the writer's own id, so that
            leftovers say whose they are.

        Raises
        ------
        LostRace
            If another writer published since the work began. Files of this writer that are stored already are
            leftovers.
        NumberCollectedError
            If `c2tc gc` took the number again and again while files were stored.
        """
        check_key(key)
        newest = self.newest_version(key)
        if after is not None and after > newest:
            raise ValueError(f"Version {after} of {key!r} does not exist yet; the newest is {newest}.")
        began = newest if after is None else after
        for _ in range(_TRIES):
            self._refuse_overtaken(key, began, newest)
            version = newest + 1
            # A collector may be removing what was stored before, so nothing of it is used again, the id included.
            writer = f"W{uuid.uuid4().hex}" + (f"-{run}" if run else "")
            if not is_writer(writer):
                raise ValueError(f"Run {run!r} is no id of letters, digits and dashes.")
            place = {"key": key, "version": version, "writer": writer}
            manifest = self._put_version(write, kind, settings or {}, place)
            if manifest is not None:
                return _as_published(open_manifest(manifest, key))
            newest = self.newest_version(key)
        self._refuse_overtaken(key, began, newest)
        raise NumberCollectedError(key, version)

    def _put_version(
        self, write: Callable[[Path], object], kind: str, settings: Mapping[str, Any], place: Mapping[str, Any]
    ) -> bytes | None:
        """Store files and their manifest, and return the manifest; None where its number was taken meanwhile."""
        folder = data_folder(place["key"], place["writer"])
        with self.backend.holding(folder):
            with self.backend.filling(folder) as directory:
                write(directory)
                manifest = seal_manifest(directory, kind=kind, settings=settings, place=place)
            # From here on nothing of this writer's is removed, whatever happens: the manifest may be there although
            # the answer says otherwise.
            is_there = self.backend.put_if_absent(manifest_path(place["key"], place["version"]), manifest)
        return manifest if is_there else None

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
        while True:
            manifest = self._newest(key) if version is None else self._chosen(key, version)
            if manifest is None:
                wanted = "version" if version is None else f"version {version}"
                raise InputError(f"There is no {wanted} of {key!r} in {self.backend.root!r}; make it first.")
            if kind is not None and manifest["kind"] != kind:
                raise InputError(f"{key!r} in {self.backend.root!r} holds a {manifest['kind']!r}, not a {kind!r}.")
            folder = data_folder(key, manifest["writer"])
            with self.backend.reading(folder, [entry["name"] for entry in manifest["files"]]) as directory:
                # It may have become old and been collected before it was held; a collector marks first, then asks.
                if manifest["version"] not in self.versions(key):
                    continue
                check_files(directory, manifest, self.backend.address(folder))
                yield directory
                return

    def address(self, published: Published) -> str:
        """Return the address of the folder with a version's files, for people; programs use :meth:`fetch`."""
        return self.backend.address(data_folder(published.key, published.writer))

    def published(self, key: str, version: int) -> Published:
        """Return one version of an artefact, which must be there; its files are not verified."""
        return _as_published(self._manifest(key, version))

    def latest(self, key: str) -> Published | None:
        """Return the newest version of an artefact, or None if there is none; its files are not verified."""
        newest = self._newest(key)
        return None if newest is None else _as_published(newest)

    def newest_version(self, key: str) -> int:
        """Return the highest number that is taken, 0 if none is: what a writer that starts now will replace."""
        return max(self._numbers(key)[0], default=0)

    def versions(self, key: str) -> list[int]:
        """Return the numbers that are taken, oldest first, without versions whose files were collected."""
        taken, collected = self._numbers(key)
        return sorted(taken - collected)

    def take_number(self, key: str, number: int) -> None:
        """See to it that a number is taken, by the newest version once more, or by nothing if there is none.

        A writer that is storing files to publish them under this number has to store them again, under another; readers
        see no difference, and neither does a writer that has stored nothing yet.
        """
        newest = self._newest(key)
        if newest is None:
            newest = {"kind": NOTHING, "files": [], "settings": {}, "writer": f"W{uuid.uuid4().hex}"}
        self.backend.put_if_absent(
            manifest_path(key, number), seal_fields({**newest, "key": check_key(key), "version": number})
        )

    def leftovers(self, key: str) -> list[str]:
        """Return the files that belong to no version: of writers that lost, died or are still at work."""
        # Listed before the manifests: what is published in between is then no leftover.
        start = f"{check_key(key)}/{DATA_FOLDER}/"
        stored = [(path, path.removeprefix(start).partition("/")[0]) for path in self.backend.list_files(start[:-1])]
        published = {self._manifest(key, version)["writer"] for version in self.versions(key)}
        return [path for path, writer in stored if is_writer(writer) and writer not in published]

    def _refuse_overtaken(self, key: str, began: int, newest: int) -> None:
        """Raise where somebody published since the work began; numbers that collectors took meanwhile show nothing new.

        They are passed over, because nothing is stored yet of the writer that asks, or nothing that it is going to
        publish: none of those files were collected.
        """
        if began == newest:
            return
        # Manifests stay for good, and every writer that publishes has a new id.
        known = set()
        for number in sorted(self._numbers(key)[0]):
            manifest = self._manifest(key, number)
            if number <= began:
                known.add(manifest["writer"])
            elif manifest["kind"] != NOTHING and manifest["writer"] not in known:
                raise LostRace(key, number, manifest["writer"])

    def _numbers(self, key: str) -> tuple[set[int], set[int]]:
        """Return the numbers that are taken, and those of versions whose files were collected."""
        names = (path.rpartition("/")[2] for path in self.backend.list_files(f"{check_key(key)}/{MANIFEST_FOLDER}"))
        found: dict[str, set[int]] = {"json": set(), "collected": set()}
        for match in map(_ENTRY_NAME.fullmatch, names):
            if match:
                found[match[2]].add(int(match[1]))
        return found["json"], found["collected"]

    def _newest(self, key: str) -> dict[str, Any] | None:
        for version in reversed(self.versions(key)):
            manifest = self._manifest(key, version)
            if manifest["kind"] != NOTHING:
                return manifest
        return None

    def _chosen(self, key: str, version: int) -> dict[str, Any] | None:
        manifest = self._manifest(key, version) if version in self.versions(key) else None
        return None if manifest is None or manifest["kind"] == NOTHING else manifest

    def _manifest(self, key: str, version: int) -> dict[str, Any]:
        path = manifest_path(key, version)
        return open_version(self.backend.read_bytes(path), key, version, self.backend.address(path))


def open_version(content: bytes, key: str, version: int, shown: str) -> dict[str, Any]:
    """Return the fields of a version's manifest, or say that it is damaged or belongs elsewhere."""
    manifest = open_manifest(content, shown)
    at_home = (manifest.get("key"), manifest.get("version")) == (key, version)
    if not at_home or not is_writer(str(manifest.get("writer"))):
        raise DamagedArtefactError(f"Manifest {shown!r} belongs elsewhere; make the artefact again.")
    return manifest


def is_writer(name: str) -> bool:
    """Tell whether a name is a writer's id.

    Examples
    --------
    >>> is_writer("W0123456789abcdef0123456789abcdef"), is_writer("notes")
    (True, False)
    """
    return bool(_WRITER.fullmatch(name))


def data_folder(key: str, writer: str) -> str:
    """Return where a writer's files are."""
    return f"{key}/{DATA_FOLDER}/{writer}"


def manifest_path(key: str, version: int) -> str:
    """Return where the manifest of a version is."""
    return f"{key}/{MANIFEST_FOLDER}/{version:08d}.json"


def collected_path(key: str, version: int) -> str:
    """Return where the mark of a version is whose files were collected."""
    return f"{key}/{MANIFEST_FOLDER}/{version:08d}.collected"


def _as_published(manifest: Mapping[str, Any]) -> Published:
    return Published(
        key=manifest["key"],
        version=manifest["version"],
        kind=manifest["kind"],
        writer=manifest["writer"],
        settings=manifest["settings"],
        files={entry["name"]: entry["sha256"] for entry in manifest["files"]},
    )
