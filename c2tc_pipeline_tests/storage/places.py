"""The three kinds of place that the store's tests run against, and how to inspect and damage them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict

import fsspec
import pytest

from c2tc_pipeline.storage.maintenance import Collector, Leftover, verify_store
from c2tc_pipeline.storage.store import ArtefactStore, Published
from c2tc_pipeline_tests.storage.artefacts import KIND, contents, writer_of

NAMES = ("a.txt", "folder/b.bin")


class Ages(TypedDict):
    """Options of a collector."""

    older_than: float


FAR_AHEAD: Ages = {"older_than": -1e11}
"""Everything seems very old, as to a collector whose clock jumped."""
AT_ONCE: Ages = {"older_than": 1e11}
"""Everything seems to have just been written, or the clock jumped back."""


@dataclass(frozen=True)
class Place:
    """An empty storage root."""

    root: str
    scratch: Path
    access: Mapping[str, str] = field(default_factory=dict, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict)

    def open(self) -> ArtefactStore:
        """Return a store of its own, as another process would have it."""
        return store_at(self.root, self.access)

    @cached_property
    def store(self) -> ArtefactStore:
        return self.open()

    @property
    def in_memory(self) -> bool:
        return self.root.startswith("memory://")

    def contents(self) -> dict[str, bytes]:
        """Return every stored file."""
        backend = self.store.backend
        return {path: backend.read_bytes(path) for path in backend.list_files("")}

    def overwrite(self, path: str, content: bytes) -> None:
        """Change a stored file behind the store's back."""
        source = self.scratch / "harm.bin"
        source.write_bytes(content)
        self.store.backend.write_file(path, source)


def store_at(root: str, access: Mapping[str, str]) -> ArtefactStore:
    """Return a store on S3 that is opened with these options of s3fs, beside others with other ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(fsspec.config.conf, "s3", dict(access))
        return ArtefactStore(root)


def place_of(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return the place that a parametrised fixture names."""
    if request.param == "directory":
        return Place(str(tmp_path / "root"), tmp_path)
    chosen = request.getfixturevalue(f"{request.param}_place")
    assert isinstance(chosen, Place)
    return chosen


def publish(store: ArtefactStore, text: str = "old", key: str = "art", **options: Any) -> Published:
    """Publish two files; the settings repeat the text, so that a mixture of versions would be noticed."""
    return store.publish(key, writer_of(text), kind=KIND, settings={"text": text}, **options)


def fetched(store: ArtefactStore, key: str = "art", **options: Any) -> dict[str, bytes]:
    """Return what a reader gets."""
    with store.fetch(key, **options) as directory:
        return contents(directory)


def files_of(text: str) -> dict[str, bytes]:
    """Return what a reader of the version with this text has to get."""
    return {"a.txt": text.encode(), "folder/b.bin": bytes(range(256))}


def data_path(published: Published, name: str) -> str:
    return f"{published.key}/data/{published.writer}/{name}"


def manifest_path(published: Published) -> str:
    return f"{published.key}/manifests/{published.version:08d}.json"


def leftovers(store: ArtefactStore, key: str = "art") -> list[str]:
    """Return the data files of a key that no version has."""
    named = {store.published(key, version).writer for version in store.versions(key)}
    return [
        path
        for path in store.backend.list_files(f"{key}/data")
        if path.split("/data/W")[-1][:32] not in {writer[1:33] for writer in named}
    ]


def collected(store: ArtefactStore, ages: Ages = FAR_AHEAD, *, dry_run: bool = False, **options: Any) -> list[Leftover]:
    return list(Collector(**ages, dry_run=dry_run).store(store, **options))


def damages(store: ArtefactStore) -> dict[str, str]:
    """Return what is wrong with each damaged file of a store."""
    return {checked.address: checked.damage for checked in verify_store(store) if checked.damage is not None}


def failing_from(number: int, function: Callable[..., Any], error: BaseException) -> Callable[..., Any]:
    """Return the function, which raises from its ``number``-th call on, the first being 1."""
    calls: list[object] = []

    def call(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        if len(calls) >= number:
            raise error
        return function(*arguments, **options)

    return call


def die_before_manifest(store: ArtefactStore, key: str = "art", **options: Any) -> None:
    """Leave the files of a writer that was stopped before it published."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.backend, "put_if_absent", failing_from(1, print, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            publish(store, "dead", key, **options)


def fail_second_file(store: ArtefactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the step that makes a file last fail for the second file of the next artefact."""
    error = OSError(28, "No space left on device")
    if store.backend.local is None:
        monkeypatch.setattr(store.backend, "write_file", failing_from(2, store.backend.write_file, error))
    else:
        monkeypatch.setattr(os, "fsync", failing_from(2, os.fsync, error))
