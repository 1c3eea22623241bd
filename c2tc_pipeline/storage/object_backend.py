"""What is common to places without local paths: files go through a temporary directory of this machine."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from c2tc_pipeline.storage.backend import Backend
from c2tc_pipeline.storage.files import files_below, relative_name
from c2tc_pipeline.storage.holds import ScratchDirectory


class ObjectBackend(Backend):
    """A place that takes and gives whole objects."""

    @abstractmethod
    def write_file(self, path: str, source: Path) -> None:
        """Store a local file in full or not at all, over what is there."""

    @abstractmethod
    def read_file(self, path: str, target: Path) -> None:
        """Copy a stored file to a local path; ``FileNotFoundError`` if there is none."""

    @contextmanager
    def filling(self, folder: str) -> Iterator[Path]:
        with ScratchDirectory() as name:
            directory = Path(name)
            yield directory
            for path in files_below(directory):
                self.write_file(f"{folder}/{relative_name(path, directory)}", path)

    @contextmanager
    def reading(self, folder: str, names: Iterable[str]) -> Iterator[Path]:
        with ScratchDirectory() as directory:
            for name in names:
                target = Path(directory, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(FileNotFoundError):
                    self.read_file(f"{folder}/{name}", target)
            yield Path(directory)
