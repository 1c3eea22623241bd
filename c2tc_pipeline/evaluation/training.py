"""Training of every network by named recipes.

A network is a torch module from rows to one number per class; it may implement the protocols below. The recipes are the
same for every training set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch

from c2tc_pipeline.common.devices import Place, on_device
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.optimisers import AdamW, FlatWeights, Optimiser, Sgd


@runtime_checkable
class SeesTrainingRows(Protocol):
    """A network that takes all training rows once, before the first step, on its own device."""

    def see(self, rows: torch.Tensor, classes: torch.Tensor, weights: torch.Tensor) -> None:
        """Receive rows (n, d), their class codes (n,) and weights (n,)."""


@runtime_checkable
class HasOwnLoss(Protocol):
    """A network whose loss in training is not the cross-entropy of its output."""

    def row_losses(self, rows: torch.Tensor, classes: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """Return one loss for each row of a batch; ``numbers`` are the rows' places among all training rows."""


@runtime_checkable
class HasMinBatch(Protocol):
    """A network with a minimum batch size, as batch normalisation needs."""

    min_batch: int


def row_losses(
    network: torch.nn.Module, rows: torch.Tensor, classes: torch.Tensor, numbers: torch.Tensor
) -> torch.Tensor:
    """Return one loss for each row of a batch: the network's own, or else the cross-entropy of its output."""
    if isinstance(network, HasOwnLoss):
        return network.row_losses(rows, classes, numbers)
    return torch.nn.functional.cross_entropy(network(rows), classes, reduction="none")


def min_batch(network: torch.nn.Module) -> int:
    """Return the minimum number of rows of a batch of the network."""
    return network.min_batch if isinstance(network, HasMinBatch) else 1


@dataclass(frozen=True)
class Recipe:
    """Hyperparameters of training: optimiser, learning rate, epochs, batch size and bounds on steps."""

    optimiser: str
    learning_rate: float
    weight_decay: float
    epochs: int
    batch_size: int
    least_steps: int = 0
    most_steps: int | None = None
    cosine: bool = False
    largest_batch: int | None = None
    noise: float = 0.0

    def batch(self, rows: int) -> int:
        """Return the batch size for a table of ``rows`` rows."""
        if self.largest_batch is None:
            return self.batch_size
        return min(max(self.batch_size, rows // 100), self.largest_batch)

    def noise_of(self, rows: int) -> float:
        """Return the standard deviation of the noise."""
        return self.noise * min(1.0, math.sqrt(1_000 / rows))

    def epoch(self, rows: int) -> int:
        """Return the steps of one epoch."""
        return math.ceil(rows / self.batch(rows))

    def steps(self, rows: int) -> int:
        """Return the steps of the whole training."""
        steps = max(self.epochs * self.epoch(rows), self.least_steps)
        return steps if self.most_steps is None else min(steps, self.most_steps)

    def rate(self, taken: int, rows: int) -> float:
        """Return the learning rate after ``taken`` steps."""
        longest = self.learning_rate * math.sqrt(self.batch(rows) / self.batch_size)
        if not self.cosine:
            return longest
        steps = self.steps(rows)
        warm_up = max(1, steps // 20)
        return longest * min(1.0, (taken + 1) / warm_up) * 0.5 * (1 + math.cos(math.pi * taken / steps))

    def start(self, weights: FlatWeights) -> Optimiser:
        """Return an optimiser at the beginning of training."""
        if self.optimiser == "sgd":
            return Sgd(weights, momentum=0.9, weight_decay=self.weight_decay)
        return AdamW(weights, weight_decay=self.weight_decay)


_BOUNDS: dict[str, Any] = {"least_steps": 400, "most_steps": 8_000, "largest_batch": 512}
RECIPES = {
    "default": Recipe("adamw", 1e-3, 1e-2, epochs=60, batch_size=64, cosine=True, noise=0.12, **_BOUNDS),
    "paper": Recipe("sgd", 1e-3, 5e-4, epochs=100, batch_size=2048),
}
"""Named recipes, the same for every training set.

``paper`` is the one that the paper's authors published; it hardly moves a network on few rows. ``default`` was chosen
on validation rows, for condensed, random and all rows alike (docs/method.md says what was measured); its bounds on
steps make it learn on three rows and end on millions.
"""


def recipe_named(recipe: str | Recipe) -> Recipe:
    """Return a recipe by its name; one of your own is returned as it is."""
    if isinstance(recipe, Recipe):
        return recipe
    if recipe not in RECIPES:
        raise InputError(f"Recipe {recipe!r} is unknown; choose one of: {', '.join(RECIPES)}.")
    return RECIPES[recipe]


def train(
    build: Callable[[], torch.nn.Module],
    rows: torch.Tensor,
    classes: torch.Tensor,
    weights: torch.Tensor,
    *,
    recipe: Recipe,
    seed: int,
    device: str = "cpu",
) -> torch.nn.Module:
    """Build a network and train it as a classifier.

    The loss of a batch is the sum of weight times cross-entropy over its rows, divided by their number, with weights
    that are 1 on average over all rows. When all rows fit into one batch, a weight of two is a row given twice. A
    network may have a loss of its own (:class:`HasOwnLoss`).

    ``build`` returns the network; its start, the batches and everything random in it follow the seed. If a device's
    memory does not hold a batch, the gradient of a step is summed over parts of the batch, which gives the same result
    as long as the network treats each row by itself and draws nothing random. The trained network is returned in
    evaluation mode, on the device where its training fitted.
    """
    weights = weights / weights.mean()

    def attempt(place: Place) -> torch.nn.Module:
        # Every attempt starts over from the seed, so that no weights of an attempt that failed get into the next.
        with torch.random.fork_rng(devices=[place.device] if place.device.startswith("cuda") else []):
            torch.manual_seed(seed)
            network = build().to(place.device).train()
            x, y, w = (tensor.to(place.device) for tensor in (rows, classes, weights))
            if isinstance(network, SeesTrainingRows):
                network.see(x, y, w)
            flat = FlatWeights(network)
            optimiser = recipe.start(flat)
            steps, least = recipe.steps(len(x)), min_batch(network)
            noise = recipe.noise_of(len(x))
            for taken, batch in enumerate(_batches(len(x), recipe.batch(len(x)), steps, least)):
                flat.gradients.zero_()
                seen = x[batch]
                if noise:
                    # Drawn for the whole batch, so that its parts see what the whole would.
                    seen = seen + noise * torch.randn(seen.shape).to(place.device)
                size = place.part_of(len(batch))
                for rows_seen, part in zip(_split(seen, size, least), _split(batch, size, least), strict=True):
                    losses = row_losses(network, rows_seen, y[part], part)
                    (losses @ w[part] / len(batch)).backward()
                optimiser.step(recipe.rate(taken, len(x)))
        return network.eval()

    return on_device("network training", device, attempt)


def _batches(rows: int, size: int, steps: int, least: int = 1) -> Iterator[torch.Tensor]:
    """Yield batches of row numbers, epoch by epoch in random order."""
    taken = 0
    while taken < steps:
        for batch in _split(torch.randperm(rows), size, least)[: steps - taken]:
            yield batch
            taken += 1


def _split(numbers: torch.Tensor, size: int, least: int) -> list[torch.Tensor]:
    """Cut row numbers into parts of that size; a last part of fewer than ``least`` rows joins the one before it."""
    parts = list(numbers.split(max(size, least)))
    if len(parts) > 1 and len(parts[-1]) < least:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts
