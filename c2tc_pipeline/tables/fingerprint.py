"""Version and content hash of a table's source.

The version may change while the content does not (a file that was touched or copied over itself); then the digest
decides.
"""

from __future__ import annotations

from pathlib import Path

from c2tc_pipeline.sources.addresses import open_source


def source_fingerprint(source: str | Path) -> str:
    """Return a mark of a source's present state, without reading it where the source allows.

    For a file it is made of size, time of the last change and inode, on S3 of size and ETag, for a table in PostgreSQL
    of its change counters. It holds only letters, digits and ``-``, at most 63 of them, so that it can be a tag.
    """
    return open_source(source).version()


def fingerprint_size(fingerprint: str) -> int | None:
    """Return the size in bytes in a fingerprint; files of different size differ. A database's fingerprint has none."""
    size = fingerprint.partition("-")[0]
    return int(size) if size.isdigit() else None


def source_digest(source: str | Path) -> str:
    """Return the hash of a source's content: the sha256 of a file's bytes, or of the values in a database."""
    return open_source(source).digest()
