"""The three kinds of place that the store's tests run against, and how to look into them and harm them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from c2tc_pipeline.storage.object_backend import ObjectBackend
from c2tc_pipeline.storage.s3_backend import S3Access
from c2tc_pipeline.storage.store import ArtefactStore, Published
from c2tc_pipeline_tests.storage.artefacts import KIND, writer_of

NAMES = ("a.txt", "folder/b.bin")


@dataclass(frozen=True)
class Place:
    """An empty storage root."""

    root: str
    scratch: Path
    access: S3Access | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def open(self) -> ArtefactStore:
        """Return a store of its own, as another process would have it."""
        return ArtefactStore(self.root, access=self.access)

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
        backend = self.store.backend
        if isinstance(backend, ObjectBackend):
            source = self.scratch / "harm.bin"
            source.write_bytes(content)
            backend.write_file(path, source)
        else:
            Path(self.root, path).write_bytes(content)


def publish(store: ArtefactStore, text: str = "old", key: str = "art", **options: Any) -> Published:
    """Publish two files; the settings repeat the text, so that a mixture of versions would be noticed."""
    return store.publish(key, writer_of(text), kind=KIND, settings={"text": text}, **options)


def fetched(store: ArtefactStore, key: str = "art", **options: Any) -> dict[str, bytes]:
    """Return what a reader gets."""
    with store.fetch(key, **options) as directory:
        return {p.relative_to(directory).as_posix(): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


def files_of(text: str) -> dict[str, bytes]:
    """Return what a reader of the version with this text has to get."""
    return {"a.txt": text.encode(), "folder/b.bin": bytes(range(256))}


def data_path(published: Published, name: str) -> str:
    return f"{published.key}/data/{published.writer}/{name}"


def manifest_path(published: Published) -> str:
    return f"{published.key}/manifests/{published.version:08d}.json"


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
    if isinstance(store.backend, ObjectBackend):
        monkeypatch.setattr(store.backend, "write_file", failing_from(2, store.backend.write_file, error))
    else:
        monkeypatch.setattr(os, "fsync", failing_from(2, os.fsync, error))
