"""Verify everything that is stored against its manifests, and collect leftovers and old versions by age.

Files that a writer is about to publish must stay: only what has not changed for a given time is removed, and as clocks
may be wrong, the number under which such a writer could publish is taken first, so that it stores its files again. An
old version is removed only when its successor has been visible for the same time.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import shutil
import stat
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.artefact import MANIFEST_NAME, PARTIAL, RETIRED, SCRATCH_PREFIX, read_manifest, restore
from c2tc_pipeline.storage.backend import StoredFile, list_directory
from c2tc_pipeline.storage.manifest import MISSING, DamagedArtefactError, damage_of
from c2tc_pipeline.storage.store import NOTHING, WRITER, ArtefactStore, Published, check_key, data_folder, manifest_path

_CACHE_ENTRY = re.compile(r"[0-9a-f]{64}")
_MANIFEST_PATH = re.compile(r"(?P<key>.+)/manifests/(?P<version>\d{8,})\.json")
_HALF_MANIFEST = re.compile(r"(?P<key>.+)/manifests/\.[^/]+\.partial")
_DATA_PATH = re.compile(r"(?P<key>.+?)/data/(?P<writer>W[^/]+)/.*")
_HIDDEN = re.compile(rf"\.(?P<name>.+)\.[0-9a-f]{{32}}({re.escape(PARTIAL)}|{re.escape(RETIRED)})")


@dataclass(frozen=True)
class Checked:
    """A verified file or manifest: its address, what is wrong with it or None, and its size by the manifest."""

    address: str
    damage: str | None = None
    size: int = 0
    is_manifest: bool = False


def verify_store(store: ArtefactStore) -> Iterator[Checked]:
    """Check every version in a store against its manifest, but for those that were collected."""
    backend = store.backend
    listed = backend.list_files("")
    existing = set(listed)
    for path, match in ((path, _MANIFEST_PATH.fullmatch(path)) for path in listed):
        if match is None:
            continue
        key, version, shown = match["key"], int(match["version"]), backend.address(path)
        try:
            manifest = store.manifest(check_key(key), version)
        except InputError:
            yield Checked(shown, "is damaged", is_manifest=True)
            continue
        yield Checked(shown, is_manifest=True)
        folder = data_folder(key, manifest["writer"])
        if manifest_path(key, version, "collected") in existing:
            continue
        for entry in manifest["files"]:
            with backend.reading(folder, [entry["name"]]) as directory:
                damage = damage_of(directory / entry["name"], entry)
            if damage is not None and version not in store.versions(key):
                # Collected since the files were listed.
                break
            yield Checked(backend.address(f"{folder}/{entry['name']}"), damage, entry["size"])


def verify_folder(folder: Path) -> Iterator[Checked]:
    """Check every published directory below a folder, such as the entries of a cache, against its manifest."""
    for parent, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if not name.endswith((PARTIAL, RETIRED)))
        directory = Path(parent)
        shown = str(directory / MANIFEST_NAME)
        if MANIFEST_NAME not in files:
            # Only cache entries have such names, so that one without its manifest is noticed.
            if _CACHE_ENTRY.fullmatch(directory.name):
                yield Checked(shown, MISSING, is_manifest=True)
            continue
        try:
            manifest = read_manifest(directory)
        except InputError:
            yield Checked(shown, "is damaged", is_manifest=True)
            continue
        yield Checked(shown, is_manifest=True)
        for entry in manifest["files"]:
            yield Checked(str(directory / entry["name"]), damage_of(directory / entry["name"], entry), entry["size"])


@dataclass(frozen=True)
class Leftover:
    """Unreferenced files: address, description and size; ``stays`` says why they are kept, if they are."""

    address: str
    what: str
    size: int
    stays: str = ""

    def __str__(self) -> str:
        return f"{self.address}: {self.what}, {self.size:,} bytes" + (f" ({self.stays})" if self.stays else "")


@dataclass
class _Key:
    """The stored files of one key: those of each writer, the manifests by number, and unfinished manifests."""

    writers: dict[str, list[StoredFile]] = field(default_factory=dict)
    manifests: dict[int, StoredFile] = field(default_factory=dict)
    halves: list[StoredFile] = field(default_factory=list)


class Collector:
    """Remove leftovers that have not changed for ``older_than`` seconds; its methods yield all that they find."""

    def __init__(self, *, older_than: float, dry_run: bool = False) -> None:
        self._before = time.time() - older_than
        self._dry_run = dry_run

    def store(
        self, store: ArtefactStore, *, keep: int | None = None, pinned: Mapping[str, str] | None = None
    ) -> Iterator[Leftover]:
        """Collect a store: files that no manifest names and, with ``keep``, all but the newest versions of a key.

        ``pinned`` maps the first part of keys to a setting: the first version for each value of it is kept as well.
        """
        if keep is not None and keep < 1:
            raise InputError(f"{keep} versions to keep are too few; the newest always stays.")
        backend = store.backend
        for key, stored in _by_key(backend.stored_files("")).items():
            try:
                yield from self._unpublished(store, key, stored)
                if keep is not None:
                    yield from self._old_versions(store, key, stored, keep, (pinned or {}).get(key.partition("/")[0]))
            except DamagedArtefactError as error:
                # Which files its manifest names is unknown, so none is removed.
                yield Leftover(backend.address(key), f"left alone, since: {error}", 0, "unclear")
        for file, abort in backend.unfinished():
            yield self._collect(backend.address(file.path), "an upload that did not end", [file], abort)

    def folder(self, folder: Path) -> Iterator[Leftover]:
        """Collect what killed writers left beside published directories, at any depth; restore replaced ones."""
        for parent, names, _ in os.walk(folder):
            for match in filter(None, map(_HIDDEN.fullmatch, sorted(names))):
                names.remove(match[0])
                yield from self._directory(Path(parent, match[0]), f"an unfinished or replaced {match['name']!r}")

    def scratch(self) -> Iterator[Leftover]:
        """Collect temporary directories of this user's processes that have ended."""
        for path in sorted(Path(tempfile.gettempdir()).glob(f"{SCRATCH_PREFIX}*")):
            # Without /proc, age is the only criterion.
            if not Path("/proc", path.name.removeprefix(SCRATCH_PREFIX).partition("-")[0]).exists():
                yield from self._directory(path, "the temporary directory of a process that ended")

    def _unpublished(self, store: ArtefactStore, key: str, stored: _Key) -> Iterator[Leftover]:
        # The manifests are read after the files were listed, so that a version published in between is not among them.
        unnamed = stored.writers.keys() - _writers(store, key)
        if not self._dry_run and any(self._is_old(stored.writers[writer]) for writer in unnamed):
            try:
                store.take_number(key, store.newest_version(key) + 1)
            except OSError as error:
                # On a full disk nothing can be written before something is removed, so age is the only criterion.
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
            # One of them may have published at the last moment.
            unnamed -= _writers(store, key)
        for writer in sorted(unnamed):
            folder, run = data_folder(key, writer), writer.partition("-")[2]
            what = "files of a writer that published nothing" + (f", of run {run}" if run else "")
            remove = partial(store.backend.remove_folder, folder)
            yield self._collect(store.backend.address(folder), what, stored.writers[writer], remove)
        for file in stored.halves:
            remove = partial(store.backend.delete, file.path)
            yield self._collect(store.backend.address(file.path), "half a manifest", [file], remove)

    def _old_versions(
        self, store: ArtefactStore, key: str, stored: _Key, keep: int, pinned: str | None
    ) -> Iterator[Leftover]:
        versions = [each for number in store.versions(key) if (each := store.published(key, number)).kind != NOTHING]
        first = {repr(each.settings.get(pinned)): each.writer for each in reversed(versions)} if pinned else {}
        kept = {*(each.writer for each in versions[-keep:]), *first.values()}
        for version, successor in pairwise(versions):
            if version.writer in kept:
                continue

            def remove(version: Published = version) -> None:
                mark = json.dumps({"collected": version.version, "by": uuid.uuid4().hex}).encode()
                store.backend.put_if_absent(manifest_path(key, version.version, "collected"), mark)
                store.backend.remove_folder(data_folder(key, version.writer))

            # A reader may have begun as long as this was the newest version.
            newer = stored.manifests.get(successor.version)
            what, files = f"version {version.version}, replaced by newer ones", stored.writers.get(version.writer, [])
            yield self._collect(store.address(version), what, files, remove, newer.modified if newer else math.inf)

    def _directory(self, path: Path, what: str) -> Iterator[Leftover]:
        """Collect a local directory of this user; one that its writer has finished or removed meanwhile is skipped."""
        with contextlib.suppress(FileNotFoundError):
            state = path.lstat()
            if stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid():
                yield self._collect(str(path), what, list_directory(path), partial(_discard, path), state.st_mtime)

    def _collect(
        self, address: str, what: str, files: Sequence[StoredFile], remove: Callable[[], object], since: float = 0
    ) -> Leftover:
        old = self._is_old(files) and since <= self._before
        if old and not self._dry_run:
            remove()
        return Leftover(address, what, sum(file.size for file in files), "" if old else "too young")

    def _is_old(self, files: Sequence[StoredFile]) -> bool:
        return all(file.modified <= self._before for file in files)


def _by_key(stored: Iterable[StoredFile]) -> dict[str, _Key]:
    found: dict[str, _Key] = defaultdict(_Key)
    for file in stored:
        if (match := _DATA_PATH.fullmatch(file.path)) and WRITER.fullmatch(match["writer"]):
            found[match["key"]].writers.setdefault(match["writer"], []).append(file)
        elif match := _MANIFEST_PATH.fullmatch(file.path):
            found[match["key"]].manifests[int(match["version"])] = file
        elif match := _HALF_MANIFEST.fullmatch(file.path):
            found[match["key"]].halves.append(file)
    return found


def _discard(path: Path) -> None:
    """Remove a directory, or rename it back if a killed writer left it aside and nothing took its place."""
    match = _HIDDEN.fullmatch(path.name)
    target = path.with_name(match["name"]) if match and path.name.endswith(RETIRED) else path
    if target.exists() or not restore(target):
        shutil.rmtree(path, ignore_errors=True)


def _writers(store: ArtefactStore, key: str) -> set[str]:
    return {store.published(key, version).writer for version in store.versions(key)}
