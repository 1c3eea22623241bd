"""The autoencoder of string columns, in its factorised form: the N x D matrix of similarities is never built.

A row's input is one row from each column's similarity table S_j, side by side. So the first layer is a sum of looked-up
rows of S_j W_j. With a linear last layer x' = U g + b, the squared error |x - x'|^2 expands into |x|^2, a look-up in
S_j U_j for the cross term, and a small quadratic form in U'U for |x'|^2. What the errors of many rows have of |x|^2 and
of x.b depends on sums over these rows alone, which are made once. Loss and gradients are those of the dense network.
How it is trained is in :mod:`c2tc_pipeline.encoding.autoencoder_training`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from c2tc_pipeline.encoding.look_ups import JoinedColumns, RowBatch

# Small tables are packed into one block-diagonal matrix up to this size: one product instead of dozens of tiny ones.
_BLOCK_SIZE = 256


class _LookUp(torch.autograd.Function):
    """Sums of looked-up rows, whose gradient is a sum the other way: far faster than torch's own, which sorts."""

    @staticmethod
    def forward(ctx: Any, table: torch.Tensor, batch: RowBatch) -> torch.Tensor:
        ctx.batch = batch
        return batch.sums(table)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return ctx.batch.sums_back(gradients[0].contiguous()), None


class FactorisedAutoencoder(torch.nn.Module):
    """Encoder D -> H -> L and decoder L -> H -> D over looked-up similarities.

    Parameters
    ----------
    tables : sequence of tensor of shape (K_j, K_j)
        Similarities of each column's categories.
    latent, hidden : int
        Widths.
    generator : torch.Generator
        Determines the starting weights.

    Examples
    --------
    >>> model = FactorisedAutoencoder([torch.eye(3)], latent=1, hidden=4, generator=torch.Generator().manual_seed(0))
    >>> model.loss(torch.tensor([[0], [2]])).shape
    torch.Size([2])
    """

    n_blocks: int

    def __init__(self, tables: Sequence[torch.Tensor], *, latent: int, hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        sizes = [len(table) for table in tables]
        self.sizes = sizes
        self.width = sum(sizes)
        packing = _packing(sizes)
        self.n_blocks = len(packing)
        for index, (a, b) in enumerate(packing):
            self.register_buffer(f"block_{index}", torch.block_diag(*tables[a:b]).contiguous())

        def layer(rows: int, columns: int, fan_in: int) -> torch.nn.Parameter:
            bound = fan_in**-0.5
            return torch.nn.Parameter((torch.rand(rows, columns, generator=generator) * 2 - 1) * bound)

        self.w_in = layer(self.width, hidden, self.width)
        self.b_in = torch.nn.Parameter(torch.zeros(hidden))
        self.w_code = layer(hidden, latent, hidden)
        self.b_code = torch.nn.Parameter(torch.zeros(latent))
        self.w_back = layer(latent, hidden, latent)
        self.b_back = torch.nn.Parameter(torch.zeros(hidden))
        self.w_out = layer(self.width, hidden, hidden)
        self.b_out = torch.nn.Parameter(torch.zeros(self.width))

    @property
    def blocks(self) -> list[torch.Tensor]:
        """The similarity tables, packed into block-diagonal matrices."""
        return [self.get_buffer(f"block_{index}") for index in range(self.n_blocks)]

    def looked_up(self, weights: torch.Tensor) -> torch.Tensor:
        """Return S W: what each category of each column contributes to a layer."""
        blocks = self.blocks
        parts = weights.split([len(block) for block in blocks])
        return torch.cat([block @ part for block, part in zip(blocks, parts, strict=True)])

    def spread_back(self, sums: torch.Tensor) -> torch.Tensor:
        """Return S' V: the other direction of :meth:`looked_up`."""
        blocks = self.blocks
        parts = sums.split([len(block) for block in blocks])
        return torch.cat([block.T @ part for block, part in zip(blocks, parts, strict=True)])

    def batch(self, places: torch.Tensor) -> RowBatch:
        """Prepare rows, given by the category in each column."""
        joined = JoinedColumns.of(places.cpu().numpy(), self.sizes, most=0, device=str(places.device))
        return joined.batch(torch.arange(len(places), device=places.device))

    def powers(self, batch: RowBatch) -> torch.Tensor:
        """Return the squared norm of each row's input."""
        norms = torch.cat([(block**2).sum(dim=1) for block in self.blocks])
        return batch.sums(norms[:, None])[:, 0]

    def loss(self, places: torch.Tensor) -> torch.Tensor:
        """Return the squared reconstruction error of each row, given by the category in each column."""
        batch = self.batch(places)
        biased = batch.sums(self.looked_up(self.b_out[:, None]))[:, 0]
        return self.powers(batch) - 2 * biased + self.b_out @ self.b_out + self._decoded(batch)

    def summed_loss(self, rows: WeightedRows) -> torch.Tensor:
        """Return the weighted sum of the squared reconstruction errors of prepared rows."""
        biased = rows.weight.sum() * (self.b_out @ self.b_out) - 2 * (rows.inputs @ self.b_out)
        return rows.power + biased + rows.weight @ self._decoded(rows.batch)

    def _decoded(self, batch: RowBatch) -> torch.Tensor:
        """Return the part of each row's error that depends on what was decoded: |U g|^2 - 2 x.U g + 2 b.U g."""
        # Inputs meet the first layer and the output layer in one look-up: x.W and x.U side by side.
        met: torch.Tensor = _LookUp.apply(self.looked_up(torch.cat([self.w_in, self.w_out], dim=1)), batch)
        first, crossed = met.tensor_split(2, dim=1)
        code = torch.relu(first + self.b_in) @ self.w_code + self.b_code
        g = torch.relu(code @ self.w_back + self.b_back)
        return ((g @ (self.w_out.T @ self.w_out) + 2 * (self.w_out.T @ self.b_out - crossed)) * g).sum(dim=1)


@dataclass(frozen=True)
class WeightedRows:
    """Rows that go through a device together, and what their errors have in common whatever the weights of the layers.

    Parameters
    ----------
    batch : RowBatch
        The rows.
    weight : tensor of shape (n,)
        How much each counts.
    power : tensor
        The weighted sum of the squared norms of their inputs.
    inputs : tensor of shape (D,)
        The weighted sum of their inputs.
    """

    batch: RowBatch
    weight: torch.Tensor
    power: torch.Tensor
    inputs: torch.Tensor

    @classmethod
    @torch.no_grad()
    def of(cls, model: FactorisedAutoencoder, batch: RowBatch, weight: torch.Tensor) -> WeightedRows:
        """Prepare rows for many steps of a model.

        Examples
        --------
        >>> model = FactorisedAutoencoder([torch.eye(3)], latent=1, hidden=4, generator=torch.Generator())
        >>> WeightedRows.of(model, model.batch(torch.tensor([[0], [2]])), torch.tensor([1.0, 3.0])).inputs.tolist()
        [1.0, 0.0, 3.0]
        """
        inputs = model.spread_back(batch.sums_back(weight[:, None]))[:, 0]
        return cls(batch, weight, weight @ model.powers(batch), inputs)


def _packing(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return runs of neighbouring tables that fit one block together; a larger table stands alone.

    Examples
    --------
    >>> _packing([100, 100, 100, 900, 3])
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    runs, start, width = [], 0, 0
    for index, size in enumerate(sizes):
        if index > start and width + size > _BLOCK_SIZE:
            runs.append((start, index))
            start, width = index, 0
        width += size
    return [*runs, (start, len(sizes))]
