"""From the address of a storage root to its backend: a path, ``file://``, ``s3://bucket/prefix`` or ``memory://name``.

A refused address is not repeated in the message: it may carry a password.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.backend import Backend
from c2tc_pipeline.storage.local_backend import LocalBackend
from c2tc_pipeline.storage.memory_backend import MemoryBackend
from c2tc_pipeline.storage.s3_backend import S3Access, S3Backend

_FORMS = "a path, file:///path, s3://bucket/prefix or memory://name"
# No "@", "?" or "#", which only come with passwords and signatures, and no part that starts with a dot.
_FOLDER = re.compile(r"[A-Za-z0-9_=|-][A-Za-z0-9_.=|-]*(/[A-Za-z0-9_=|-][A-Za-z0-9_.=|-]*)*")


def open_backend(root: str | Path, access: S3Access | None = None) -> Backend:
    """Return the backend for a storage root; nothing is read or written yet.

    Parameters
    ----------
    root : str or path
        A path, ``file:///path``, ``s3://bucket/prefix`` or ``memory://name``.
    access : S3Access, optional
        For ``s3://`` only; absent, the environment decides.

    Raises
    ------
    InputError
        If the address is of no such form or carries credentials.

    Examples
    --------
    >>> open_backend("memory://trial").address("a.txt")
    'memory://trial/a.txt'
    >>> open_backend("s3://user:password@bucket")
    Traceback (most recent call last):
    ...
    c2tc_pipeline.common.errors.InputError: The s3:// storage root may hold only names of letters, digits, _, -, =, |
    and dots between slashes; credentials belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
    """
    scheme, folder = split_root(root)
    if scheme == "file":
        return LocalBackend(folder)
    return S3Backend(folder, access) if scheme == "s3" else MemoryBackend(folder)


def split_root(root: str | Path) -> tuple[str, str]:
    """Return the scheme and the rest of a storage root, or say what is wrong with it.

    Examples
    --------
    >>> split_root("s3://bucket/prefix/"), split_root("runs/store")
    (('s3', 'bucket/prefix'), ('file', 'runs/store'))
    """
    text = os.fspath(root)
    scheme, found, rest = text.partition("://")
    if not found:
        scheme, rest = "file", text
    if scheme not in ("file", "s3", "memory"):
        raise InputError(f"The storage root has an unknown form; give {_FORMS}.")
    if scheme == "file":
        if not rest or "\0" in rest:
            raise InputError(f"The storage root is not a path; give {_FORMS}.")
        return scheme, rest
    folder = rest.removesuffix("/")
    if not _FOLDER.fullmatch(folder):
        raise InputError(
            f"The {scheme}:// storage root may hold only names of letters, digits, _, -, =, | and dots between "
            "slashes; credentials belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    return scheme, folder
