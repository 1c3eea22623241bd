"""One trainer for every network, with named recipes.

What belongs here: how a network is trained. What does not: what the network looks like (:mod:`.models`) and what it is
trained on (:mod:`.scores`). The recipes are the same for every training set, so that no method has one of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from c2tc_pipeline.common.devices import Place, on_device
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.optimisers import AdamW, FlatWeights, Optimiser, Sgd
from c2tc_pipeline.evaluation.early_stopping import BestWeights, ValidationRows
from c2tc_pipeline.evaluation.hooks import SeesTrainingRows, least_batch, row_losses


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    Parameters
    ----------
    optimiser : {"sgd", "adamw"}
        Which way to step; ``"sgd"`` has a momentum of 0.9.
    learning_rate : float
        Length of a step, or of the longest one.
    weight_decay : float
        Pull of the weights towards zero.
    epochs : int
        Passes over the rows.
    batch_size : int
        Rows per step at most, as long as there are few.
    largest_batch : int or None
        Rows per step of large tables: a hundredth of the rows, between ``batch_size`` and this; steps then grow with
        the square root of the batch. None keeps to ``batch_size``.
    least_steps : int
        Steps taken even when the epochs have fewer.
    most_steps : int or None
        Steps after which training ends even when the epochs have more.
    cosine : bool
        Whether steps warm up over the first twentieth and then shrink to nothing along a cosine.
    noise : float
        Standard deviation of what is added to every number of a row, drawn anew at every step; less where there are
        more than 1,000 rows, with their square root. It makes few rows speak for their surroundings.
    patience : int or None
        After how many looks at the validation rows that found nothing better training ends; None trains to the end. It
        plays no part where there are no validation rows.

    Examples
    --------
    >>> recipe = Recipe("sgd", 0.1, 0.0, epochs=10, batch_size=100, least_steps=50, most_steps=1000)
    >>> recipe.steps(3), recipe.steps(1_050), recipe.steps(10**6)
    (50, 110, 1000)
    >>> growing = Recipe("adamw", 0.001, 0.0, epochs=1, batch_size=64, largest_batch=512, noise=0.1)
    >>> growing.batch(1_000), growing.batch(20_000), growing.batch(10**6), growing.noise_of(4_000)
    (64, 200, 512, 0.05)
    """

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
    patience: int | None = None

    def batch(self, rows: int) -> int:
        """Return how many of that many rows go into a step."""
        if self.largest_batch is None:
            return self.batch_size
        return min(max(self.batch_size, rows // 100), self.largest_batch)

    def noise_of(self, rows: int) -> float:
        """Return the standard deviation of the noise for that many rows."""
        return self.noise * min(1.0, math.sqrt(1_000 / rows))

    def epoch(self, rows: int) -> int:
        """Return how many steps pass over that many rows once."""
        return math.ceil(rows / self.batch(rows))

    def steps(self, rows: int) -> int:
        """Return how many steps are taken on that many rows."""
        steps = max(self.epochs * self.epoch(rows), self.least_steps)
        return steps if self.most_steps is None else min(steps, self.most_steps)

    def rate(self, taken: int, rows: int) -> float:
        """Return the length of the next step on that many rows, after so many were taken."""
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


RECIPES = {
    "default": Recipe(
        "adamw",
        1e-3,
        1e-2,
        epochs=60,
        batch_size=64,
        least_steps=400,
        most_steps=8_000,
        cosine=True,
        largest_batch=512,
        noise=0.12,
    ),
    "paper": Recipe("sgd", 1e-3, 5e-4, epochs=100, batch_size=2048),
}
"""Named recipes, the same for every training set.

``paper`` is the one that the paper's authors published; it hardly moves a network on few rows. ``default`` was chosen
on validation rows, for condensed, random and all rows alike (docs/method.md says what was measured); its bounds on
steps make it learn on three rows and end on millions.
"""


def recipe_named(recipe: str | Recipe) -> Recipe:
    """Return a recipe by its name; one of your own is returned as it is.

    Examples
    --------
    >>> recipe_named("paper").learning_rate
    0.001
    """
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
    validation: ValidationRows | None = None,
) -> torch.nn.Module:
    """Build a network and train it to tell classes apart.

    The loss of a batch is the sum of weight times cross-entropy over its rows, divided by their number, with weights
    that are 1 on average over all rows. When all rows fit into one batch, a weight of two is a row given twice. A
    network may have a loss of its own, and more to say (:mod:`c2tc_pipeline.evaluation.hooks`).

    Parameters
    ----------
    build : callable
        Returns the network, from rows to one number a class; its start and everything random in it follow the seed.
    rows : tensor of float32 of shape (n, d)
        Training rows.
    classes : tensor of int64 of shape (n,)
        Their class numbers, from 0.
    weights : tensor of float32 of shape (n,)
        How much each row counts; not negative, not all zero.
    recipe : Recipe
        How to train.
    seed : int
        Determines the start and the batches.
    device : str
        A torch device. If its memory does not hold a batch, the gradient of a step is added up over parts of the batch,
        which comes to the same as long as the network looks at each row by itself and draws nothing by lot.
    validation : ValidationRows, optional
        Other rows: the weights that did best on them are kept, and with the recipe's patience training may end early.

    Returns
    -------
    torch.nn.Module
        The trained network, in evaluation mode, on the device where its training fitted.

    Examples
    --------
    >>> rows, classes = torch.tensor([[0.0], [1.0]]), torch.tensor([0, 1])
    >>> network = train(
    ...     lambda: torch.nn.Linear(1, 2), rows, classes, torch.ones(2), recipe=RECIPES["default"], seed=0
    ... )
    >>> network(rows).argmax(dim=1).tolist()
    [0, 1]
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
            steps, least = recipe.steps(len(x)), least_batch(network)
            best = None
            if validation is not None:
                epoch = recipe.epoch(len(x))
                best = BestWeights(validation, patience=recipe.patience, epoch=epoch, steps=steps, place=place)
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
                if best is not None and best.is_enough(network, taken + 1):
                    break
        if best is not None:
            best.restore(network)
        return network.eval()

    return on_device("network training", device, attempt)


def _batches(rows: int, size: int, steps: int, least: int = 1) -> Iterator[torch.Tensor]:
    """Yield row numbers, every row once before any comes again."""
    taken = 0
    while taken < steps:
        for batch in _split(torch.randperm(rows), size, least)[: steps - taken]:
            yield batch
            taken += 1


def _split(numbers: torch.Tensor, size: int, least: int) -> list[torch.Tensor]:
    """Cut row numbers into parts of that size; a last part of fewer than ``least`` rows joins the one before it.

    Examples
    --------
    >>> [len(part) for part in _split(torch.arange(9), 4, 2)]
    [4, 5]
    """
    parts = list(numbers.split(max(size, least)))
    if len(parts) > 1 and len(parts[-1]) < least:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts
