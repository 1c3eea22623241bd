"""Gradient matching: the gradients that real and synthetic rows of a class give a network in training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn.functional import cosine_similarity, cross_entropy

from c2tc_pipeline.bench.rivals.matching import MatchingSampler, Task, require_at_least_one, require_positive
from c2tc_pipeline.bench.rivals.relay import NetworkBuilder, row_bytes, weight_bytes
from c2tc_pipeline.common.optimisers import FlatWeights, Sgd

# What is kept of a synthetic row to take a gradient of its gradient, against a plain pass.
_PASSES_KEPT = 2
# The relay, its gradients and their running mean in training, and the two gradients that are compared.
_SETS_OF_WEIGHTS = 5


class GradientMatching(MatchingSampler):
    """Learn rows that pull a network the way real ones do (Zhao, Mopuri and Bilen, ICLR 2021).

    A relay with fresh weights sees, class by class, a batch of real rows and all synthetic rows; the synthetic rows are
    moved so that the gradients of the two losses point the same way, layer by layer and output by output. Then the
    relay trains on the synthetic rows for some steps, and they are matched again; after ``matches_per_network`` steps
    of the rows another relay begins.

    Parameters
    ----------
    ratio : float, default=0.01
        Share of the rows that is kept; ignored when ``rows`` is given.
    rows : int, optional
        Synthetic rows in all.
    relay : {"mlp", "ft_transformer"} or callable, default="mlp"
        The network, with GELU in the place of ReLU. A callable is given the number of columns and of classes.
    steps : int, default=500
        Steps of the rows over all networks. The method's paper takes 1,000 networks with 1, 10 or 50 steps each for 1,
        10 or 50 rows a class.
    matches_per_network : int, default=10
        Steps of the rows for each network, as in the method's paper for 10 rows a class.
    inner_steps : int, default=10
        Steps in which the network trains on the synthetic rows between two steps of the rows; the method's paper takes
        1, 50 or 10 passes for 1, 10 or 50 rows a class.
    relay_learning_rate : float, default=0.1
        Length of those steps, by SGD with momentum 0.5; 0.01 in the method's paper, for networks with normalisation.
    learning_rate : float, default=0.01
        Length of the first step of the rows, in columns of range 1; shrinks to nothing along a cosine.
    batch_size : int, default=256
        Real rows a class and step, and synthetic rows in a step of the network at most, as in the method's paper.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where networks run.
    time_limit : float, optional
        Seconds after which OutOfTime is raised; the C2TC paper allows 24 hours.
    memory_limit : float, optional
        Bytes; OutOfMemory is raised before the start when the estimate is above.
    random_state : int, default=0
        The same seed gives the same rows.

    Attributes
    ----------
    losses_ : ndarray of shape (steps,)
        The distance of gradients before each step, summed over classes, layers and outputs.

    Notes
    -----
    Biases and other vectors are not matched, as in the authors' code. An output whose two gradients are both zero
    counts as matched. Left out: the image method's augmentation.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((60, 2))
    >>> gm = GradientMatching(rows=4, steps=20, device="cpu")
    >>> X_small, y_small = gm.fit_resample(X, np.arange(60) % 3)
    >>> X_small.shape, y_small.tolist()
    ((4, 2), [0, 0, 1, 2])
    """

    name = "GM"

    def __init__(
        self,
        ratio: float = 0.01,
        *,
        rows: int | None = None,
        relay: str | NetworkBuilder = "mlp",
        steps: int = 500,
        matches_per_network: int = 10,
        inner_steps: int = 10,
        relay_learning_rate: float = 0.1,
        learning_rate: float = 0.01,
        batch_size: int = 256,
        device: str = "auto",
        time_limit: float | None = None,
        memory_limit: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.ratio = ratio
        self.rows = rows
        self.relay = relay
        self.steps = steps
        self.matches_per_network = matches_per_network
        self.inner_steps = inner_steps
        self.relay_learning_rate = relay_learning_rate
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.device = device
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.random_state = random_state

    def start(self, task: Task) -> _GradientMatcher:
        """Return what matches gradients."""
        require_at_least_one(matches_per_network=self.matches_per_network, inner_steps=self.inner_steps)
        require_positive(relay_learning_rate=self.relay_learning_rate)
        return _GradientMatcher(task, self)

    def memory(self, task: Task) -> float:
        """Estimate: both gradients and the graph of the synthetic one, for the class that needs most."""
        relay = task.build()
        real = np.minimum(task.real.sizes, self.batch_size)
        a_row = row_bytes(relay, task.real.X.shape[1])
        graphs = (real + _PASSES_KEPT * task.counts).max() * a_row
        return float(_SETS_OF_WEIGHTS * weight_bytes(relay) + graphs)


def class_gradients(
    network: torch.nn.Module, rows: torch.Tensor, code: int, *, differentiable: bool = False
) -> tuple[torch.Tensor, ...]:
    """Return the gradient of the loss on rows of one class, for every weight matrix of a network.

    Examples
    --------
    >>> [gradient.shape for gradient in class_gradients(torch.nn.Linear(3, 2), torch.zeros(5, 3), 1)]
    [torch.Size([2, 3])]
    """
    matrices = [tensor for tensor in network.parameters() if tensor.requires_grad and tensor.ndim > 1]
    codes = torch.full((len(rows),), code, device=rows.device)
    gradients: tuple[torch.Tensor, ...] = torch.autograd.grad(
        cross_entropy(network(rows), codes), matrices, create_graph=differentiable
    )
    return gradients


def gradient_distance(real: Sequence[torch.Tensor], synthetic: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return one minus the cosine between two gradients, summed over the outputs of every layer.

    Parameters
    ----------
    real, synthetic : sequence of tensors of shape (outputs, ...)
        Gradients of the same weights.

    Examples
    --------
    >>> real = [torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])]
    >>> gradient_distance(real, [torch.tensor([[0.0, 3.0], [0.0, 1.0], [0.0, 0.0]])]).item()
    1.0
    """
    total = torch.zeros((), device=real[0].device, dtype=real[0].dtype)
    for wanted, made in zip(real, synthetic, strict=True):
        a, b = wanted.flatten(1), made.flatten(1)
        # Where a unit is dead for both there is nothing to match.
        alive = (a != 0).any(dim=1) | (b != 0).any(dim=1)
        total = total + ((1 - cosine_similarity(a, b, dim=1, eps=1e-12)) * alive).sum()
    return total


class _GradientMatcher:
    """Matches gradients under networks that train on the synthetic rows between steps."""

    extras = ()

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
