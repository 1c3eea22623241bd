"""Trajectory matching: where training on real rows leads a network, training on synthetic rows shall lead it too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from c2tc_pipeline.bench.rivals.matching import MatchingSampler, Task, require_at_least_one, require_positive
from c2tc_pipeline.bench.rivals.relay import NetworkBuilder, named_views, row_bytes, weight_bytes
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.optimisers import FlatWeights, Sgd
from c2tc_pipeline.condensation.sampler import CondensedRows

# What each unrolled step keeps, against one set of weights and against a plain pass of its rows.
_WEIGHTS_A_STEP = 2
_PASSES_A_STEP = 2

# How long a student's steps are at first, where nothing is said.
_FIRST_STEP = 0.1
_FIRST_STEPS = {"ft_transformer": 0.02}


class TrajectoryMatching(MatchingSampler):
    """Learn rows that lead a network along the way it takes on real ones (MTT; Cazenavette et al., CVPR 2022).

    Experts, networks trained on the whole table, leave their weights behind after every epoch. A student starts from an
    expert's weights at a random epoch, takes ``student_steps`` steps on the synthetic rows, and the rows are moved so
    that it arrives where the expert was ``ahead`` epochs later. The loss is the squared distance between the two,
    divided by the squared distance that the expert covered: 1 for a student that does not move. The length of the
    student's steps is learnt along with the rows.

    Parameters
    ----------
    ratio : float, default=0.01
        Share of the rows that is kept; ignored when ``rows`` is given.
    rows : int, optional
        Synthetic rows in all.
    relay : {"mlp", "ft_transformer"} or callable, default="mlp"
        The network, with GELU in the place of ReLU. A callable is given the number of columns and of classes.
    steps : int, default=500
        Steps of the rows; 5,000 in the method's paper.
    experts : int, default=5
        Networks trained on the table; 200 in the method's paper.
    epochs : int, default=12
        Epochs of each; 50 in the method's paper.
    epoch_steps : int or None, default=100
        Steps after which an epoch ends even if rows are left, so that experts cost no more on a larger table; the next
        epoch goes on with other rows. None for whole epochs, as in the method's paper.
    expert_learning_rate : float, default=0.02
        Length of an expert's steps, by plain SGD; 0.01 in the method's paper, for networks with normalisation.
    last_start : int, default=10
        The last epoch that a student may start from; 20 of 50 or so in the method's paper.
    ahead : int, default=2
        Epochs between a student's start and its goal, as in the method's paper.
    student_steps : int, default=10
        Steps that a student takes, all of them unrolled; 20 to 50 in the method's paper.
    student_learning_rate : float, optional
        Length of a student's steps at first; 0.1 by default, 0.02 with an FT-Transformer, which longer steps throw far
        off its expert's way.
    learning_rate : float, default=0.01
        Length of the first step of the rows, in columns of range 1, and of the logarithm of the student's step length;
        shrinks to nothing along a cosine.
    batch_size : int, default=256
        Rows in a step of an expert, as in the method's paper, and of a student at most.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where networks run.
    time_limit : float, optional
        Seconds, experts included, after which OutOfTime is raised; the C2TC paper allows 24 hours, and 5 days more for
        experts.
    memory_limit : float, optional
        Bytes; OutOfMemory is raised before the start when the estimate is above.
    random_state : int, default=0
        The same seed gives the same rows.

    Attributes
    ----------
    losses_ : ndarray of shape (steps,)
        The loss before each step.
    expert_losses_ : ndarray of shape (experts, epochs)
        The mean loss of each expert's batches in each epoch.
    student_learning_rate_ : float
        The length of a student's steps in the end.

    Notes
    -----
    Experts' weights stay in memory. Left out: the image method's augmentation and whitening.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((60, 2))
    >>> mtt = TrajectoryMatching(rows=4, steps=5, experts=1, epochs=3, last_start=1, device="cpu")
    >>> X_small, y_small = mtt.fit_resample(X, np.arange(60) % 3)
    >>> X_small.shape, y_small.tolist()
    ((4, 2), [0, 0, 1, 2])
    """

    name = "MTT"

    def __init__(
        self,
        ratio: float = 0.01,
        *,
        rows: int | None = None,
        relay: str | NetworkBuilder = "mlp",
        steps: int = 500,
        experts: int = 5,
        epochs: int = 12,
        epoch_steps: int | None = 100,
        expert_learning_rate: float = 0.02,
        last_start: int = 10,
        ahead: int = 2,
        student_steps: int = 10,
        student_learning_rate: float | None = None,
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
        self.experts = experts
        self.epochs = epochs
        self.epoch_steps = epoch_steps
        self.expert_learning_rate = expert_learning_rate
        self.last_start = last_start
        self.ahead = ahead
        self.student_steps = student_steps
        self.student_learning_rate = student_learning_rate
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.device = device
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.random_state = random_state

    @property
    def first_student_step(self) -> float:
        """The length of a student's first steps."""
        if self.student_learning_rate is not None:
            return self.student_learning_rate
        return _FIRST_STEPS.get(self.relay, _FIRST_STEP) if isinstance(self.relay, str) else _FIRST_STEP

    def condense(self, X: np.ndarray, edges: np.ndarray, budget: int) -> CondensedRows:
        """Train experts, then learn synthetic rows of rows that are in the order of their classes."""
        require_at_least_one(
            experts=self.experts, epochs=self.epochs, ahead=self.ahead, student_steps=self.student_steps
        )
        require_positive(expert_learning_rate=self.expert_learning_rate, student_learning_rate=self.first_student_step)
        if self.epoch_steps is not None:
            require_at_least_one(epoch_steps=self.epoch_steps)
        if not 0 <= self.last_start <= self.epochs - self.ahead:
            raise InputError(
                f"A student that starts from epoch {self.last_start} and goes {self.ahead} epochs ahead does not fit "
                f"into {self.epochs} epochs; choose last_start from 0 to epochs - ahead."
            )
        return super().condense(X, edges, budget)

    def start(self, task: Task) -> _TrajectoryMatcher:
        """Train the experts, and return what matches their trajectories."""
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
        self.expert_losses_ = np.array([expert.losses for expert in trained])
        return _TrajectoryMatcher(task, self, [expert.weights for expert in trained])

    def memory(self, task: Task) -> float:
        """Estimate: the experts' weights after every epoch, and the graph of a student's steps."""
        relay = task.build()
        weights, a_row = weight_bytes(relay), row_bytes(relay, task.real.X.shape[1])
        rows = min(int(task.counts.sum()), self.batch_size)
        a_step = _WEIGHTS_A_STEP * weights + _PASSES_A_STEP * rows * a_row
        return float(self.experts * (self.epochs + 1) * weights + self.student_steps * a_step)


