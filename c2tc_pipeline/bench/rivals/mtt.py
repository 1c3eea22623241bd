"""Trajectory matching (MTT; Cazenavette et al., CVPR 2022): training trajectories on real and on synthetic rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from c2tc_pipeline.bench.rivals import CondensedRows
from c2tc_pipeline.bench.rivals.matching import (
    MatchingSampler,
    Task,
    require_at_least_one,
    require_positive,
    row_bytes,
    weight_bytes,
)
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.optimisers import FlatWeights, Sgd

# What each unrolled step keeps, against one set of weights and against a plain pass of its rows.
_WEIGHTS_A_STEP = 2
_PASSES_A_STEP = 2
# Initial learning rates of a student; longer steps throw an FT-Transformer far off its expert's trajectory.
_STUDENT_RATE = 0.1
_STUDENT_RATES = {"ft_transformer": 0.02}


@dataclass(eq=False, repr=False)
class TrajectoryMatching(MatchingSampler):
    """Learn rows on which a student network follows the trajectory of experts trained on the whole table.

    A student starts from an expert's weights at a random epoch up to ``last_start``, takes ``student_steps`` steps on
    the synthetic rows, and the rows are moved so that it arrives where the expert was ``ahead`` epochs later. The loss
    is the squared distance between the two, divided by the squared distance that the expert covered. The student's
    learning rate is learnt along with the rows.

    An epoch ends after ``epoch_steps`` steps, so that experts cost no more on a larger table, and the next one goes on
    with other rows; None is whole epochs. The method's paper takes 5,000 steps, 200 experts of 50 whole epochs, starts
    up to epoch 20 or so, and 20 to 50 student steps. Experts' weights stay in memory, and their time counts.

    Fitted attributes: ``expert_losses_`` of shape (experts, epochs) and ``student_learning_rate_``.
    """

    name = "MTT"

    _: KW_ONLY
    experts: int = 5
    epochs: int = 12
    epoch_steps: int | None = 100
    expert_learning_rate: float = 0.02
    last_start: int = 10
    ahead: int = 2
    student_steps: int = 10
    student_learning_rate: float | None = None

    @property
    def initial_student_rate(self) -> float:
        """The student's learning rate before it is learnt."""
        if self.student_learning_rate is not None:
            return self.student_learning_rate
        return _STUDENT_RATES.get(self.relay, _STUDENT_RATE) if isinstance(self.relay, str) else _STUDENT_RATE

    def condense(self, X: np.ndarray, edges: np.ndarray, budget: int) -> CondensedRows:
        require_at_least_one(
            experts=self.experts,
            epochs=self.epochs,
            ahead=self.ahead,
            student_steps=self.student_steps,
            epoch_steps=1 if self.epoch_steps is None else self.epoch_steps,
        )
        require_positive(
            expert_learning_rate=self.expert_learning_rate, student_learning_rate=self.initial_student_rate
        )
        if not 0 <= self.last_start <= self.epochs - self.ahead:
            raise InputError(
                f"Setting last_start is {self.last_start}; it must be from 0 to epochs - ahead, which is "
                f"{self.epochs - self.ahead}."
            )
        return super().condense(X, edges, budget)

    def start(self, task: Task) -> _TrajectoryMatcher:
        """Train the experts, and return the matcher of their trajectories."""
        trained = [
            train_expert(
                task,
                epochs=self.epochs,
                epoch_steps=self.epoch_steps,
                learning_rate=self.expert_learning_rate,
                batch_size=self.batch_size,
                name=f"expert {number + 1} of {self.experts}",
            )
            for number in range(self.experts)
        ]
        self.expert_losses_ = np.array([losses for _, losses in trained])
        return _TrajectoryMatcher(task, self, [weights for weights, _ in trained])

    def memory(self, task: Task) -> float:
        """Estimate the experts' weights after every epoch, and the graph of a student's steps."""
        relay = task.build()
        weights, a_row = weight_bytes(relay), row_bytes(relay, task.real.X.shape[1])
        rows = min(int(task.counts.sum()), self.batch_size)
        a_step = _WEIGHTS_A_STEP * weights + _PASSES_A_STEP * rows * a_row
        return float(self.experts * (self.epochs + 1) * weights + self.student_steps * a_step)


