"""The state of one file: a cheap mark without reading it, and the digest of its bytes.

The mark may change while the bytes do not (a file that was touched or copied over itself); the digest is the judge.
"""

from __future__ import annotations

import hashlib
import os
from io import BufferedReader
from typing import BinaryIO, cast

from c2tc_pipeline.sources.location import Location


def file_version(location: Location) -> str:
    """Return a mark of a file's present state: its size in bytes, then what tells one state from another.

    Locally that is the time of the last change and the inode: a file renamed over another may carry the same size and
    time. On S3 it is the ETag.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age\\n31\\n")
    >>> file_version(Location.parse(path)).split("-")[0]
    '7'
    """
    with location.open() as file:
        if location.scheme == "file":
            state = os.fstat(file.fileno())
            return f"{state.st_size}-{state.st_mtime_ns}-{state.st_ino}"
        if location.scheme == "s3":
            details = file.details  # type: ignore[attr-defined]  # of s3fs: what the server said when it was opened
            # Servers choose what an ETag looks like; its hash is short and of plain letters.
            return f"{details['size']}-{hashlib.sha256(details['ETag'].encode()).hexdigest()[:32]}"
        # A file in memory is as quick to hash as to ask.
        return f"{file.seek(0, os.SEEK_END)}-{_digest(file)[:32]}"


def file_digest(location: Location) -> str:
    """Return the sha256 of a file's bytes, read in pieces.

    Examples
    --------
    >>> file_digest(Location.parse("people.csv"))
    Traceback (most recent call last):
    ...
    c2tc_pipeline.common.errors.InputError: There is no file people.csv; ...
    """
    with location.open() as file:
        return _digest(file)


def _digest(file: BinaryIO) -> str:
    file.seek(0)
    return hashlib.file_digest(cast("BufferedReader", file), "sha256").hexdigest()
