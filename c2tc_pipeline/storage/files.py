"""The files of a directory: found, named and made to last.

What belongs here: plain helpers that any writer of files needs. What does not: what is written, and where it goes.
"""

from __future__ import annotations

import os
from pathlib import Path

# What differs between two equal runs (seconds, cache hits) is stored under this name and counts in no content hash.
TIMINGS_NAME = "timings.json"


def files_below(directory: Path) -> list[Path]:
    """Return everything below a directory that is not a directory itself, sorted; a link is not followed."""
    return sorted(path for path in directory.rglob("*") if path.is_symlink() or not path.is_dir())


def relative_name(path: Path, directory: Path) -> str:
    """Return a file's name within a directory, with slashes.

    Examples
    --------
    >>> relative_name(Path("art/folder/b.bin"), Path("art"))
    'folder/b.bin'
    """
    return path.relative_to(directory).as_posix()


def sync_directory(directory: Path) -> None:
    """Have every file below a directory reach the disk, and every name in it."""
    for path in files_below(directory):
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
    for below in directory.rglob("*"):
        if below.is_dir() and not below.is_symlink():
            sync_folder(below)
    sync_folder(directory)


def sync_folder(folder: Path) -> None:
    """Have the names in one folder reach the disk; without it a power cut may take a new file's name away."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