def train_expert(
    task: Task, *, epochs: int, epoch_steps: int | None, learning_rate: float, batch_size: int, name: str = "expert"
) -> tuple[list[torch.Tensor], list[float]]:
    """Train a fresh relay on real rows by plain SGD.

    Returns all weights as one vector, at the start and after every epoch, and the mean loss of each epoch.
    """
    network = task.build()
    flat = FlatWeights(network)
    optimiser = Sgd(flat, momentum=0.0, weight_decay=0.0)
    n = len(task.real.X)
    steps = min(math.ceil(n / batch_size), epoch_steps or n)
    batches = _endless_batches(n, batch_size, task.rng)
    weights, losses = [flat.values.clone()], []
    for epoch in range(epochs):
        total = []
        for _ in range(steps):
            task.deadline.check(f"epoch {epoch + 1} of {epochs} of {name}")
            batch = next(batches)
            flat.gradients.zero_()
            loss = cross_entropy(network(task.real.take(batch)), task.real.codes(batch))
            loss.backward()
            optimiser.step(learning_rate)
            total.append(loss.item())
        weights.append(flat.values.clone())
        losses.append(float(np.mean(total)))
    return weights, losses


def train_student(
    network: torch.nn.Module,
    weights: torch.Tensor,
    rows: torch.Tensor,
    codes: torch.Tensor,
    rate: torch.Tensor,
    batches: Sequence[torch.Tensor],
) -> torch.Tensor:
    """Return the weight vector after one SGD step per batch, differentiable in the rows and in the learning rate.

    ``network`` only gives the architecture; its own weights are not used.
    """
    weights = weights.detach().requires_grad_()
    for batch in batches:
        outputs = functional_call(network, named_views(network, weights), (rows[batch],))
        (gradient,) = torch.autograd.grad(cross_entropy(outputs, codes[batch]), weights, create_graph=True)
        weights = weights - rate * gradient
    return weights


def named_views(network: torch.nn.Module, weights: torch.Tensor) -> dict[str, torch.Tensor]:
    """Split a vector into tensors with the names and shapes of a network's weights, for ``functional_call``."""
    named = [(name, tensor) for name, tensor in network.named_parameters() if tensor.requires_grad]
    parts = weights.split([tensor.numel() for _, tensor in named])
    return {name: part.view(tensor.shape) for (name, tensor), part in zip(named, parts, strict=True)}


def trajectory_distance(reached: torch.Tensor, start: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    """Return the squared distance to the goal, divided by that from start to goal."""
    covered = (start - goal).square().sum().clamp_min(torch.finfo(start.dtype).tiny)
    return (reached - goal).square().sum() / covered


def _endless_batches(rows: int, size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield row indices, every row once before any comes again."""
    while True:
        order = rng.permutation(rows)
        yield from (order[start : start + size] for start in range(0, rows, size))


class _TrajectoryMatcher:
    """Matches experts' trajectories; learns the logarithm of the student's learning rate, so that it stays positive."""

    def __init__(self, task: Task, settings: TrajectoryMatching, experts: list[list[torch.Tensor]]) -> None:
        self.task = task
        self.settings = settings
        self.experts = experts
        self.network = task.build()
        first = torch.tensor(math.log(settings.initial_student_rate), device=task.real.device)
        self.log_rate = torch.nn.Parameter(first)
        self.extras: Sequence[torch.nn.Parameter] = (self.log_rate,)

    def backward(self, rows: torch.Tensor) -> float:
        settings, rng = self.settings, self.task.rng
        expert = self.experts[rng.integers(len(self.experts))]
        begin = int(rng.integers(settings.last_start + 1))
        start, goal = expert[begin], expert[begin + settings.ahead]
        drawn = _endless_batches(len(rows), settings.batch_size, rng)
        batches = [torch.from_numpy(next(drawn)).to(rows.device) for _ in range(settings.student_steps)]
        rate = self.log_rate.exp()
        reached = train_student(self.network, start, rows, self.task.codes, rate, batches)
        loss = trajectory_distance(reached, start, goal)
        torch.autograd.backward(loss, inputs=[rows, self.log_rate])
        settings.student_learning_rate_ = rate.item()
        return loss.item()
