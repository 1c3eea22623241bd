"""The autoencoder of string columns, in its factorised form: the N x D matrix of similarities is never built.

A row's input is one row from each column's similarity table S_j, side by side. So the first layer is a sum of looked-up
rows of S_j W_j. With a linear last layer x' = U g + b, the squared error |x - x'|^2 expands into |x|^2, a look-up in
S_j U_j for the cross term, and a small quadratic form in U'U for |x'|^2. Loss and gradients are those of the dense
network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
import torch
from torch.nn import functional as F

# Small tables are packed into one block-diagonal matrix up to this size: one product instead of dozens of tiny ones.
_BLOCK_SIZE = 256
# Steps an epoch takes at least.
_LEAST_STEPS = 32
# Bound on the gradient's norm: the first steps of a wide table are large.
_CLIP_NORM = 5.0


@dataclass(frozen=True)
class AutoencoderSettings:
    """What determines the trained weights, beside the data.

    Parameters
    ----------
    latent : int
        Width of the code: the number of string columns, in the paper.
    hidden : int
        Width of the hidden layers.
    epochs : int
        Passes over the rows.
    batch_size : int or None
        Distinct rows per step; None is a thirty-second of them, from 64 to 2,048: enough steps for small tables, few
        enough for large vocabularies, where a step costs the square of their size.
    learning_rate : float
        Largest step of Adam; it warms up and decays along a cosine.
    seed : int
        Determines the start and the order of rows.
    """

    latent: int
    hidden: int = 64
    epochs: int = 10
    batch_size: int | None = None
    learning_rate: float = 5e-3
    seed: int = 0

    def to_list(self) -> list[float | None]:
        """Return the settings as a JSON value for cache keys."""
        return list(astuple(self))


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

    offsets: torch.Tensor
    n_blocks: int

    def __init__(self, tables: Sequence[torch.Tensor], *, latent: int, hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        sizes = [len(table) for table in tables]
        width = sum(sizes)
        packing = _packing(sizes)
        self.n_blocks = len(packing)
        for index, (a, b) in enumerate(packing):
            self.register_buffer(f"block_{index}", torch.block_diag(*tables[a:b]).contiguous())
        self.register_buffer("offsets", torch.tensor([0, *np.cumsum(sizes)[:-1]]))

        def layer(rows: int, columns: int, fan_in: int) -> torch.nn.Parameter:
            bound = fan_in**-0.5
            return torch.nn.Parameter((torch.rand(rows, columns, generator=generator) * 2 - 1) * bound)

        self.w_in = layer(width, hidden, width)
        self.b_in = torch.nn.Parameter(torch.zeros(hidden))
        self.w_code = layer(hidden, latent, hidden)
        self.b_code = torch.nn.Parameter(torch.zeros(latent))
        self.w_back = layer(latent, hidden, latent)
        self.b_back = torch.nn.Parameter(torch.zeros(hidden))
        self.w_out = layer(width, hidden, hidden)
        self.b_out = torch.nn.Parameter(torch.zeros(width))

    @property
    def blocks(self) -> list[torch.Tensor]:
        """The similarity tables, packed into block-diagonal matrices."""
        return [self.get_buffer(f"block_{index}") for index in range(self.n_blocks)]

    def looked_up(self, weights: torch.Tensor) -> torch.Tensor:
        """Return S W: what each category of each column contributes to a layer."""
        blocks = self.blocks
        parts = weights.split([len(block) for block in blocks])
        return torch.cat([block @ part for block, part in zip(blocks, parts, strict=True)])

    def code(self, flat: torch.Tensor) -> torch.Tensor:
        """Return the latent code of rows given as places in the concatenated tables."""
        hidden = torch.relu(F.embedding_bag(flat, self.looked_up(self.w_in), mode="sum") + self.b_in)
        return hidden @ self.w_code + self.b_code

    def loss(self, places: torch.Tensor) -> torch.Tensor:
        """Return the squared reconstruction error of each row; ``places`` has one column per string column."""
        flat = places + self.offsets
        g = torch.relu(self.code(flat) @ self.w_back + self.b_back)
        # Inputs meet the output layer in one look-up: x.U and x.b side by side.
        output = torch.cat([self.w_out, self.b_out[:, None]], dim=1)
        crossed = F.embedding_bag(flat, self.looked_up(output), mode="sum")
        cross = (crossed[:, :-1] * g).sum(dim=1) + crossed[:, -1]
        power = ((g @ (self.w_out.T @ self.w_out)) * g).sum(dim=1)
        bias = 2 * (g @ (self.w_out.T @ self.b_out)) + (self.b_out**2).sum()
        norms = torch.cat([(block**2).sum(dim=1) for block in self.blocks])
        return norms[flat].sum(dim=1) - 2 * cross + power + bias


@dataclass(frozen=True)
class TrainedAutoencoder:
    """The half of the autoencoder that encodes, as plain arrays, and how training went.

    Parameters
    ----------
    w_in, b_in, w_code, b_code : ndarray
        Encoder weights.
    losses : ndarray
        Mean reconstruction error of each epoch.
    """

    w_in: np.ndarray
    b_in: np.ndarray
    w_code: np.ndarray
    b_code: np.ndarray
    losses: np.ndarray

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays by name."""
        return {name: np.ascontiguousarray(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> TrainedAutoencoder:
        """Rebuild from :meth:`to_arrays`; other arrays are ignored."""
        return cls(**{name: arrays[name] for name in cls.__dataclass_fields__})


def train_autoencoder(
    tables: Sequence[np.ndarray],
    places: np.ndarray,
    settings: AutoencoderSettings,
    *,
    device: str = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> TrainedAutoencoder:
    """Train the autoencoder on looked-up rows; rows with equal categories are merged and weighted.

    Parameters
    ----------
    tables : sequence of ndarray of shape (K_j, K_j)
        Similarities of each column's categories.
    places : ndarray of int of shape (n, J)
        The category of each row in each column.
    settings : AutoencoderSettings
        Widths, epochs, steps, seed.
    device : str
        A torch device.
    progress : callable, optional
        Called with (epochs done, epochs in all).

    Examples
    --------
    >>> places = np.array([[0], [1], [2]] * 9)
    >>> trained = train_autoencoder([np.eye(3, dtype=np.float32)], places, AutoencoderSettings(1))
    >>> trained.w_in.shape, len(trained.losses)
    ((3, 64), 10)
    """
    generator = torch.Generator().manual_seed(settings.seed)
    model = FactorisedAutoencoder(
        [torch.from_numpy(table) for table in tables],
        latent=settings.latent,
        hidden=settings.hidden,
        generator=generator,
    ).to(device)
    distinct, counts = np.unique(places, axis=0, return_counts=True)
    rows = torch.from_numpy(distinct).to(device)
    weight = torch.from_numpy((counts / counts.mean()).astype(np.float32)).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    batch_size = min(settings.batch_size or min(max(len(rows) // _LEAST_STEPS, 64), 2_048), len(rows))
    # Merging may leave a handful of rows; an epoch still takes as many steps as a table of many rows would.
    passes = max(1, _LEAST_STEPS * batch_size // len(rows))
    steps = settings.epochs * passes * -(-len(rows) // batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1.0, 10 * (step + 1) / steps) * 0.5 * (1 + math.cos(math.pi * step / steps))
    )
    losses = []
    for epoch in range(settings.epochs):
        total = torch.zeros((), device=device)
        orders = [torch.randperm(len(rows), generator=generator).to(device) for _ in range(passes)]
        for batch in (batch for order in orders for batch in order.split(batch_size)):
            loss = (model.loss(rows[batch]) * weight[batch]).sum()
            optimiser.zero_grad(set_to_none=True)
            (loss / len(batch)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), _CLIP_NORM)
            optimiser.step()
            schedule.step()
            total += loss.detach()
        losses.append(float(total) / (passes * len(rows)))
        if progress is not None:
            progress(epoch + 1, settings.epochs)
    weights = {name: getattr(model, name).detach().cpu().numpy() for name in ("w_in", "b_in", "w_code", "b_code")}
    return TrainedAutoencoder(**weights, losses=np.asarray(losses))


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
