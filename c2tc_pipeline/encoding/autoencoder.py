"""Autoencoder of string columns, trained without building the N x D matrix X of similarities.

A row of X is one row from each column's similarity table S_j, side by side. So the first layer X W is a sum of rows
looked up in S_j W_j. With a linear last layer x' = U g + b, the squared error |x - x'|^2 expands into |x|^2, look-ups
in S_j U_j and S_j b_j for the cross terms, and a small quadratic form in U'U. Loss and gradients are those of the dense
network.

Ten epochs are few: from random weights they end above the loss of a plain PCA. So training starts at the PCA, where the
first hidden units pass the components through and the others are random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch.nn.functional import embedding_bag

from c2tc_pipeline.common.devices import Place, on_device
from c2tc_pipeline.common.optimisers import AdamW, FlatWeights, one_thread
from c2tc_pipeline.encoding.part import PartState

# Min steps per epoch and max batch size.
MIN_STEPS = 16
_MAX_BATCH = 8_192
# Max norm of the gradient: the first steps of a wide table are large.
CLIP_NORM = 5.0
# Adam's eps. At the PCA the encoder's gradients cancel, and what is left of them is rounding, which the usual 1e-8
# would blow up to full steps: trainings that differ only in the order of additions ended 1 % apart.
ADAM_EPS = 1e-5
# PCA start: spare directions and rounds of subspace iteration, and the margin that keeps ReLUs open on all rows.
_SPARE_DIRECTIONS = 8
_ROUNDS = 4
_MARGIN = 0.1


@dataclass(frozen=True)
class AutoencoderSettings:
    """Settings that determine the trained weights; ``batch_size=None`` is :func:`default_batch_size`."""

    latent: int
    hidden: int = 64
    epochs: int = 10
    batch_size: int | None = None
    learning_rate: float = 5e-3
    seed: int = 0


@dataclass(frozen=True)
class TrainedAutoencoder:
    """Weights of the encoder half as plain arrays, and the mean reconstruction error of each epoch."""

    w_in: np.ndarray
    b_in: np.ndarray
    w_code: np.ndarray
    b_code: np.ndarray
    losses: np.ndarray

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays by name."""
        return {name: np.ascontiguousarray(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_state(cls, state: PartState) -> TrainedAutoencoder:
        """Rebuild from the arrays of :meth:`to_arrays`."""
        w_in = state.array("w_in", None, None)
        w_code = state.array("w_code", w_in.shape[1], None)
        b_in, b_code = state.array("b_in", w_in.shape[1]), state.array("b_code", w_code.shape[1])
        return cls(w_in, b_in, w_code, b_code, state.array("losses", None))


@dataclass(frozen=True)
class RowBatch:
    """Some rows of X, by the table rows that each of them looks up.

    ``used`` are the rows of each similarity table that the batch looks up (of a long column often half), ``cells``
    their places for each row, and ``users`` with ``user_edges`` the transpose: the rows that look up each.
    """

    tables: Sequence[torch.Tensor]
    used: Sequence[torch.Tensor]
    cells: torch.Tensor
    users: torch.Tensor
    user_edges: torch.Tensor
    weight: torch.Tensor

    @cached_property
    def squared_norms(self) -> torch.Tensor:
        """Return |x|^2 of each row."""
        norms = torch.cat([rows.square().sum(dim=1, keepdim=True) for rows in self.table_rows()])
        return embedding_bag(self.cells, norms, mode="sum")[:, 0]

    def times(self, weights: torch.Tensor) -> torch.Tensor:
        """Return X W; gradients flow to W."""
        product: torch.Tensor = _Product.apply(weights, self)
        return product

    def transposed_times(self, values: torch.Tensor) -> torch.Tensor:
        """Return X' V."""
        sums = embedding_bag(self.users, values.contiguous(), self.user_edges, mode="sum")
        parts = sums.split([len(used) for used in self.used])
        return torch.cat([rows.T @ part for rows, part in zip(self.table_rows(), parts, strict=True)])

    def table_rows(self) -> list[torch.Tensor]:
        """Return the used rows of each table, copied at every call: kept for every batch they would be many times S."""
        return [table.index_select(0, used) for table, used in zip(self.tables, self.used, strict=True)]


class _Product(torch.autograd.Function):
    """X W with the gradient X' G.

    The gradient of ``embedding_bag`` itself sorts all indices at every step: 23 ms instead of 5 on Diabetes130US.
    """

    @staticmethod
    def forward(ctx: Any, weights: torch.Tensor, batch: RowBatch) -> torch.Tensor:
        ctx.batch = batch
        parts = weights.split([len(table) for table in batch.tables])
        table = torch.cat([rows @ part for rows, part in zip(batch.table_rows(), parts, strict=True)])
        return embedding_bag(batch.cells, table, mode="sum")

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return ctx.batch.transposed_times(gradients[0]), None


class FactorisedAutoencoder(torch.nn.Module):
    """Encoder D -> H -> L and decoder L -> H -> D over looked-up similarities."""

    def __init__(
        self,
        tables: Sequence[np.ndarray],
        *,
        latent: int,
        hidden: int,
        generator: torch.Generator,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.sizes = [len(table) for table in tables]
        self.width = width = sum(self.sizes)
        self.tables = [torch.from_numpy(table).to(device, dtype) for table in tables]

        def layer(*shape: int, fan_in: int) -> torch.nn.Parameter:
            drawn = (torch.rand(*shape, generator=generator) * 2 - 1) * fan_in**-0.5
            return torch.nn.Parameter(drawn.to(device, dtype))

        def bias(size: int) -> torch.nn.Parameter:
            return torch.nn.Parameter(torch.zeros(size, dtype=dtype, device=device))

        self.w_in, self.b_in = layer(width, hidden, fan_in=width), bias(hidden)
        self.w_code, self.b_code = layer(hidden, latent, fan_in=hidden), bias(latent)
        self.w_back, self.b_back = layer(latent, hidden, fan_in=latent), bias(hidden)
        self.w_out, self.b_out = layer(width, hidden, fan_in=hidden), bias(width)

    def batch(self, places: np.ndarray, weight: np.ndarray | None = None) -> RowBatch:
        """Prepare rows, given by their category in each column, for many products."""
        device, dtype = self.w_in.device, self.w_in.dtype
        rows, columns = places.shape
        cells = places + np.cumsum([0, *self.sizes[:-1]])
        edges = np.arange(0, rows * columns + 1, columns)
        ones = np.ones(rows * columns, dtype=np.int8)
        users = sparse.csr_array((ones, cells.ravel(), edges), shape=(rows, self.width)).tocsc()
        is_used = np.diff(users.indptr) > 0
        used = np.split(is_used, np.cumsum(self.sizes)[:-1])
        return RowBatch(
            self.tables,
            [torch.from_numpy(np.flatnonzero(part)).to(device) for part in used],
            torch.from_numpy((np.cumsum(is_used) - 1)[cells]).to(device),
            torch.from_numpy(users.indices.astype(np.int64)).to(device),
            torch.from_numpy(users.indptr[:-1][is_used].astype(np.int64)).to(device),
            torch.from_numpy(np.ones(rows) if weight is None else weight).to(dtype).to(device),
        )

    def loss(self, batch: RowBatch) -> torch.Tensor:
        """Return the squared reconstruction error of each row."""
        layers = torch.cat([self.w_in, self.w_out, self.b_out[:, None]], dim=1)
        x_in, x_out, x_bias = batch.times(layers).split([len(self.b_in), len(self.b_back), 1], dim=1)
        # Nothing lies between the layers w_code and w_back, so rows are multiplied by their product.
        h = torch.relu(x_in + self.b_in)
        g = torch.relu(torch.addmm(self.b_code @ self.w_back + self.b_back, h, self.w_code @ self.w_back))
        # |x - U g - b|^2 = |x|^2 - 2 x.b + |b|^2 + |U g|^2 - 2 x.U g + 2 b.U g
        missed = self.w_out.T @ self.b_out - x_out
        decoded = ((g @ (self.w_out.T @ self.w_out) + 2 * missed) * g).sum(dim=1)
        return batch.squared_norms + self.b_out @ self.b_out - 2 * x_bias[:, 0] + decoded

    def summed_loss(self, batch: RowBatch) -> torch.Tensor:
        """Return the weighted sum of the squared reconstruction errors."""
        return batch.weight @ self.loss(batch)


@torch.no_grad()
def start_at_components(model: FactorisedAutoencoder, batches: Sequence[RowBatch], generator: torch.Generator) -> None:
    """Set a model's weights to a PCA of all weighted rows, as far as its layers are wide enough."""
    wanted = min(model.w_code.shape[1], model.w_in.shape[1], model.width)
    mean, directions = _components(batches, wanted, generator)
    low = torch.stack([(batch.times(directions) - mean @ directions).amin(dim=0) for batch in batches]).amin(dim=0)
    low -= _MARGIN
    model.w_in[:, :wanted] = directions
    model.b_in[:wanted] = -low - mean @ directions
    # The code is scaled dimension by dimension later. Components of falling size would all be stretched to the same
    # length; after a random rotation every dimension has a similar share of each, and distances keep their proportions.
    turn = torch.linalg.qr(torch.randn(wanted, wanted, generator=generator, dtype=low.dtype))[0].to(low.device)
    model.w_code.zero_()
    model.w_code[:wanted, :wanted] = turn
    model.b_code[:wanted] = low @ turn
    model.w_back[:, :wanted] = 0
    model.w_back[:wanted, :wanted] = turn.T
    model.b_back[:wanted] = -low
    model.w_out.zero_()
    model.w_out[:, :wanted] = directions
    model.b_out.copy_(mean + directions @ low)


def _components(
    batches: Sequence[RowBatch], wanted: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean row and the leading principal directions, by subspace iteration."""
    total = torch.stack([batch.weight.sum() for batch in batches]).sum()
    mean = torch.stack([batch.transposed_times(batch.weight[:, None])[:, 0] for batch in batches]).sum(dim=0) / total
    tried = min(wanted + _SPARE_DIRECTIONS, len(mean))
    start = torch.randn(len(mean), tried, generator=generator, dtype=mean.dtype).to(mean.device)
    directions = torch.linalg.qr(start)[0]
    for _ in range(_ROUNDS):
        pulled = torch.zeros_like(directions)
        for batch in batches:
            places = (batch.times(directions) - mean @ directions) * batch.weight[:, None]
            pulled += batch.transposed_times(places) - torch.outer(mean, places.sum(dim=0))
        directions = torch.linalg.qr(pulled)[0]
    spread = mean.new_zeros(tried, tried)
    for batch in batches:
        places = batch.times(directions) - mean @ directions
        spread += (places * batch.weight[:, None]).T @ places / total
    return mean, directions @ torch.linalg.eigh(spread)[1].flip(1)[:, :wanted]


def default_batch_size(rows: int) -> int:
    """Return a sixteenth of the distinct rows, from 64 to 8,192: a step costs the square of the vocabularies' size."""
    # Rounded up: a last step of the rows that are left over would cost almost as much as the others.
    return min(max(math.ceil(rows / MIN_STEPS), 64), _MAX_BATCH)


@dataclass(frozen=True)
class Schedule:
    """Row numbers of each batch, and the batches of each epoch's steps: drawn once, visited in new orders."""

    batches: tuple[np.ndarray, ...]
    epochs: tuple[tuple[int, ...], ...]

    @classmethod
    def draw(cls, rows: int, settings: AutoencoderSettings, generator: torch.Generator) -> Schedule:
        """Shuffle rows into batches, and batches into the steps of each epoch."""
        size = settings.batch_size or default_batch_size(rows)
        batches = torch.randperm(rows, generator=generator).split(size)
        # Merging may leave a handful of rows; an epoch still takes as many steps as a table of many rows would.
        passes = max(1, MIN_STEPS // len(batches))

        def shuffled() -> tuple[int, ...]:
            return tuple(int(i) for _ in range(passes) for i in torch.randperm(len(batches), generator=generator))

        return cls(tuple(batch.numpy() for batch in batches), tuple(shuffled() for _ in range(settings.epochs)))

    @property
    def steps(self) -> int:
        """Steps of all epochs."""
        return sum(len(visits) for visits in self.epochs)

    @property
    def rows_per_epoch(self) -> int:
        """Rows in the steps of an epoch, those of repeated passes counted again."""
        return sum(len(self.batches[index]) for index in self.epochs[0])


def train_autoencoder(
    tables: Sequence[np.ndarray],
    places: np.ndarray,
    settings: AutoencoderSettings,
    *,
    device: str | Place = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> TrainedAutoencoder:
    """Train the autoencoder on looked-up rows; rows with equal categories are merged and weighted.

    ``tables`` hold the similarities of each column's categories, ``places`` the category of each row in each column. If
    a device's memory does not hold a batch, the gradient of a step is summed over parts of the batch. One CPU thread is
    used, so that the weights do not depend on the number of cores.
    """
    first, counts = distinct_rows(places)
    rows, weight = places[first], counts / counts.mean()

    def attempt(place: Place) -> TrainedAutoencoder:
        return _train_at(place, tables, rows, weight, settings, progress)

    with one_thread():
        return on_device("autoencoder training", device, attempt)


def _train_at(
    place: Place,
    tables: Sequence[np.ndarray],
    rows: np.ndarray,
    weight: np.ndarray,
    settings: AutoencoderSettings,
    progress: Callable[[int, int], None] | None,
) -> TrainedAutoencoder:
    """Train from the start on distinct rows, with batches cut into the parts that a place requires."""
    generator = torch.Generator().manual_seed(settings.seed)
    model = FactorisedAutoencoder(
        tables, latent=settings.latent, hidden=settings.hidden, generator=generator, device=place.device
    )
    schedule = Schedule.draw(len(rows), settings, generator)
    batches = [
        [
            model.batch(rows[part], weight[part])
            for part in np.array_split(picked, range(0, len(picked), place.part_of(len(picked)))[1:])
        ]
        for picked in schedule.batches
    ]
    start_at_components(model, [part for parts in batches for part in parts], generator)
    flat = FlatWeights(model)
    optimiser = AdamW(flat, eps=ADAM_EPS)
    losses = []
    for epoch, visits in enumerate(schedule.epochs):
        total = 0.0
        for parts in (batches[index] for index in visits):
            flat.gradients.zero_()
            size = sum(len(part.weight) for part in parts)
            for part in parts:
                loss = model.summed_loss(part)
                (loss / size).backward()
                total += float(loss.detach())
            flat.gradients.mul_((CLIP_NORM / (torch.linalg.vector_norm(flat.gradients) + 1e-6)).clamp(max=1.0))
            optimiser.step(step_length(settings.learning_rate, optimiser.taken, schedule.steps))
        losses.append(total / schedule.rows_per_epoch)
        if progress is not None:
            progress(epoch + 1, settings.epochs)
    # Copied, because they are views into a vector that holds the decoder, too.
    encoder = {
        name: getattr(model, name).detach().cpu().numpy().copy() for name in ("w_in", "b_in", "w_code", "b_code")
    }
    return TrainedAutoencoder(**encoder, losses=np.asarray(losses))


def step_length(max_length: float, taken: int, steps: int) -> float:
    """Return the length of the next step: it warms up over the first tenth and decays along a cosine."""
    share = taken / steps
    return max_length * min(1.0, 10 * (share + 1 / steps)) * 0.5 * (1 + math.cos(math.pi * share))


def distinct_rows(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first position and the count of each distinct row of integers from 0, in ascending order of rows."""
    # Compared as big-endian bytes, which sort like the numbers and much faster than columns one after the other.
    packed = np.ascontiguousarray(places.astype(">u4")).view(f"V{4 * places.shape[1]}")[:, 0]
    _, first, counts = np.unique(packed, return_index=True, return_counts=True)
    return first, counts
