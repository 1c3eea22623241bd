"""Collecting what a store holds in vain: files that no manifest names, and on request old versions.

A collector must not take the files of a writer that is still at work, or a version would become visible without them.
So three things guard a writer: its hold on the folder (local places), the age of its files, and, because neither a hold
nor a clock can be trusted everywhere, the order of steps here: before anything is removed, the number under which such
a writer could publish is taken, see :meth:`~c2tc_pipeline.storage.store.ArtefactStore.take_number`. A writer that was
misjudged, or merely stored at the same time, finds its number taken and stores its files again; nothing is torn.

Readers are guarded by holds (local places), and because a version goes only when a newer one has been there for the
required age. A manifest stays for good, so that no number is used twice.
"""

from __future__ import annotations

import errno
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.backend import StoredFile
from c2tc_pipeline.storage.keys import MANIFEST_FOLDER
from c2tc_pipeline.storage.leftover import Leftover, Rule, State
from c2tc_pipeline.storage.manifest import DamagedArtefactError
from c2tc_pipeline.storage.store import DATA_FOLDER, ArtefactStore, Published, collected_path, data_folder, is_writer

Pinned = Callable[[str, Sequence[Published]], Iterable[int]]


def collect_store(
    store: ArtefactStore,
    rule: Rule,
    *,
    keep: int | None = None,
    pinned: Pinned = lambda key, versions: (),
    dry_run: bool = False,
) -> Iterator[Leftover]:
    """Remove leftovers that are ready, and yield all there are.

    Parameters
    ----------
    store : ArtefactStore
        Where to look.
    rule : Rule
        When something may go.
    keep : int, optional
        How many versions of each key stay; absent, all do.
    pinned : callable, optional
        Told a key and its versions, oldest first, it returns the numbers of those that stay in any case.
    dry_run : bool
        Remove nothing.

    Examples
    --------
    >>> store = ArtefactStore("memory://example-of-collecting")
    >>> for text in "first", "second":
    ...     done = store.publish("greeting", lambda d: (d / "a.txt").write_text(text), kind="demo")
    >>> import time
    >>> [found.what for found in collect_store(store, Rule(time.time() + 1, 0), keep=1)]
    ['version 1, replaced by newer ones']
    >>> store.versions("greeting")
    [2]
    """
    if keep is not None and keep < 1:
        raise InputError(f"{keep} versions to keep are too few; the newest always stays.")
    stored = store.backend.stored_files("")
    keys = {key: _Key(store, key, files, rule) for key, files in _by_key(stored).items()}
    for name, key in keys.items():
        try:
            yield from key.collect(keep, pinned, dry_run)
        except DamagedArtefactError as error:
            # Whose files its manifest names nobody knows, so none of them goes.
            yield Leftover(store.backend.address(name), f"left alone, since: {error}", 0, State.UNCLEAR)
    for file in store.backend.unfinished():
        state = rule.state(file.modified, held=False)
        if state is State.READY and not dry_run:
            store.backend.abandon(file.path)
        yield Leftover(store.backend.address(file.path), "an upload that did not end", file.size, state)


@dataclass
class _Files:
    """What is stored of one key."""

    writers: dict[str, list[StoredFile]] = field(default_factory=dict)
    manifests: dict[str, StoredFile] = field(default_factory=dict)


def _by_key(stored: Iterable[StoredFile]) -> dict[str, _Files]:
    found: dict[str, _Files] = {}
    for file in stored:
        parts = file.path.rstrip("/").split("/")
        for place, part in enumerate(parts[1:], start=1):
            key = "/".join(parts[:place])
            if part == MANIFEST_FOLDER and place == len(parts) - 2:
                found.setdefault(key, _Files()).manifests[parts[-1]] = file
                break
            if part == DATA_FOLDER and place < len(parts) - 1 and is_writer(parts[place + 1]):
                found.setdefault(key, _Files()).writers.setdefault(parts[place + 1], []).append(file)
                break
    return found


