"""What the methods that learn synthetic rows by matching share: real batches, the start, the steps and the limits.

What belongs here: everything but what is matched. What does not: the three things that are, which are in :mod:`.dm`
(embeddings), :mod:`.gm` (gradients) and :mod:`.mtt` (trajectories).
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import torch

from c2tc_pipeline.allocation.shares import proportional_counts
from c2tc_pipeline.bench.rivals.limits import Deadline, check_memory, within_memory
from c2tc_pipeline.bench.rivals.relay import NetworkBuilder, relay_builder
from c2tc_pipeline.common.devices import resolve_device
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.optimisers import AdamW, FlatWeights
from c2tc_pipeline.condensation.sampler import CondensedRows, Sampler


class UnitRows:
    """Real rows in the order of their classes, given out in batches with every column scaled to [0, 1].

    Networks see scaled rows, so that one learning rate suits every unit; columns that reach from 0 to 1 stay as they
    are. The table itself is never copied.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows sorted by class.
    edges : ndarray of int of shape (classes + 1,)
        Where each class begins, and the end.
    device : str
        Where batches go.

    Examples
    --------
    >>> rows = UnitRows(np.array([[10.0], [20.0], [30.0]]), np.array([0, 2, 3]))
    >>> rows.take(np.array([0, 1])).tolist(), rows.as_source(torch.tensor([[0.25], [1.0]])).tolist()
    ([[0.0], [0.5]], [[15.0], [30.0]])
    """

    def __init__(self, X: np.ndarray, edges: np.ndarray, device: str = "cpu") -> None:
        self.X = X
        self.edges = edges
        self.device = device
        self.low, self.high = X.min(axis=0), X.max(axis=0)
        span = self.high.astype(np.float64) - self.low
        self.span = np.where(span > 0, span, 1.0)

    @property
    def sizes(self) -> np.ndarray:
        """Rows of each class."""
        sizes: np.ndarray = np.diff(self.edges)
        return sizes

    def draw(self, rng: np.random.Generator, code: int, count: int) -> np.ndarray:
        """Return so many different positions of rows of a class, or all of them if there are fewer."""
        start, size = int(self.edges[code]), int(self.sizes[code])
        if count >= size:
            return np.arange(start, start + size)
        return start + rng.choice(size, count, replace=False, shuffle=False)

    def take(self, positions: np.ndarray) -> torch.Tensor:
        """Return the rows at some positions, scaled."""
        scaled = (self.X[positions] - self.low) / self.span
        return torch.from_numpy(scaled.astype(np.float32)).to(self.device)

    def codes(self, positions: np.ndarray) -> torch.Tensor:
        """Return the class numbers of the rows at some positions."""
        return torch.from_numpy(np.searchsorted(self.edges, positions, side="right") - 1).to(self.device)

    def as_source(self, rows: torch.Tensor) -> np.ndarray:
        """Return scaled rows in the source's units and type, within its range."""
        scaled = rows.detach().cpu().numpy() * self.span + self.low
        return np.clip(scaled.astype(self.X.dtype), self.low, self.high)


@dataclass(frozen=True)
class Task:
    """All that a method needs to know about one condensation.

    Parameters
    ----------
    real : UnitRows
        The source.
    counts : ndarray of int
        Synthetic rows of each class; they lie one class after the other.
    build : callable
        Returns a fresh relay.
    rng : numpy.random.Generator
        Draws batches.
    deadline : Deadline
        To be checked in every loop that is not a step of the rows.
    """

    real: UnitRows
    counts: np.ndarray
    build: Callable[[], torch.nn.Module]
    rng: np.random.Generator
    deadline: Deadline

    @property
    def codes(self) -> torch.Tensor:
        """The class number of each synthetic row."""
        return torch.from_numpy(np.repeat(np.arange(len(self.counts)), self.counts)).to(self.real.device)


class Matcher(Protocol):
    """What is matched, while one condensation lasts."""

    @property
    def extras(self) -> Sequence[torch.nn.Parameter]:
        """What is learnt along with the rows."""

    def backward(self, rows: torch.Tensor) -> float:
        """Add the gradient of the loss to ``rows.grad`` and to that of the extras, and return the loss."""


