"""A content-addressed cache: costly results under the hash of what determines them.

An entry is an artefact (see :mod:`c2tc_pipeline.storage.artefact`), so it is verified on every read. A damaged entry is
removed, computed again and reported; it is never trusted.
"""

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
    """A value and where it came from.

    Parameters
    ----------
    value : object
        The result, from the cache or fresh.
    hit : bool
        Whether it came from the cache.
    damaged : bool
        Whether an entry was there but could not be trusted, and was made again.
    """

    value: T
    hit: bool
    damaged: bool = False


class ContentCache:
    """Costly results on disk, each under the hash of what determines it.

    Parameters
    ----------
    directory : path
        Where the entries live; created on the first write.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = ContentCache(folder)
    ...     for _ in range(2):
    ...         found = cache.fetch(
    ...             "demo",
    ...             "00ff",
    ...             compute=lambda: "forty-two",
    ...             write=lambda value, path: (path / "value.txt").write_text(value),
    ...             read=lambda path: (path / "value.txt").read_text(),
    ...         )
    ...         print(found.value, found.hit)
    forty-two False
    forty-two True
    """

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
        """Return the entry for ``key``, computing and storing it when it is absent or damaged.

        Parameters
        ----------
        kind : str
            The family of entries, such as ``"autoencoder"``; one folder each.
        key : str
            The hash (hexadecimal) of everything that determines the value.
        compute : callable
            Makes the value.
        write, read : callable
            Store the value into a directory and load it back.
        """
        entry = self._entry(kind, key)
        damaged = False
        if entry.exists():
            try:
                verify_directory(entry, kind=kind)
                return CacheLookup(read(entry), hit=True)
            except Exception:
                # Whatever a reader stumbles over: what libraries raise for files they can't make sense of has no end.
                damaged = True
                discard_directory(entry)
        value = compute()

        def fill(path: Path) -> None:
            write(value, path)

        # Another process may store the same result first, and both are equal by construction; a cache that can't be
        # written (full, read-only) costs time in the next run, but not this run's result.
        with contextlib.suppress(OSError, InputError):
            publish_directory(entry, fill, kind=kind, settings={"key": key})
        return CacheLookup(value, hit=False, damaged=damaged)

    def keep(self, kind: str, key: str, write: Callable[[Path], object]) -> Path:
        """Return the directory of the entry for ``key``, verified, for what is read where it lies; made if need be.

        Parameters
        ----------
        kind, key : str
            As for :meth:`fetch`.
        write : callable
            Fills a directory.

        Raises
        ------
        OSError, InputError
            If the entry is not there and can't be written.
        """
        entry = self._entry(kind, key)
        if entry.exists():
            try:
                verify_directory(entry, kind=kind)
                return entry
            except (OSError, ValueError):
                discard_directory(entry)
        # Another process may have been faster; its entry is equal by construction.
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
