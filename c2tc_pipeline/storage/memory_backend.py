"""Artefacts in this process's memory, for tests and trials; they end with it."""

from __future__ import annotations

import threading
from pathlib import Path

from c2tc_pipeline.storage.backend import StoredFile
from c2tc_pipeline.storage.object_backend import ObjectBackend

# fsspec keeps one memory for the whole process and does not guard it against threads.
_ONE_AT_A_TIME = threading.Lock()


class MemoryBackend(ObjectBackend):
    """fsspec's memory, which every backend of the same address in this process shares.

    Parameters
    ----------
    folder : str
        The part of the memory to use, without ``memory://``.

    Examples
    --------
    >>> backend = MemoryBackend("example-of-a-memory-backend")
    >>> backend.put_if_absent("a/b.json", b"mine"), backend.put_if_absent("a/b.json", b"yours")
    (True, False)
    >>> backend.list_files("a"), backend.read_bytes("a/b.json")
    (['a/b.json'], b'mine')
    """

    def __init__(self, folder: str) -> None:
        from fsspec.implementations.memory import MemoryFileSystem

        super().__init__(f"memory://{folder}")
        self._files = MemoryFileSystem()

    def read_bytes(self, path: str) -> bytes:
        with _ONE_AT_A_TIME:
            return bytes(self._files.cat_file(self.address(path)))

    def put_if_absent(self, path: str, content: bytes) -> bool:
        with _ONE_AT_A_TIME:
            if self._files.exists(self.address(path)):
                return False
            self._files.pipe_file(self.address(path), content)
            return True

    def stored_files(self, folder: str) -> list[StoredFile]:
        # fsspec knows the memory's files by an absolute path without the scheme.
        start = len(self._files._strip_protocol(self.root)) + 1
        with _ONE_AT_A_TIME:
            found = self._files.find(self.address(folder), detail=True)
            return [
                StoredFile(name[start:], info["size"], self._files.modified(name).timestamp())
                for name, info in sorted(found.items())
            ]

    def delete(self, path: str) -> None:
        with _ONE_AT_A_TIME:
            if self._files.exists(self.address(path)):
                self._files.rm_file(self.address(path))

    def write_file(self, path: str, source: Path) -> None:
        content = source.read_bytes()
        with _ONE_AT_A_TIME:
            self._files.pipe_file(self.address(path), content)

    def read_file(self, path: str, target: Path) -> None:
        target.write_bytes(self.read_bytes(path))
