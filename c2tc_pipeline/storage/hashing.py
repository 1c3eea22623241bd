"""Content hashes for cache keys and checksums."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np


def hash_json(value: Any) -> str:
    """Return the sha256 of a JSON value, independent of the order of keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def hash_array(array: np.ndarray) -> str:
    """Return the sha256 of an array's values, shape and dtype; object arrays are refused."""
    if array.dtype.hasobject:
        raise TypeError("An array of Python objects has no stable bytes to hash; convert it first.")
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    # Viewed as plain bytes, because datetime arrays do not export a buffer.
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def hash_file(path: Path) -> str:
    """Return the sha256 of a file, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
