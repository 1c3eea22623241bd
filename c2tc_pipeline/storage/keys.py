"""Which keys an artefact may have: short, portable and unable to leave the store."""

from __future__ import annotations

import re

from c2tc_pipeline.common.errors import InputError

# A part may not start with a dot, so hidden files are never reached.
_PART = re.compile(r"[a-z0-9_|-][a-z0-9_.|-]*")
_LONGEST_KEY = 200
# Below a key, this folder is the store's own.
MANIFEST_FOLDER = "manifests"


def check_key(key: str) -> str:
    """Return the key, or say why it is not one.

    A key is made of parts joined by slashes. A part consists of lower-case letters, digits, ``_``, ``-``, ``|`` and
    dots, neither at its start nor two in a row.

    Parameters
    ----------
    key : str
        Such as ``"condensed_table/flights|0.001"``.

    Raises
    ------
    InputError
        For everything else, before anything is read or written.

    Examples
    --------
    >>> check_key("condensed_table/flights|0.001")
    'condensed_table/flights|0.001'
    >>> check_key("../secrets")
    Traceback (most recent call last):
    ...
    c2tc_pipeline.common.errors.InputError: Key '../secrets' is not allowed: its part '..' may hold only a-z, 0-9, _,
    -, | and single dots inside; rename it.
    """
    if len(key) > _LONGEST_KEY:
        raise InputError(f"Key {key[:40]!r}... has {len(key)} characters, more than {_LONGEST_KEY}; shorten it.")
    for part in key.split("/"):
        if not _PART.fullmatch(part) or ".." in part:
            raise InputError(
                f"Key {key!r} is not allowed: its part {part!r} may hold only a-z, 0-9, _, -, | and single dots "
                "inside; rename it."
            )
        if part == MANIFEST_FOLDER:
            raise InputError(f"Key {key!r} is not allowed: the store itself uses the name {part!r}; rename it.")
    return key
