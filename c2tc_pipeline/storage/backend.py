"""What the artefact store asks of a place to keep files: a directory, an S3 bucket or memory.

What belongs here: the interface and what holds for every place. What does not: keys, versions and manifests, which
:mod:`c2tc_pipeline.storage.store` builds on top, and the places themselves, one file each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class StoredFile:
    """A file as a listing shows it.

    Parameters
    ----------
    path : str
        Its path; with a slash at the end it is an empty folder, in a place that has such.
    size : int
        Bytes.
    modified : float
        When it was written, in seconds, by the clock of the place.
    """

    path: str
    size: int
    modified: float


class Backend(ABC):
    """A place to keep files under relative paths with slashes.

    Every file appears whole or not at all. Paths come from the store, which has checked them.

    Parameters
    ----------
    root : str
        The address of the place, without anything secret.
    """

    def __init__(self, root: str) -> None:
        self.root = root

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.root!r})"

    def address(self, path: str) -> str:
        """Return the full address of a path, as messages show it."""
        return f"{self.root.removesuffix('/')}/{path}"

    @abstractmethod
    def read_bytes(self, path: str) -> bytes:
        """Return a file's content; ``FileNotFoundError`` if there is none."""

    @abstractmethod
    def put_if_absent(self, path: str, content: bytes) -> bool:
        """Create a small file unless there is one, and tell whether it is now this caller's.

        Of several callers at the same time exactly one is told so. The content must differ from what any other caller
        would put there: where an answer got lost on its way, the content decides whose file it is.
        """

    @abstractmethod
    def stored_files(self, folder: str) -> list[StoredFile]:
        """Return all files and empty folders below a folder, at any depth, sorted; none if there is no such folder."""

    def list_files(self, folder: str) -> list[str]:
        """Return the paths of all files below a folder, at any depth, sorted; none if there is no such folder."""
        return [file.path for file in self.stored_files(folder) if not file.path.endswith("/")]

    def is_there(self) -> bool:
        """Tell whether anything was ever kept here; a place that has no folders is there as long as it holds a file."""
        return bool(self.stored_files(""))

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file; one that is not there is no trouble."""

    def remove_folder(self, folder: str) -> None:
        """Remove all files below a folder; no one may be at work in it."""
        for path in self.list_files(folder):
            self.delete(path)

    @contextmanager
    def holding(self, folder: str) -> Iterator[None]:
        """Let collectors know that a folder is being written, in a place where they can ask; see :meth:`is_held`."""
        yield

    def is_held(self, folder: str) -> bool:
        """Tell whether a writer or a reader is at work in a folder; False as well where a place can't tell."""
        return False

    def unfinished(self) -> list[StoredFile]:
        """Return the uploads of files that were begun and not ended, in a place that keeps such."""
        return []

    def abandon(self, path: str) -> None:
        """Give up all unfinished uploads of a file."""
        raise NotImplementedError(f"{self!r} keeps no unfinished uploads.")

    @abstractmethod
    def filling(self, folder: str) -> AbstractContextManager[Path]:
        """Give out an empty local directory, and keep what it holds at the end as a new folder.

        An error inside the block keeps nothing; one while keeping may leave some whole files.
        """

    @abstractmethod
    def reading(self, folder: str, names: Iterable[str]) -> AbstractContextManager[Path]:
        """Give out a local directory, not to be changed, with the named files of a folder.

        A file that is not there is left out, for the reader to notice.
        """
