"""Small artefacts to publish, race for and damage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from c2tc_pipeline.storage.artefact import publish_directory

KIND = "demo"


def writer_of(text: str) -> Callable[[Path], None]:
    """Return a writer of two files, one of them in a folder."""

    def write(directory: Path) -> None:
        (directory / "a.txt").write_text(text)
        (directory / "folder").mkdir()
        (directory / "folder" / "b.bin").write_bytes(bytes(range(256)))

    return write


def publish(target: Path, text: str = "old", **options: Any) -> Path:
    return publish_directory(target, writer_of(text), kind=KIND, settings={"text": text}, **options)


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, hidden ones included."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
