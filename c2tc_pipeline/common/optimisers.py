"""SGD and AdamW over all weights of a network as one vector, and the single thread that networks are trained on.

The arithmetic is that of ``torch.optim.SGD`` and ``torch.optim.AdamW``. Making one of those imports torch's compiler,
2.1 CPU seconds in every process, which is longer than all of a training on a condensed table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch, scikit-learn and BLAS to one thread.

    Training steps are too short for several threads: two runs side by side on two cores took eighteen times as long
    with two threads each. One thread also adds up in the same order on machines with any number of cores.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


class Optimiser(Protocol):
    """Protocol of optimisers."""

    def step(self, rate: float) -> None:
        """Move the weights against their gradient, by a step of that length."""


class FlatWeights:
    """All trainable weights of a network as one vector, and their gradients as another.

    The network's own tensors become views into the two vectors, so that training the one moves the other.
    """

    def __init__(self, network: torch.nn.Module) -> None:
        tensors = [tensor for tensor in network.parameters() if tensor.requires_grad]
        self.values = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        self.gradients = torch.zeros_like(self.values)
        sizes = [tensor.numel() for tensor in tensors]
        for tensor, value, gradient in zip(tensors, self.values.split(sizes), self.gradients.split(sizes), strict=True):
            tensor.data = value.view_as(tensor)
            tensor.grad = gradient.view_as(tensor)


class Sgd:
    """Stochastic gradient descent with momentum; weight decay is part of the gradient."""

    def __init__(self, weights: FlatWeights, *, momentum: float, weight_decay: float) -> None:
        self.weights = weights
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.velocity = torch.zeros_like(weights.values)

    def step(self, rate: float) -> None:
        """Move the weights against their gradient, by a step of that length."""
        values, gradients = self.weights.values, self.weights.gradients
        self.velocity.mul_(self.momentum).add_(gradients).add_(values, alpha=self.weight_decay)
        values.add_(self.velocity, alpha=-rate)


class AdamW:
    """Adam with decoupled weight decay; without decay it is plain Adam."""

    mean_decay = 0.9
    square_decay = 0.999

    def __init__(self, weights: FlatWeights, *, weight_decay: float = 0.0, eps: float = 1e-8) -> None:
        self.weights = weights
        self.weight_decay = weight_decay
        self.eps = eps
        self.mean = torch.zeros_like(weights.values)
        self.square = torch.zeros_like(weights.values)
        self.taken = 0

    def step(self, rate: float) -> None:
        """Move the weights against their gradient, by a step of that length."""
        values, gradients = self.weights.values, self.weights.gradients
        self.taken += 1
        values.mul_(1 - rate * self.weight_decay)
        self.mean.lerp_(gradients, 1 - self.mean_decay)
        self.square.lerp_(gradients**2, 1 - self.square_decay)
        spread = (self.square / (1 - self.square_decay**self.taken)).sqrt_().add_(self.eps)
        values.addcdiv_(self.mean, spread, value=-rate / (1 - self.mean_decay**self.taken))
