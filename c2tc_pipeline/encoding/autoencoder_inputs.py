"""The inputs X of the autoencoder, one row of similarities from each column's table side by side, without building X.

What belongs here: products with X and X'. What does not: which table rows are looked up for which row, which is in
:mod:`c2tc_pipeline.encoding.look_ups`.

With the similarity tables of all columns on the diagonal of S, a row of X is a sum of rows of S, one from each column.
So X W is a look-up in S W, and X' V is S' times the sums of V over those who look up the same row of S. Only the rows
of S that are looked up take part: of a long column, a batch may have hardly more than half of the categories.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from c2tc_pipeline.encoding.look_ups import RowBatch

# Small tables are packed into one block-diagonal matrix up to this size: one product instead of dozens of tiny ones.
_BLOCK_SIZE = 256


@dataclass(frozen=True)
class Inputs:
    """The inputs X of some rows.

    Parameters
    ----------
    blocks : sequence of tensor
        The similarities of all columns, as the square blocks on the diagonal of S.
    used : sequence of tensor of int
        The rows of each block that are looked up.
    batch : RowBatch
        Which of these each row adds up.

    Examples
    --------
    >>> from c2tc_pipeline.encoding.look_ups import JoinedColumns
    >>> joined = JoinedColumns.of(torch.tensor([[0, 1], [1, 0]]).numpy(), [2, 2], most=0)
    >>> table = torch.tensor([[1.0, 0.5], [0.5, 1.0]])
    >>> inputs = Inputs.of(packed([table, table]), joined.batch(torch.tensor([0])))
    >>> inputs.times(torch.eye(4)).tolist()
    [[1.0, 0.5, 0.5, 1.0]]
    >>> inputs.back(torch.tensor([[2.0]])).T.tolist()
    [[2.0, 1.0, 1.0, 2.0]]
    """

    blocks: Sequence[torch.Tensor]
    used: Sequence[torch.Tensor]
    batch: RowBatch

    @classmethod
    def of(cls, blocks: Sequence[torch.Tensor], batch: RowBatch) -> Inputs:
        """Prepare the inputs of a batch."""
        sizes = torch.tensor([len(block) for block in blocks], device=batch.used.device)
        ends = sizes.cumsum(0)
        counts = torch.diff(torch.searchsorted(batch.used, ends), prepend=ends.new_zeros(1))
        parts = batch.used.split(counts.tolist())
        return cls(blocks, [part - start for part, start in zip(parts, ends - sizes, strict=True)], batch)

    def times(self, weights: torch.Tensor) -> torch.Tensor:
        """Return X W."""
        parts = weights.split([len(block) for block in self.blocks])
        return self.batch.sums(torch.cat([rows @ part for rows, part in zip(self._rows(), parts, strict=True)]))

    def back(self, values: torch.Tensor) -> torch.Tensor:
        """Return X' V."""
        parts = self.batch.sums_back(values).split([len(used) for used in self.used])
        return torch.cat([rows.T @ part for rows, part in zip(self._rows(), parts, strict=True)])

    def powers(self) -> torch.Tensor:
        """Return the squared norm of each row."""
        return self.batch.sums(torch.cat([(rows**2).sum(dim=1, keepdim=True) for rows in self._rows()]))[:, 0]

    def _rows(self) -> Iterable[torch.Tensor]:
        # Copied at every use: that costs a tenth of the product, and copies kept for every batch would be many times S.
        return (block.index_select(0, used) for block, used in zip(self.blocks, self.used, strict=True))


@dataclass(frozen=True)
class WeightedRows:
    """Rows that go through a device together, and what their errors have in common whatever the weights of the layers.

    Parameters
    ----------
    inputs : Inputs
        Their inputs.
    weight : tensor of shape (n,)
        How much each counts.
    power : tensor
        The weighted sum of the squared norms of the inputs.
    summed : tensor of shape (D,)
        The weighted sum of the inputs.
    """

    inputs: Inputs
    weight: torch.Tensor
    power: torch.Tensor
    summed: torch.Tensor

    @classmethod
    def of(cls, inputs: Inputs, weight: torch.Tensor) -> WeightedRows:
        """Prepare rows for many steps.

        Examples
        --------
        >>> from c2tc_pipeline.encoding.look_ups import JoinedColumns
        >>> joined = JoinedColumns.of(torch.tensor([[0], [2]]).numpy(), [3], most=0)
        >>> inputs = Inputs.of([torch.eye(3)], joined.batch(torch.arange(2)))
        >>> WeightedRows.of(inputs, torch.tensor([1.0, 3.0])).summed.tolist()
        [1.0, 0.0, 3.0]
        """
        return cls(inputs, weight, weight @ inputs.powers(), inputs.back(weight[:, None])[:, 0])


def packed(tables: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return square tables as fewer blocks of the same diagonal: small neighbours share one, a large one stands alone.

    Examples
    --------
    >>> [len(block) for block in packed([torch.eye(size) for size in (100, 100, 100, 900, 3)])]
    [200, 100, 900, 3]
    """
    runs: list[list[torch.Tensor]] = []
    width = _BLOCK_SIZE
    for table in tables:
        width += len(table)
        if width > _BLOCK_SIZE:
            runs.append([])
            width = len(table)
        runs[-1].append(table)
    return [torch.block_diag(*run).contiguous() for run in runs]
