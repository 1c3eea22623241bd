"""Whether a table's source changed: a cheap fingerprint of its state, and the digest of its content.

The fingerprint may change while the content does not (a file that was touched or copied over itself); the digest is the
judge. How each is made is the business of :mod:`c2tc_pipeline.sources`.
"""

from __future__ import annotations

from pathlib import Path

from c2tc_pipeline.sources.addresses import open_source


def source_fingerprint(source: str | Path) -> str:
    """Return a mark of a source's present state, without reading it where the source allows.

    Of a file it is made of size, time of the last change and inode, on S3 of size and ETag, of a table in PostgreSQL of
    the counters of its changes. It holds only letters, digits and ``-``, at most 63 of them, so that it can be a tag.

    Parameters
    ----------
    source : str or Path
        As for :func:`~c2tc_pipeline.tables.read_table`.

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
    return open_source(source).version()


def fingerprint_size(fingerprint: str) -> int | None:
    """Return the size in bytes of which a fingerprint tells: files of different size differ in their bytes.

    A database's tells of none.

    Examples
    --------
    >>> fingerprint_size("1204-d41d8cd98f00b204e9800998ecf8427e")
    1204
    >>> fingerprint_size("db-d41d8cd98f00b204e9800998ecf8427e") is None
    True
    """
    size = fingerprint.partition("-")[0]
    return int(size) if size.isdigit() else None


def source_digest(source: str | Path) -> str:
    """Return the hash of a source's content: the sha256 of a file's bytes, or of the values in a database.

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
    c2tc_pipeline.common.errors.InputError: There is no file people.csv; ...
    """
    return open_source(source).digest()
