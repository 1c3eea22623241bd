"""Training of the factorised autoencoder, and what is kept of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
import torch

from c2tc_pipeline.common.devices import Place, on_device
from c2tc_pipeline.common.optimisers import AdamW, FlatWeights
from c2tc_pipeline.encoding.autoencoder import FactorisedAutoencoder
from c2tc_pipeline.encoding.autoencoder_inputs import WeightedRows
from c2tc_pipeline.encoding.autoencoder_start import start_at_components
from c2tc_pipeline.encoding.look_ups import JoinedColumns, distinct_rows
from c2tc_pipeline.encoding.stored_state import array

# Steps an epoch takes at least, and the largest batch it takes them with.
LEAST_STEPS = 16
_LARGEST_BATCH = 8_192
# Columns are joined as long as a step has this many rows for each combination: making the sums of combinations then
# costs little against looking them up.
_ROWS_PER_COMBINATION = 16
_LEAST_COMBINATIONS = 32
# Bound on the gradient's norm: the first steps of a wide table are large.
CLIP_NORM = 5.0
# Adam's bound on small gradients. At a PCA the encoder's gradients cancel, and what is left of them is rounding, which
# Adam's usual 1e-8 would blow up to full steps: trainings that differ in the order of sums alone ended 1 % apart.
LEAST_SPREAD = 1e-5


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
        Distinct rows per step; None is a sixteenth of them, from 64 to 8,192: enough steps for small tables, few enough
        for large vocabularies, where a step costs the square of their size.
    learning_rate : float
        Largest step of Adam; it warms up and decays along a cosine.
    seed : int
        Determines the start and the batches.
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
        """Rebuild from :meth:`to_arrays`; other arrays are ignored, and those that do not fit are a ``ValueError``."""
        w_in = array(arrays, "w_in", None, None)
        w_code = array(arrays, "w_code", w_in.shape[1], None)
        return cls(
            w_in=w_in,
            b_in=array(arrays, "b_in", w_in.shape[1]),
            w_code=w_code,
            b_code=array(arrays, "b_code", w_code.shape[1]),
            losses=array(arrays, "losses", None),
        )


def default_batch_size(rows: int) -> int:
    """Return how many of that many distinct rows a step takes.

    Examples
    --------
    >>> default_batch_size(100), default_batch_size(80_000), default_batch_size(80_001), default_batch_size(10**6)
    (64, 5000, 5001, 8192)
    """
    # Rounded up: a last step of the rows that are left over would cost almost as much as the others.
    return min(max(math.ceil(rows / LEAST_STEPS), 64), _LARGEST_BATCH)


@dataclass(frozen=True)
class Schedule:
    """Which rows each step takes: batches are drawn once and visited in a new order each time.

    Parameters
    ----------
    batches : tuple of tensor of int
        The rows of each batch.
    epochs : tuple of tuple of int
        The batches of each epoch's steps.

    Examples
    --------
    >>> schedule = Schedule.draw(100, 64, epochs=2, generator=torch.Generator().manual_seed(0))
    >>> [len(batch) for batch in schedule.batches], schedule.steps, schedule.rows_an_epoch
    ([64, 36], 32, 800)
    """

    batches: tuple[torch.Tensor, ...]
    epochs: tuple[tuple[int, ...], ...]

    @classmethod
    def draw(cls, rows: int, batch_size: int, epochs: int, generator: torch.Generator) -> Schedule:
        """Shuffle rows into batches, and batches into the steps of each epoch."""
        batches = torch.randperm(rows, generator=generator).split(batch_size)
        # Merging may leave a handful of rows; an epoch still takes as many steps as a table of many rows would.
        passes = max(1, LEAST_STEPS // len(batches))

        def shuffled() -> list[int]:
            return [int(i) for _ in range(passes) for i in torch.randperm(len(batches), generator=generator)]

        return cls(batches, tuple(tuple(shuffled()) for _ in range(epochs)))

    @property
    def steps(self) -> int:
        """Steps of all epochs."""
        return sum(len(visits) for visits in self.epochs)

    @property
    def rows_an_epoch(self) -> int:
        """Rows that the steps of an epoch take, those of repeated passes counted again."""
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

    Batches are drawn once and visited in a new order each epoch, so that what a batch needs is prepared once.

    Parameters
    ----------
    tables : sequence of ndarray of shape (K_j, K_j)
        Similarities of each column's categories.
    places : ndarray of int of shape (n, J)
        The category of each row in each column.
    settings : AutoencoderSettings
        Widths, epochs, steps, seed.
    device : str or Place
        A torch device, or a place on one. If its memory does not hold a batch, the gradient of a step is added up over
        parts of the batch.
    progress : callable, optional
        Called with (epochs done, epochs in all).

    Examples
    --------
    >>> places = np.array([[0], [1], [2]] * 9)
    >>> trained = train_autoencoder([np.eye(3, dtype=np.float32)], places, AutoencoderSettings(1))
    >>> trained.w_in.shape, len(trained.losses)
    ((3, 64), 10)
    """
    first, counts = distinct_rows(places)
    rows, weight = places[first], torch.from_numpy((counts / counts.mean()).astype(np.float32))

    def attempt(place: Place) -> TrainedAutoencoder:
        return _train_at(place, tables, rows, weight, settings, progress)

    return on_device("autoencoder training", device, attempt)


