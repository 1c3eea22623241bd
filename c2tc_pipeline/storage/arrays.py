"""Arrays in ``.npz`` files: no objects, so no code, and nothing packed, so that a file says how large it is."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np


@contextmanager
def open_arrays(path: Path) -> Iterator[np.lib.npyio.NpzFile]:
    """Open a file that ``numpy.savez`` wrote.

    ``savez`` does not compress; a file that was compressed is not ours and may unpack to a thousand times its size.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "arrays.npz"
    >>> np.savez(path, allow_pickle=False, a=np.arange(3))
    >>> with open_arrays(path) as arrays:
    ...     arrays["a"]
    array([0, 1, 2])
    """
    with zipfile.ZipFile(path) as archive:
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
            raise ValueError(f"{path.name} holds packed arrays, which c2tc never writes.")
    with np.load(path, allow_pickle=False) as arrays:
        yield arrays
