"""Content hashes: one spelling for the keys of caches and the checksums of files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def hash_json(value: Any) -> str:
    """Return the sha256 of a JSON value, independent of the order of keys.

    Examples
    --------
    >>> hash_json({"a": 1, "b": 2}) == hash_json({"b": 2, "a": 1})
    True
    >>> hash_json([1, 2]) == hash_json([2, 1])
    False
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def hash_array(array: np.ndarray) -> str:
    """Return the sha256 of an array's values, shape and type; object arrays are refused.

    Examples
    --------
    >>> hash_array(np.arange(4)) == hash_array(np.arange(4).reshape(2, 2))
    False
    """
    if array.dtype.hasobject:
        raise TypeError("An array of Python objects has no stable bytes to hash; convert it first.")
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    # Seen as plain bytes, because dates have no buffer of their own.
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def hash_frame(frame: pd.DataFrame) -> str:
    """Return the hash of a table's names, types and values; the index plays no part.

    Examples
    --------
    >>> table = pd.DataFrame({"x": [1, 2], "y": ["a", None]})
    >>> hash_frame(table) == hash_frame(table.set_axis([7, 8])), hash_frame(table) == hash_frame(table[::-1])
    (True, False)
    """
    columns = [
        [str(name), str(column.dtype), hash_array(pd.util.hash_pandas_object(column, index=False).to_numpy())]
        for name, column in frame.items()
    ]
    return hash_json([len(frame), columns])


def hash_file(path: Path) -> str:
    """Return the sha256 of a file, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
