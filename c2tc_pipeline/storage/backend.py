"""What the artefact store asks of a place to keep files: a directory, an S3 bucket or memory.

What belongs here: the interface and what holds for every place. What does not: keys, versions and manifests, which
:mod:`c2tc_pipeline.storage.store` builds on top, and the places themselves, one file each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path


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
    def list_files(self, folder: str) -> list[str]:
        """Return the paths of all files below a folder, at any depth, sorted; none if there is no such folder."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file; one that is not there is no trouble."""

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
