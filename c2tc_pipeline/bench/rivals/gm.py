"""Gradient matching (Zhao, Mopuri and Bilen, ICLR 2021): gradients of a network on real and on synthetic rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch
from torch.nn.functional import cosine_similarity, cross_entropy

from c2tc_pipeline.bench.rivals.matching import (
    MatchingSampler,
    Task,
    require_at_least_one,
    require_positive,
    row_bytes,
    weight_bytes,
)
from c2tc_pipeline.common.optimisers import FlatWeights, Sgd

# Activations kept of a synthetic row for a gradient of its gradient, against a plain pass.
_PASSES_KEPT = 2
# The relay, its gradients and their running mean in training, and the two gradients that are compared.
_SETS_OF_WEIGHTS = 5


@dataclass(eq=False, repr=False)
class GradientMatching(MatchingSampler):
    """Learn rows whose gradients of the loss point the same way as those of real rows, for each class.

    Between two steps of the rows the relay trains on the synthetic rows for ``inner_steps`` steps; after
    ``matches_per_network`` steps of the rows a fresh relay begins. The method's paper takes 1,000 networks with 1, 10
    or 50 steps each for 1, 10 or 50 rows per class, 1 to 50 passes of training in between, and a relay learning rate of
    0.01 for networks with normalisation. Biases and other vectors are not matched, as in the authors' code.
    """

    name = "GM"

    _: KW_ONLY
    matches_per_network: int = 10
    inner_steps: int = 10
    relay_learning_rate: float = 0.1

    def start(self, task: Task) -> _GradientMatcher:
        """Return the matcher of gradients."""
        require_at_least_one(matches_per_network=self.matches_per_network, inner_steps=self.inner_steps)
        require_positive(relay_learning_rate=self.relay_learning_rate)
        return _GradientMatcher(task, self)

    def memory(self, task: Task) -> float:
        """Estimate both gradients and the graph of the synthetic one, for the class that needs most."""
        relay = task.build()
        real = np.minimum(task.real.sizes, self.batch_size)
        graphs = (real + _PASSES_KEPT * task.counts).max() * row_bytes(relay, task.real.X.shape[1])
        return float(_SETS_OF_WEIGHTS * weight_bytes(relay) + graphs)


def class_gradients(
    network: torch.nn.Module, rows: torch.Tensor, code: int, *, differentiable: bool = False
) -> tuple[torch.Tensor, ...]:
    """Return the gradient of the loss on rows of one class, for every weight matrix of a network."""
    matrices = [tensor for tensor in network.parameters() if tensor.requires_grad and tensor.ndim > 1]
    codes = torch.full((len(rows),), code, device=rows.device)
    gradients: tuple[torch.Tensor, ...] = torch.autograd.grad(
        cross_entropy(network(rows), codes), matrices, create_graph=differentiable
    )
    return gradients


def gradient_distance(real: Sequence[torch.Tensor], synthetic: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return one minus the cosine between two gradients, summed over the outputs of every layer."""
    total = torch.zeros((), device=real[0].device, dtype=real[0].dtype)
    for wanted, made in zip(real, synthetic, strict=True):
        a, b = wanted.flatten(1), made.flatten(1)
        # A unit that is dead for both counts as matched.
        alive = (a != 0).any(dim=1) | (b != 0).any(dim=1)
        total = total + ((1 - cosine_similarity(a, b, dim=1, eps=1e-12)) * alive).sum()
    return total


class _GradientMatcher:
    """Matches gradients under networks that train on the synthetic rows between steps."""

    extras: Sequence[torch.nn.Parameter] = ()

    def __init__(self, task: Task, settings: GradientMatching) -> None:
        self.task = task
        self.settings = settings
        self.taken = 0

    def backward(self, rows: torch.Tensor) -> float:
        if self.taken % self.settings.matches_per_network == 0:
            self.network = self.task.build()
            self.weights = FlatWeights(self.network)
            self.optimiser = Sgd(self.weights, momentum=0.5, weight_decay=0.0)
        else:
            self._train(rows.detach())
        self.taken += 1
        return sum(self._match(code, rows) for code in range(len(self.task.counts)))

    def _match(self, code: int, rows: torch.Tensor) -> float:
        task = self.task
        synthetic = rows.split(task.counts.tolist())[code]
        batch = task.real.take(task.real.draw(task.rng, code, self.settings.batch_size))
        wanted = class_gradients(self.network, batch, code)
        loss = gradient_distance(wanted, class_gradients(self.network, synthetic, code, differentiable=True))
        # The network's own gradients are left alone: they belong to its training.
        torch.autograd.backward(loss, inputs=[rows])
        return loss.item()

    def _train(self, rows: torch.Tensor) -> None:
        codes = self.task.codes
        for _ in range(self.settings.inner_steps):
            size = min(len(rows), self.settings.batch_size)
            chosen = torch.from_numpy(self.task.rng.choice(len(rows), size, replace=False)).to(rows.device)
            self.weights.gradients.zero_()
            cross_entropy(self.network(rows[chosen]), codes[chosen]).backward()
            self.optimiser.step(self.settings.relay_learning_rate)