class _Key:
    """The leftovers of one key."""

    def __init__(self, store: ArtefactStore, key: str, files: _Files, rule: Rule) -> None:
        self._store, self._key, self._files, self._rule = store, key, files, rule

    def collect(self, keep: int | None, pinned: Pinned, dry_run: bool) -> Iterator[Leftover]:
        # Which versions there are is asked after the files were listed: what was published in between is none.
        versions = [self._store.published(self._key, version) for version in self._store.versions(self._key)]
        named = {version.writer for version in versions}
        unnamed = [
            (writer, self._leftover(writer, "files of a writer that published nothing"))
            for writer in self._files.writers
            if writer not in named
        ]
        yield from self._partial_manifests(dry_run)
        if any(found.state is State.READY for _, found in unnamed) and not dry_run:
            self._take_next_number()
            # One of them may have published at the last moment.
            versions = [self._store.published(self._key, version) for version in self._store.versions(self._key)]
            named = {version.writer for version in versions}
        for writer, found in unnamed:
            if writer not in named:
                yield self._removed(writer, found, dry_run)
        if keep is not None:
            yield from self._old_versions(versions, keep, pinned, dry_run)

    def _take_next_number(self) -> None:
        try:
            self._store.take_number(self._key, self._store.newest_version(self._key) + 1)
        except OSError as error:
            # Whoever makes room on a full disk can't be asked to write first; there, holds have to do.
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise

    def _partial_manifests(self, dry_run: bool) -> Iterator[Leftover]:
        for name, file in self._files.manifests.items():
            if name.startswith("."):
                found = self._found(file.path, "half a manifest", [file])
                if found.state is State.READY and not dry_run:
                    self._store.backend.delete(file.path)
                yield found

    def _old_versions(
        self, versions: Sequence[Published], keep: int, pinned: Pinned, dry_run: bool
    ) -> Iterator[Leftover]:
        # Several numbers may stand for the same files; what counts is files.
        newest_first = list(dict.fromkeys(version.writer for version in reversed(versions)))
        pins = set(pinned(self._key, versions))
        staying = {*newest_first[:keep], *(version.writer for version in versions if version.version in pins)}
        for writer in reversed(newest_first):
            if writer in staying:
                continue
            numbers = [version.version for version in versions if version.writer == writer]
            last = self._leftover(writer, f"version {numbers[-1]}, replaced by newer ones", after=numbers[-1])
            if last.state is State.READY and not dry_run:
                for number in numbers:
                    mark = {"collected": number, "by": uuid.uuid4().hex}
                    self._store.backend.put_if_absent(collected_path(self._key, number), json.dumps(mark).encode())
                # A reader that came before the mark holds the files by now; one that comes later sees the mark.
                if self._store.backend.is_held(data_folder(self._key, writer)):
                    last = replace(last, state=State.HELD)
            yield self._removed(writer, last, dry_run)

    def _removed(self, writer: str, found: Leftover, dry_run: bool) -> Leftover:
        if found.state is State.READY and not dry_run:
            self._store.backend.remove_folder(data_folder(self._key, writer))
        return found

    def _leftover(self, writer: str, what: str, *, after: int | None = None) -> Leftover:
        folder = data_folder(self._key, writer)
        run = writer.partition("-")[2]
        files = self._files.writers.get(writer, [])
        return self._found(folder, f"{what}, of run {run}" if run else what, files, folder=folder, after=after)

    def _found(
        self, path: str, what: str, files: Sequence[StoredFile], *, folder: str | None = None, after: int | None = None
    ) -> Leftover:
        changed = [file.modified for file in files]
        if after is not None:
            # A reader may have begun as long as this was the newest version.
            changed += [
                file.modified
                for name, file in self._files.manifests.items()
                if name.removesuffix(".json").isdigit() and int(name.removesuffix(".json")) == after + 1
            ]
        held = folder is not None and self._store.backend.is_held(folder)
        state = self._rule.state(max(changed, default=self._rule.now), held=held)
        return Leftover(self._store.backend.address(path), what, sum(file.size for file in files), state)


def as_pins(**first_of: str) -> Pinned:
    """Return the rule that keeps, of keys with a certain first part, the first version for each value of a setting.

    Examples
    --------
    >>> pins = as_pins(validated_table="baseline")
    >>> old, new = (Published("validated_table/t", n, "k", "W", {"baseline": 1}, {}) for n in (1, 2))
    >>> list(pins("validated_table/t", [old, new])), list(pins("encoder/t", [old, new]))
    ([1], [])
    """

    def pinned(key: str, versions: Sequence[Published]) -> Iterable[int]:
        setting = first_of.get(key.partition("/")[0])
        if setting is None:
            return []
        first: dict[Any, int] = {}
        for version in versions:
            first.setdefault(repr(version.settings.get(setting)), version.version)
        return first.values()

    return pinned