@dataclass(frozen=True)
class Expert:
    """What a network trained on the table leaves behind.

    Parameters
    ----------
    weights : list of tensors
        All weights as one vector: at the start and after every epoch.
    losses : list of float
        The mean loss of each epoch's batches.
    """

    weights: list[torch.Tensor]
    losses: list[float]


def train_expert(
    task: Task, *, epochs: int, epoch_steps: int | None, learning_rate: float, batch_size: int, name: str
) -> Expert:
    """Train a fresh relay on real rows, and keep its weights after every epoch.

    Parameters
    ----------
    task : Task
        The rows, the relay, and the deadline, which is checked at every step.
    epochs, epoch_steps, learning_rate, batch_size
        As for :class:`TrajectoryMatching`.
    name : str
        Whom the deadline shall name.
    """
    network = task.build()
    flat = FlatWeights(network)
    optimiser = Sgd(flat, momentum=0.0, weight_decay=0.0)
    n = len(task.real.X)
    whole = math.ceil(n / batch_size)
    batches = _endless_batches(n, batch_size, task.rng)
    weights, losses = [flat.values.clone()], []
    for epoch in range(epochs):
        total = []
        for _ in range(whole if epoch_steps is None else min(whole, epoch_steps)):
            task.deadline.check(f"epoch {epoch + 1} of {epochs} of {name}")
            batch = next(batches)
            flat.gradients.zero_()
            loss = cross_entropy(network(task.real.take(batch)), task.real.codes(batch))
            loss.backward()
            optimiser.step(learning_rate)
            total.append(loss.item())
        weights.append(flat.values.clone())
        losses.append(float(np.mean(total)))
    return Expert(weights, losses)


def train_student(
    network: torch.nn.Module,
    weights: torch.Tensor,
    rows: torch.Tensor,
    codes: torch.Tensor,
    rate: torch.Tensor,
    batches: Sequence[torch.Tensor],
) -> torch.Tensor:
    """Return weights after some steps of SGD, differentiable in the rows and in the length of the steps.

    Parameters
    ----------
    network : torch.nn.Module
        Lends its shape; its own weights are not used.
    weights : tensor
        Where to start, as one vector.
    rows, codes : tensors of shape (n, d) and (n,)
        Synthetic rows and their classes.
    rate : tensor
        Length of a step.
    batches : sequence of tensors of int
        The rows of each step.

    Examples
    --------
    >>> rows, codes = torch.tensor([[0.0], [1.0]]), torch.tensor([0, 1])
    >>> network, start = torch.nn.Linear(1, 2), torch.zeros(4)
    >>> train_student(network, start, rows, codes, torch.tensor(1.0), [torch.tensor([0, 1])]).tolist()
    [-0.25, 0.25, 0.0, 0.0]
    """
    weights = weights.detach().requires_grad_()
    for batch in batches:
        outputs = functional_call(network, named_views(network, weights), (rows[batch],))
        (gradient,) = torch.autograd.grad(cross_entropy(outputs, codes[batch]), weights, create_graph=True)
        weights = weights - rate * gradient
    return weights


def trajectory_distance(reached: torch.Tensor, start: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    """Return the squared distance to the goal, against that from start to goal.

    Examples
    --------
    >>> trajectory_distance(torch.tensor([1.0]), torch.tensor([0.0]), torch.tensor([2.0])).item()
    0.25
    """
    covered = (start - goal).square().sum().clamp_min(torch.finfo(start.dtype).tiny)
    return (reached - goal).square().sum() / covered


def _endless_batches(rows: int, size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield row numbers, every row once before any comes again."""
    while True:
        order = rng.permutation(rows)
        yield from (order[place : place + size] for place in range(0, rows, size))


class _TrajectoryMatcher:
    """Matches experts' trajectories; learns the logarithm of the student's step length, so that it stays positive."""

    def __init__(self, task: Task, settings: TrajectoryMatching, experts: list[list[torch.Tensor]]) -> None:
        self.task = task
        self.settings = settings
        self.experts = experts
        self.network = task.build()
        first = torch.tensor(math.log(settings.first_student_step), device=task.real.device)
        self.log_rate = torch.nn.Parameter(first)
        self.extras = (self.log_rate,)

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
