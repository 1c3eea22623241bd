"""The autoencoder as an ordinary network on the dense N x D matrix of similarities.

The reference of the factorised one: it begins at the same weights and takes the same steps on the same batches of the
same distinct rows, so that it ends at the same loss but for rounding; only the cost of a step differs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from c2tc_pipeline.common.optimisers import AdamW, FlatWeights
from c2tc_pipeline.encoding.autoencoder import (
    ADAM_EPS,
    CLIP_NORM,
    AutoencoderSettings,
    FactorisedAutoencoder,
    Schedule,
    distinct_rows,
    start_at_components,
    step_length,
)


class DenseAutoencoder(torch.nn.Module):
    """The layers of the factorised autoencoder over the whole width of the matrix.

    Parameters
    ----------
    width, latent, hidden : int
        Columns of the matrix, width of the code, width of the hidden layers.

    Examples
    --------
    >>> DenseAutoencoder(5, latent=1, hidden=3).loss(torch.ones(2, 5)).shape
    torch.Size([2])
    """

    def __init__(self, width: int, *, latent: int, hidden: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(width, hidden),
            torch.nn.ReLU(),
            torch.nn.Linear(hidden, latent),
            torch.nn.Linear(latent, hidden),
            torch.nn.ReLU(),
            torch.nn.Linear(hidden, width),
        )

    @classmethod
    @torch.no_grad()
    def like(cls, model: FactorisedAutoencoder) -> DenseAutoencoder:
        """Return a dense network with the weights of a factorised one."""
        made = cls(model.width, latent=model.w_code.shape[1], hidden=model.w_in.shape[1])
        encoding = [model.w_in.T, model.b_in, model.w_code.T, model.b_code]
        decoding = [model.w_back.T, model.b_back, model.w_out, model.b_out]
        for own, given in zip(made.parameters(), encoding + decoding, strict=True):
            own.copy_(given)
        return made

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        """Return the squared reconstruction error of each row."""
        return ((self.layers(x) - x) ** 2).sum(dim=1)


@dataclass(frozen=True)
class DenseTraining:
    """How the dense training went.

    Parameters
    ----------
    losses : tuple of float
        Mean reconstruction error of each epoch that was done.
    finished : bool
        Whether all of them were.
    """

    losses: tuple[float, ...]
    finished: bool


def dense_matrix(tables: Sequence[np.ndarray], places: np.ndarray) -> torch.Tensor:
    """Return the similarities of all rows side by side.

    Examples
    --------
    >>> dense_matrix([np.eye(2, dtype=np.float32)], np.array([[1], [0]])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return torch.from_numpy(np.hstack([table[column] for table, column in zip(tables, places.T, strict=True)]))


@dataclass(frozen=True)
class DenseTask:
    """What the factorised autoencoder is given, for the dense one.

    Parameters
    ----------
    start : DenseAutoencoder
        The weights from which the factorised one is trained.
    rows : tensor of shape (n, width)
        The distinct rows.
    weight : tensor of shape (n,)
        How much each counts.
    schedule : Schedule
        The rows of every step.
    """

    start: DenseAutoencoder
    rows: torch.Tensor
    weight: torch.Tensor
    schedule: Schedule


def same_task(tables: Sequence[np.ndarray], places: np.ndarray, settings: AutoencoderSettings) -> DenseTask:
    """Return the start, the rows and the steps of the factorised autoencoder's training."""
    first, counts = distinct_rows(places)
    generator = torch.Generator().manual_seed(settings.seed)
    model = FactorisedAutoencoder(tables, latent=settings.latent, hidden=settings.hidden, generator=generator)
    weight = counts / counts.mean()
    schedule = Schedule.draw(len(first), settings, generator)
    rows = places[first]
    start_at_components(model, [model.batch(rows[batch], weight[batch]) for batch in schedule.batches], generator)
    return DenseTask(
        DenseAutoencoder.like(model), dense_matrix(tables, rows), torch.from_numpy(weight.astype(np.float32)), schedule
    )


def train_dense(
    task: DenseTask,
    settings: AutoencoderSettings,
    *,
    time_limit: float = float("inf"),
    clock: Callable[[], float] = time.perf_counter,
) -> DenseTraining:
    """Train with Adam, steps that warm up and fall along a cosine, and bounded gradients, as the factorised one is.

    Parameters
    ----------
    task : DenseTask
        Where to begin and what to do; its start is changed in place.
    settings : AutoencoderSettings
        The learning rate.
    time_limit : float
        Seconds after which no other epoch begins.
    clock : callable
        Returns seconds.
    """
    end = clock() + time_limit
    flat = FlatWeights(task.start)
    optimiser = AdamW(flat, eps=ADAM_EPS)
    losses: list[float] = []
    for visits in task.schedule.epochs:
        if clock() > end:
            return DenseTraining(tuple(losses), finished=False)
        total = 0.0
        for batch in (task.schedule.batches[index] for index in visits):
            flat.gradients.zero_()
            loss = (task.start.loss(task.rows[batch]) * task.weight[batch]).mean()
            loss.backward()
            norm = torch.linalg.vector_norm(flat.gradients)
            flat.gradients.mul_((CLIP_NORM / (norm + 1e-6)).clamp(max=1.0))
            optimiser.step(step_length(settings.learning_rate, optimiser.taken, task.schedule.steps))
            total += float(loss.detach()) * len(batch)
        losses.append(total / task.schedule.rows_per_epoch)
    return DenseTraining(tuple(losses), finished=True)