class MatchingSampler(Sampler):
    """Base of the samplers that learn synthetic rows by gradient steps.

    Synthetic rows start as random real ones, as many of each class as is proportional; labels do not change. Rows move
    by Adam, with steps that shrink to nothing along a cosine, and are put back into the source's range after each. The
    methods' own settings (SGD, with step lengths from 0.1 to 1000) were chosen for images and suit no table in general.

    A subclass stores ``relay``, ``steps``, ``learning_rate``, ``batch_size``, ``device``, ``time_limit`` and
    ``memory_limit`` among its parameters.
    """

    name: ClassVar[str]
    # Whether a gradient of a gradient is taken, which is nothing useful where a relay is piecewise linear.
    smooth: ClassVar[bool] = True
    clock: Callable[[], float] = staticmethod(time.monotonic)

    relay: str | NetworkBuilder
    steps: int
    learning_rate: float
    batch_size: int
    device: str
    time_limit: float | None
    memory_limit: float | None

    @abstractmethod
    def start(self, task: Task) -> Matcher:
        """Prepare for the steps; costly work belongs here, with the deadline checked."""

    @abstractmethod
    def memory(self, task: Task) -> float:
        """Estimate the bytes needed on top of the table itself."""

    def condense(self, X: np.ndarray, edges: np.ndarray, budget: int) -> CondensedRows:
        """Learn synthetic rows of rows that are in the order of their classes."""
        require_at_least_one(steps=self.steps, batch_size=self.batch_size)
        require_positive(learning_rate=self.learning_rate)
        deadline = Deadline(self.name, self.time_limit, self.clock)
        device = resolve_device(self.device)
        rng = np.random.default_rng([self.random_state, 0x3A])

        def work() -> CondensedRows:
            real = UnitRows(X, edges, device)
            counts = proportional_counts(real.sizes, budget, real.sizes)
            build = relay_builder(self.relay, X.shape[1], len(counts), smooth=self.smooth, device=device)
            return self._learn(Task(real, counts, build, rng, deadline))

        # Networks are drawn from torch's own generator on the CPU, which is left as it was found.
        with torch.random.fork_rng(devices=[]):
            torch.random.default_generator.manual_seed(int(rng.integers(2**62)))
            return within_memory(self.name, work)

    def _learn(self, task: Task) -> CondensedRows:
        check_memory(self.name, self.memory(task), self.memory_limit)
        first = np.concatenate([task.real.draw(task.rng, code, count) for code, count in enumerate(task.counts)])
        learnt = torch.nn.ParameterList([torch.nn.Parameter(task.real.take(first))])
        matcher = self.start(task)
        learnt.extend(matcher.extras)
        flat = FlatWeights(learnt)
        optimiser = AdamW(flat)
        losses = []
        for step in range(self.steps):
            task.deadline.check(f"step {step + 1} of {self.steps}")
            flat.gradients.zero_()
            losses.append(matcher.backward(learnt[0]))
            # A loss that ran to infinity says nothing about which way to go.
            if bool(flat.gradients.isfinite().all()):
                optimiser.step(self.learning_rate * 0.5 * (1 + math.cos(math.pi * step / self.steps)))
                learnt[0].data.clamp_(0, 1)
        self.losses_ = np.array(losses)
        return CondensedRows(task.real.as_source(learnt[0]), task.codes.cpu().numpy())


def require_at_least_one(**settings: int) -> None:
    """Raise an InputError for the first setting that is no count.

    Examples
    --------
    >>> require_at_least_one(steps=0)
    Traceback (most recent call last):
    ...
    c2tc_pipeline.common.errors.InputError: Setting steps is 0; it must be a whole number of at least 1.
    """
    for name, value in settings.items():
        if value != int(value) or value < 1:
            raise InputError(f"Setting {name} is {value!r}; it must be a whole number of at least 1.")


def require_positive(**settings: float) -> None:
    """Raise an InputError for the first setting that is not above 0.

    Examples
    --------
    >>> require_positive(learning_rate=-1)
    Traceback (most recent call last):
    ...
    c2tc_pipeline.common.errors.InputError: Setting learning_rate is -1; it must be above 0.
    """
    for name, value in settings.items():
        if not value > 0:
            raise InputError(f"Setting {name} is {value!r}; it must be above 0.")
