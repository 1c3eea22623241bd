"""Content-addressed cache of costly results; a damaged entry is removed, computed again and reported."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.artefact import discard_directory, publish_directory, verify_directory

T = TypeVar("T")


@dataclass(frozen=True)
class CacheLookup(Generic[T]):
    """A value, whether it came from the cache, and whether a damaged entry was replaced."""

    value: T
    hit: bool
    damaged: bool = False


class ContentCache:
    """Costly results in a directory, each under the hash of what determines it."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)

    def fetch(
        self,
        kind: str,
        key: str,
        *,
        compute: Callable[[], T],
        write: Callable[[T, Path], object],
        read: Callable[[Path], T],
    ) -> CacheLookup[T]:
        """Return the entry for a key, a hexadecimal hash; compute and store it if it is absent or damaged."""
        damaged = self._entry(kind, key).exists()
        found = self.get(kind, key, read=read)
        if found is not None:
            return CacheLookup(found, hit=True)
        value = compute()
        self.put(kind, key, value, write=write)
        return CacheLookup(value, hit=False, damaged=damaged)

    def get(self, kind: str, key: str, *, read: Callable[[Path], T]) -> T | None:
        """Return the entry for a key, or None if it is absent or damaged; a damaged one is removed."""
        entry = self._entry(kind, key)
        if not entry.exists():
            return None
        try:
            verify_directory(entry, kind=kind)
            return read(entry)
        except Exception:
            # Any exception: what libraries raise for unreadable files can't be enumerated.
            discard_directory(entry)
            return None

    def put(self, kind: str, key: str, value: T, *, write: Callable[[T, Path], object]) -> None:
        """Store an entry, if that is possible and no other process was first."""
        # A cache that can't be written (full, read-only) costs the next run time, not this run its result.
        with contextlib.suppress(OSError, InputError):
            publish_directory(self._entry(kind, key), lambda path: write(value, path), kind=kind, settings={"key": key})

    def keep(self, kind: str, key: str, write: Callable[[Path], object]) -> Path:
        """Return the verified directory of the entry for a key, to be read in place; write it if needed."""
        entry = self._entry(kind, key)
        if self.get(kind, key, read=lambda directory: directory) is None:
            # Another process may have stored an equal entry first.
            with contextlib.suppress(FileExistsError):
                publish_directory(entry, write, kind=kind, settings={"key": key})
        return entry

    def _entry(self, kind: str, key: str) -> Path:
        return self.directory / kind / key[:2] / key


def default_cache_directory() -> Path:
    """Return ``$C2TC_CACHE_DIR``, or ``c2tc`` below the user's cache directory."""
    chosen = os.environ.get("C2TC_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "c2tc"