def _train_at(
    place: Place,
    tables: Sequence[np.ndarray],
    rows: np.ndarray,
    weight: torch.Tensor,
    settings: AutoencoderSettings,
    progress: Callable[[int, int], None] | None,
) -> TrainedAutoencoder:
    """Train from the start on distinct rows, with batches cut as a place wants them."""
    generator = torch.Generator().manual_seed(settings.seed)
    model = FactorisedAutoencoder(
        [torch.from_numpy(table) for table in tables],
        latent=settings.latent,
        hidden=settings.hidden,
        generator=generator,
    ).to(place.device)
    weight = weight.to(place.device)
    size = settings.batch_size or default_batch_size(len(rows))
    joined = JoinedColumns.of(
        rows, model.sizes, most=max(size // _ROWS_PER_COMBINATION, _LEAST_COMBINATIONS), device=place.device
    )
    all_rows = torch.arange(len(rows), device=place.device)
    start_at_components(model, model.inputs(joined.batch(all_rows)), weight, generator)
    schedule = Schedule.draw(len(rows), size, settings.epochs, generator)
    batches = [
        [
            WeightedRows.of(model.inputs(joined.batch(part)), weight[part])
            for part in picked.split(place.part_of(len(picked)))
        ]
        for picked in (batch.to(place.device) for batch in schedule.batches)
    ]
    flat = FlatWeights(model)
    optimiser = AdamW(flat, least_spread=LEAST_SPREAD)
    losses = []
    for epoch, visits in enumerate(schedule.epochs):
        total = torch.zeros((), device=place.device)
        for parts in (batches[index] for index in visits):
            flat.gradients.zero_()
            total += _pull(model, parts)
            flat.gradients.mul_(_clip(flat.gradients))
            optimiser.step(step_length(settings.learning_rate, optimiser.taken, schedule.steps))
        losses.append(float(total) / schedule.rows_an_epoch)
        if progress is not None:
            progress(epoch + 1, settings.epochs)
    # Copied, because they are views into a vector that holds the decoder, too.
    encoder = {
        name: getattr(model, name).detach().cpu().numpy().copy() for name in ("w_in", "b_in", "w_code", "b_code")
    }
    return TrainedAutoencoder(**encoder, losses=np.asarray(losses))


def _pull(model: FactorisedAutoencoder, parts: Sequence[WeightedRows]) -> torch.Tensor:
    """Return the summed loss of a batch, and add the gradients of its mean to those of the weights, part by part."""
    batch_size = sum(len(part.weight) for part in parts)
    total = parts[0].weight.new_zeros(())
    for part in parts:
        loss = model.summed_loss(part)
        (loss / batch_size).backward()
        total += loss.detach()
    return total


def _clip(gradients: torch.Tensor) -> torch.Tensor:
    """Return the share of the gradients that keeps their norm in bounds."""
    return (CLIP_NORM / (torch.linalg.vector_norm(gradients) + 1e-6)).clamp(max=1.0)


def step_length(longest: float, taken: int, steps: int) -> float:
    """Return the length of the next step: it warms up over the first tenth and falls along a cosine.

    Examples
    --------
    >>> [round(step_length(1.0, taken, 20), 2) for taken in (0, 2, 10, 19)]
    [0.5, 0.98, 0.5, 0.01]
    """
    share = taken / steps
    return longest * min(1.0, 10 * (share + 1 / steps)) * 0.5 * (1 + math.cos(math.pi * share))
