"""Membership of source rows in condensed rows, in a file where there are too many rows for memory."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.storage.artefact import ScratchDirectory
from c2tc_pipeline.storage.parquet import read_parquet, write_parquet_parts


@dataclass(frozen=True)
class StoredMembership:
    """A membership in a Parquet file, the same bytes as one that is written from memory.

    Examples
    --------
    >>> blocks = [(np.array([0, 2]), np.array([1, 0])), (np.array([3]), np.array([1]))]
    >>> StoredMembership.write(blocks).read()["condensed_row"].tolist()
    [1, 0, 1]
    """

    path: Path
    scratch: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def write(cls, blocks: Iterable[tuple[np.ndarray, np.ndarray]]) -> StoredMembership:
        """Write blocks of source rows and their condensed rows to a temporary file that is removed with this object."""
        scratch = ScratchDirectory()
        path = Path(scratch.name) / "membership.parquet"
        write_parquet_parts(
            (
                pd.DataFrame({"source_row": source.astype(np.int64), "condensed_row": condensed.astype(np.int32)})
                for source, condensed in blocks
            ),
            path,
        )
        return cls(path, scratch)

    def read(self) -> pd.DataFrame:
        """Return the membership as a frame."""
        return read_parquet(self.path)

    def copy_to(self, path: Path) -> None:
        """Copy the file."""
        shutil.copyfile(self.path, path)
