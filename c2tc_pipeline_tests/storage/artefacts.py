"""Small artefacts to publish, race for and damage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier
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


def together(work: Sequence[Callable[[], object]]) -> list[Any]:
    """Call functions at the same time in threads; return the result of each, or the exception that it raised."""

    def outcome(each: Callable[[], object]) -> object:
        try:
            return each()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(work)) as pool:
        return list(pool.map(outcome, work))


def race(publishers: Sequence[Callable[[Callable[[Path], None]], object]]) -> list[Any]:
    """Let publishers, each given what writes its number, finish writing before any of them publishes."""
    barrier = Barrier(len(publishers))

    def write(number: int, directory: Path) -> None:
        writer_of(str(number))(directory)
        barrier.wait(timeout=60)

    return together([partial(publish, partial(write, number)) for number, publish in enumerate(publishers)])
