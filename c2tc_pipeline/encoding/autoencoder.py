"""The autoencoder of string columns, in its factorised form: the N x D matrix of similarities is never built.

A row's input is one row from each column's similarity table S_j, side by side. So the first layer is a sum of looked-up
rows of S_j W_j. With a linear last layer x' = U g + b, the squared error |x - x'|^2 expands into |x|^2, a look-up in
S_j U_j for the cross term, and a small quadratic form in U'U for |x'|^2. What the errors of many rows have of |x|^2 and
of x.b depends on sums over these rows alone, which are made once. Loss and gradients are those of the dense network.
Their fast form for many rows is in :mod:`c2tc_pipeline.encoding.autoencoder_gradient`, and how the autoencoder is
trained in :mod:`c2tc_pipeline.encoding.autoencoder_training`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from c2tc_pipeline.encoding.autoencoder_gradient import SummedLoss
from c2tc_pipeline.encoding.autoencoder_inputs import Inputs, WeightedRows, packed
from c2tc_pipeline.encoding.look_ups import JoinedColumns, RowBatch


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
        self.sizes = [len(table) for table in tables]
        self.width = sum(self.sizes)
        blocks = packed(tables)
        self.n_blocks = len(blocks)
        for index, block in enumerate(blocks):
            self.register_buffer(f"block_{index}", block)

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

    def inputs(self, batch: RowBatch) -> Inputs:
        """Return the inputs of looked-up rows."""
        return Inputs.of(self.blocks, batch)

    def inputs_at(self, places: torch.Tensor) -> Inputs:
        """Return the inputs of rows that are given by the category in each column."""
        joined = JoinedColumns.of(places.cpu().numpy(), self.sizes, most=0, device=str(places.device))
        return self.inputs(joined.batch(torch.arange(len(places), device=places.device)))

    def loss(self, places: torch.Tensor) -> torch.Tensor:
        """Return the squared reconstruction error of each row, given by the category in each column.

        This is the definition; training takes :meth:`summed_loss`.
        """
        inputs = self.inputs_at(places)
        code = torch.relu(inputs.times(self.w_in) + self.b_in) @ self.w_code + self.b_code
        g = torch.relu(code @ self.w_back + self.b_back)
        # |x - U g - b|^2 = |x|^2 - 2 x.b + |b|^2 + |U g|^2 - 2 x.U g + 2 b.U g
        biased = self.b_out @ self.b_out - 2 * inputs.times(self.b_out[:, None])[:, 0]
        missed = self.w_out.T @ self.b_out - inputs.times(self.w_out)
        return inputs.powers() + biased + ((g @ (self.w_out.T @ self.w_out) + 2 * missed) * g).sum(dim=1)

    def summed_loss(self, rows: WeightedRows) -> torch.Tensor:
        """Return the weighted sum of the squared reconstruction errors of prepared rows.

        Examples
        --------
        >>> model = FactorisedAutoencoder([torch.eye(3)], latent=1, hidden=4, generator=torch.Generator())
        >>> places, weight = torch.tensor([[0], [2]]), torch.tensor([1.0, 3.0])
        >>> total = model.summed_loss(WeightedRows.of(model.inputs_at(places), weight))
        >>> bool(torch.isclose(total, weight @ model.loss(places)))
        True
        """
        total: torch.Tensor = SummedLoss.apply(rows, *self.parameters())
        return total
