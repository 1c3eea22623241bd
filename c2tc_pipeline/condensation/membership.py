"""Which condensed row stands for which source row, where there are too many source rows to hold that in memory."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from c2tc_pipeline.storage.parquet import read_parquet, write_parquet_parts


@dataclass(frozen=True)
class StoredMembership:
    """A membership in a Parquet file, the same bytes as one that is written from memory.

    Parameters
    ----------
    path : path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "membership.parquet"
    >>> blocks = [(np.array([0, 2]), np.array([1, 0])), (np.array([3]), np.array([1]))]
    >>> StoredMembership.write(path, blocks).read()["condensed_row"].tolist()
    [1, 0, 1]
    """

    path: Path

    @classmethod
    def write(cls, path: Path, blocks: Iterable[tuple[np.ndarray, np.ndarray]]) -> StoredMembership:
        """Write blocks of source rows and their condensed rows."""
        write_parquet_parts(
            (
                pd.DataFrame({"source_row": source.astype(np.int64), "condensed_row": condensed.astype(np.int32)})
                for source, condensed in blocks
            ),
            path,
        )
        return cls(path)

    def read(self) -> pd.DataFrame:
        """Return the membership as a frame."""
        return read_parquet(self.path)

    def copy_to(self, path: Path) -> None:
        """Copy the file."""
        shutil.copyfile(self.path, path)
