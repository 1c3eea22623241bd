"""Blocks: the runs of rows in which a class is worked on.

Where a class is cut depends on the size of its rows alone, and what blocks contribute is added up in their order. So a
result does not depend on who computes which block, in which order, or whether the rows are in memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from c2tc_pipeline.clustering.row_source import MirroredRows, RowSource

# A class up to this size is one block, whose step a processor does in one go; larger ones need this much memory at a
# time. Raising it changes the results of larger classes.
BLOCK_BYTES = 128 * 2**20
_ROWS_LEAST = 4_096


@dataclass(frozen=True, eq=False)
class Block:
    """A run of rows of a class, not yet read.

    Parameters
    ----------
    rows : RowSource
        The rows.
    first : int
        Where the first of them stands in the class.
    weight : ndarray, optional
        Weights of the rows.
    positions : ndarray of int, optional
        Where each row stands in the class, where they are not one after the other.
    """

    rows: RowSource
    first: int = 0
    weight: np.ndarray | None = None
    positions: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers."""
        return self.rows.dtype

    def shared(self) -> Block:
        """Return the block as other processes may read it, where it is stored for them."""
        return replace(self, rows=self.rows.there) if isinstance(self.rows, MirroredRows) else self

    def open(self) -> OpenBlock:
        """Bring the rows into memory, unless they are there."""
        return OpenBlock(self.rows.read(), self.first, self.weight, self.positions)


@dataclass(frozen=True, eq=False)
class OpenBlock:
    """A block whose rows are in memory; otherwise as :class:`Block`."""

    X: np.ndarray
    first: int
    weight: np.ndarray | None
    positions: np.ndarray | None

    def __len__(self) -> int:
        return len(self.X)

    @property
    def dtype(self) -> np.dtype:
        """The type of the numbers."""
        return self.X.dtype

    def open(self) -> OpenBlock:
        """Return the block itself."""
        return self

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Return where some rows of the block stand in the class."""
        return rows + self.first if self.positions is None else self.positions[rows]


def rows_per_block(columns: int, dtype: np.dtype) -> int:
    """Return how many rows a block has.

    Examples
    --------
    >>> rows_per_block(20, np.dtype(np.float32))
    1677721
    """
    return max(_ROWS_LEAST, BLOCK_BYTES // (max(columns, 1) * dtype.itemsize))


def cut_blocks(rows: RowSource, weight: np.ndarray | None = None, positions: np.ndarray | None = None) -> list[Block]:
    """Cut rows, with their weights and positions where they have some, into blocks.

    Examples
    --------
    >>> from c2tc_pipeline.clustering.row_source import HeldRows
    >>> len(cut_blocks(HeldRows(np.zeros((10_000, 3), dtype=np.float32))))
    1
    """
    size = rows_per_block(rows.shape[1], rows.dtype)
    blocks = []
    for start in range(0, len(rows), size):
        run = slice(start, min(start + size, len(rows)))
        blocks.append(
            Block(
                rows.part(run.start, run.stop),
                start,
                None if weight is None else weight[run],
                None if positions is None else positions[run],
            )
        )
    return blocks
