"""Two ways to step along a gradient, over all weights of a network as one vector.

What belongs here: the steps of every network, the encoder's and the models'. What does not: how long a step is and what
its gradient is made of, which every trainer decides itself. The arithmetic is that of ``torch.optim.SGD`` and
``torch.optim.AdamW``. Theirs loads torch's compiler on first use, which takes longer than training on a condensed table
does, and visits the weights tensor by tensor.
"""

from __future__ import annotations

from typing import Protocol

import torch


class Optimiser(Protocol):
    """Something that moves weights."""

    def step(self, rate: float) -> None:
        """Move the weights against their gradient, by a step of that length."""


class FlatWeights:
    """All trainable weights of a network as one vector, and their gradients as another.

    The network's own tensors become views into the two vectors, so that training the one moves the other.

    Parameters
    ----------
    network : torch.nn.Module
        The network, already on its device.

    Examples
    --------
    >>> network = torch.nn.Linear(2, 1)
    >>> weights = FlatWeights(network)
    >>> _ = weights.values.fill_(0.5)
    >>> network.bias.tolist(), len(weights.values)
    ([0.5], 3)
    """

    def __init__(self, network: torch.nn.Module) -> None:
        tensors = [tensor for tensor in network.parameters() if tensor.requires_grad]
        self.values = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        self.gradients = torch.zeros_like(self.values)
        place = 0
        for tensor in tensors:
            here = slice(place, place + tensor.numel())
            tensor.data = self.values[here].view_as(tensor)
            tensor.grad = self.gradients[here].view_as(tensor)
            place = here.stop


class Sgd:
    """Stochastic gradient descent with momentum; weight decay is part of the gradient.

    Examples
    --------
    >>> weights = FlatWeights(torch.nn.Linear(1, 1))
    >>> _ = weights.values.fill_(1.0), weights.gradients.fill_(2.0)
    >>> Sgd(weights, momentum=0.9, weight_decay=0.0).step(0.25)
    >>> weights.values.tolist()
    [0.5, 0.5]
    """

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
    """Adam with weight decay apart from the gradient; without decay it is plain Adam.

    Parameters
    ----------
    weights : FlatWeights
        What is moved.
    weight_decay : float
        The share of the weights that a step of length 1 takes away.
    least_spread : float
        Added to the spread of a gradient, by which steps are divided: gradients far below it make small steps.

    Examples
    --------
    >>> weights = FlatWeights(torch.nn.Linear(1, 1))
    >>> _ = weights.values.fill_(1.0), weights.gradients.fill_(2.0)
    >>> AdamW(weights).step(0.25)
    >>> weights.values.tolist()
    [0.75, 0.75]
    """

    mean_decay = 0.9
    square_decay = 0.999

    def __init__(self, weights: FlatWeights, *, weight_decay: float = 0.0, least_spread: float = 1e-8) -> None:
        self.weights = weights
        self.weight_decay = weight_decay
        self.least_spread = least_spread
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
        spread = (self.square / (1 - self.square_decay**self.taken)).sqrt_().add_(self.least_spread)
        values.addcdiv_(self.mean, spread, value=-rate / (1 - self.mean_decay**self.taken))
