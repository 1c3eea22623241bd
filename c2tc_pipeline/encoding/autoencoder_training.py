"""Training of the factorised autoencoder, and what is kept of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
import torch

from c2tc_pipeline.encoding.autoencoder import FactorisedAutoencoder
from c2tc_pipeline.encoding.autoencoder_start import start_at_components

# Steps an epoch takes at least, and the largest batch it takes them with.
_LEAST_STEPS = 16
_LARGEST_BATCH = 8_192
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
        """Rebuild from :meth:`to_arrays`; other arrays are ignored."""
        return cls(**{name: arrays[name] for name in cls.__dataclass_fields__})


def default_batch_size(rows: int) -> int:
    """Return how many of that many distinct rows a step takes.

    Examples
    --------
    >>> default_batch_size(100), default_batch_size(80_000), default_batch_size(10**6)
    (64, 5000, 8192)
    """
    return min(max(rows // _LEAST_STEPS, 64), _LARGEST_BATCH)


def train_autoencoder(
    tables: Sequence[np.ndarray],
    places: np.ndarray,
    settings: AutoencoderSettings,
    *,
    device: str = "cpu",
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
    start_at_components(model, model.batch(rows), weight, generator)
    size = settings.batch_size or default_batch_size(len(rows))
    batches = [
        (batch, model.powers(batch), weight[picked])
        for picked in torch.randperm(len(rows), generator=generator).to(device).split(size)
        for batch in [model.batch(rows[picked])]
    ]
    # Merging may leave a handful of rows; an epoch still takes as many steps as a table of many rows would.
    passes = max(1, _LEAST_STEPS // len(batches))
    optimiser = _Adam(model, settings.learning_rate, steps=settings.epochs * passes * len(batches))
    losses = []
    for epoch in range(settings.epochs):
        total = torch.zeros((), device=device)
        orders = [torch.randperm(len(batches), generator=generator).tolist() for _ in range(passes)]
        for batch, powers, batch_weight in (batches[index] for order in orders for index in order):
            loss = (model.batch_loss(batch, powers) * batch_weight).sum()
            optimiser.step(loss / len(batch_weight))
            total += loss.detach()
        losses.append(float(total) / (passes * len(rows)))
        if progress is not None:
            progress(epoch + 1, settings.epochs)
    weights = {name: getattr(model, name).detach().cpu().numpy() for name in ("w_in", "b_in", "w_code", "b_code")}
    return TrainedAutoencoder(**weights, losses=np.asarray(losses))


class _Adam:
    """Adam with clipped gradients and a step length that warms up and falls along a cosine.

    The same arithmetic as ``torch.optim.Adam``, whose first call loads torch's compiler: seconds that training on a
    small table does not take itself.
    """

    def __init__(self, model: torch.nn.Module, learning_rate: float, steps: int) -> None:
        self.parameters = list(model.parameters())
        self.means = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.squares = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.learning_rate = learning_rate
        self.steps = steps
        self.taken = 0

    def step(self, loss: torch.Tensor) -> None:
        """Move the parameters against the gradient of ``loss``."""
        gradients = torch.autograd.grad(loss, self.parameters)
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients]))
        clip = (_CLIP_NORM / (norm + 1e-6)).clamp(max=1.0)
        share = self.taken / self.steps
        rate = self.learning_rate * min(1.0, 10 * (share + 1 / self.steps)) * 0.5 * (1 + math.cos(math.pi * share))
        self.taken += 1
        with torch.no_grad():
            for parameter, gradient, mean, square in zip(
                self.parameters, gradients, self.means, self.squares, strict=True
            ):
                gradient = gradient * clip
                mean.lerp_(gradient, 0.1)
                square.lerp_(gradient**2, 0.001)
                spread = (square / (1 - 0.999**self.taken)).sqrt_().add_(1e-8)
                parameter.addcdiv_(mean, spread, value=-rate / (1 - 0.9**self.taken))
