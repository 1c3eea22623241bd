"""Whether a table's source changed: a cheap fingerprint of the file, and the digest of its bytes.

The fingerprint may change while the bytes do not (a file that was touched or copied over itself); the digest is the
judge. Nothing of the table is parsed here.
"""

from __future__ import annotations

import hashlib
import os
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast

from c2tc_pipeline.tables.location import Location


def source_fingerprint(source: str | Path) -> str:
    """Return a mark of a source's present state, without reading it.

    Locally it is made of size, time of the last change and inode: a file renamed over another may carry the same size
    and time. On S3 it is the size and the ETag. It starts with the size in bytes, and holds only digits, the letters
    a to f and ``-``, at most 63 of them, so that it can be a tag.

    Parameters
    ----------
    source : str or Path
        A local path or an ``s3://`` address; endpoint and credentials come from the environment.

    Returns
    -------
    str
        The fingerprint.

    Raises
    ------
    InputError
        When there is no such file or it may not be read.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age\\n31\\n")
    >>> before = source_fingerprint(path)
    >>> _ = path.write_text("age\\n31\\n32\\n")
    >>> source_fingerprint(path) == before
    False
    """
    location = Location.parse(source)
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


def fingerprint_size(fingerprint: str) -> int:
    """Return the size in bytes of which a fingerprint tells: sources of different size differ in their bytes.

    Examples
    --------
    >>> fingerprint_size("1204-d41d8cd98f00b204e9800998ecf8427e")
    1204
    """
    return int(fingerprint.partition("-")[0])


def source_digest(source: str | Path) -> str:
    """Return the sha256 of a source's bytes, read in pieces.

    Parameters
    ----------
    source : str or Path
        As for :func:`source_fingerprint`.

    Returns
    -------
    str
        Hexadecimal.

    Raises
    ------
    InputError
        When there is no such file or it may not be read.

    Examples
    --------
    >>> source_digest("people.csv")
    Traceback (most recent call last):
    ...
    c2tc_pipeline.errors.InputError: There is no file people.csv; ...
    """
    with Location.parse(source).open() as file:
        return _digest(file)


def _digest(file: BinaryIO) -> str:
    file.seek(0)
    return hashlib.file_digest(cast("BufferedReader", file), "sha256").hexdigest()
