"""Base of the methods that learn synthetic rows by matching, and the relay networks that they match through.

A method adds what is matched: embeddings (:mod:`.dm`), gradients (:mod:`.gm`) or training trajectories (:mod:`.mtt`).
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Protocol

import numpy as np
import torch

from c2tc_pipeline.bench.limits import Deadline, check_memory, within_memory
from c2tc_pipeline.bench.rivals import CondensedRows, Rival
from c2tc_pipeline.common.devices import resolve_device
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.optimisers import AdamW, FlatWeights
from c2tc_pipeline.evaluation.models.network import mlp_network

NetworkBuilder = Callable[[int, int], torch.nn.Module]
RELAYS = ("mlp", "ft_transformer")


class UnitRows:
    """Real rows sorted by class, given out in batches with every column scaled to [0, 1]; ``X`` is never copied."""

    def __init__(self, X: np.ndarray, edges: np.ndarray, device: str = "cpu") -> None:
        self.X = X
        self.edges = edges
        self.device = device
        self.sizes: np.ndarray = np.diff(edges)
        self.low, self.high = X.min(axis=0), X.max(axis=0)
        span = self.high.astype(np.float64) - self.low
        self.span = np.where(span > 0, span, 1.0)

    def draw(self, rng: np.random.Generator, code: int, count: int) -> np.ndarray:
        """Return ``count`` distinct row indices of a class, or all of them if there are fewer."""
        start, size = int(self.edges[code]), int(self.sizes[code])
        if count >= size:
            return np.arange(start, start + size)
        return start + rng.choice(size, count, replace=False, shuffle=False)

    def take(self, indices: np.ndarray) -> torch.Tensor:
        """Return rows, scaled."""
        scaled = (self.X[indices] - self.low) / self.span
        return torch.from_numpy(scaled.astype(np.float32)).to(self.device)

    def codes(self, indices: np.ndarray) -> torch.Tensor:
        """Return the class codes of rows."""
        return torch.from_numpy(np.searchsorted(self.edges, indices, side="right") - 1).to(self.device)

    def as_source(self, rows: torch.Tensor) -> np.ndarray:
        """Return scaled rows in the source's units and dtype, within its range."""
        scaled = rows.detach().cpu().numpy() * self.span + self.low
        return np.clip(scaled.astype(self.X.dtype), self.low, self.high)


@dataclass(frozen=True)
class Task:
    """One condensation: real rows, synthetic rows per class, a builder of fresh relays, a generator and a deadline."""

    real: UnitRows
    counts: np.ndarray
    build: Callable[[], torch.nn.Module]
    rng: np.random.Generator
    deadline: Deadline

    @property
    def codes(self) -> torch.Tensor:
        """The class code of each synthetic row; they are sorted by class."""
        return torch.from_numpy(np.repeat(np.arange(len(self.counts)), self.counts)).to(self.real.device)


class Matcher(Protocol):
    """The loss of one condensation; ``extras`` are parameters learnt along with the rows."""

    extras: Sequence[torch.nn.Parameter]

    def backward(self, rows: torch.Tensor) -> float:
        """Add the gradient of the loss to ``rows.grad`` and to that of the extras, and return the loss."""


@dataclass(eq=False, repr=False)
class MatchingSampler(Rival):
    """Base of the samplers that learn synthetic rows by gradient steps.

    Synthetic rows start as random real rows, in proportion to class sizes; labels do not change. Rows move by Adam with
    a cosine learning rate that starts at ``learning_rate``, in columns scaled to [0, 1], and are clipped to that range.
    The methods' own settings (SGD, with step lengths from 0.1 to 1000) were chosen for images and suit no table in
    general; the image methods' augmentation is left out.

    ``relay`` is "mlp", "ft_transformer" or a callable of the number of columns and classes, ``time_limit`` is in
    seconds, ``memory_limit`` in bytes. The fitted ``losses_`` has the loss before each step.
    """

    # Whether the method takes a gradient of a gradient, which needs a relay with second derivatives.
    smooth: ClassVar[bool] = True
    name: ClassVar[str]

    _: KW_ONLY
    relay: str | NetworkBuilder = "mlp"
    steps: int = 500
    learning_rate: float = 0.01
    batch_size: int = 256
    device: str = "auto"
    time_limit: float | None = None
    memory_limit: float | None = None

    def clock(self) -> float:
        """Return seconds for the deadline."""
        return time.monotonic()

    @abstractmethod
    def start(self, task: Task) -> Matcher:
        """Prepare for the steps; costly work belongs here, with the deadline checked."""

    @abstractmethod
    def memory(self, task: Task) -> float:
        """Estimate the bytes needed on top of the table itself."""

    def condense(self, X: np.ndarray, edges: np.ndarray, budget: int) -> CondensedRows:
        require_positive(learning_rate=self.learning_rate)
        require_at_least_one(steps=self.steps, batch_size=self.batch_size)
        deadline = Deadline(self.name, self.time_limit, self.clock)
        device = resolve_device(self.device)
        rng = np.random.default_rng([self.random_state, 0x3A])

        def work() -> CondensedRows:
            real = UnitRows(X, edges, device)
            counts = self.counts(real.sizes, budget)
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
            # A loss that ran to infinity has no usable gradient.
            if bool(flat.gradients.isfinite().all()):
                optimiser.step(self.learning_rate * 0.5 * (1 + math.cos(math.pi * step / self.steps)))
                learnt[0].data.clamp_(0, 1)
        self.losses_ = np.array(losses)
        return CondensedRows(task.real.as_source(learnt[0]), task.codes.cpu().numpy())


def require_at_least_one(**settings: int) -> None:
    """Raise an InputError for the first setting that is not an integer of at least 1."""
    for name, value in settings.items():
        if value != int(value) or value < 1:
            raise InputError(f"Setting {name} is {value!r}; it must be an integer of at least 1.")


def require_positive(**settings: float) -> None:
    """Raise an InputError for the first setting that is not above 0."""
    for name, value in settings.items():
        if not value > 0:
            raise InputError(f"Setting {name} is {value!r}; it must be above 0.")


def relay_builder(
    relay: str | NetworkBuilder, features: int, classes: int, *, smooth: bool = False, device: str = "cpu"
) -> Callable[[], torch.nn.Module]:
    """Return a function that builds a freshly initialised relay in evaluation mode.

    Weights are drawn on the CPU, so that a seed means the same networks on every device. ``smooth`` replaces ReLU by
    GELU in the named relays: a ReLU that no synthetic row activates has neither a gradient nor a second derivative, so
    methods that differentiate a gradient would never move a row to activate it.
    """
    if callable(relay):
        builder = relay
    elif relay == "mlp":
        builder = mlp_network
    elif relay == "ft_transformer":
        from c2tc_pipeline.bench.models.ft_transformer import ft_transformer_network

        builder = ft_transformer_network
    else:
        raise InputError(f"Relay {relay!r} is unknown; choose one of: {', '.join(RELAYS)}.")

    def build() -> torch.nn.Module:
        network = builder(features, classes)
        for name, module in list(network.named_modules()) if smooth and not callable(relay) else ():
            if isinstance(module, torch.nn.ReLU):
                network.set_submodule(name, torch.nn.GELU())
        return network.to(device).eval()

    return build


def without_head(network: torch.nn.Module) -> torch.nn.Module:
    """Remove the last linear layer, so that a network returns embeddings; a linear network becomes the identity."""
    name = [name for name, module in network.named_modules() if isinstance(module, torch.nn.Linear)][-1]
    if not name:
        return torch.nn.Identity()
    network.set_submodule(name, torch.nn.Identity())
    return network


def weight_bytes(network: torch.nn.Module) -> int:
    """Return the size of a network's weights."""
    return sum(tensor.numel() * tensor.element_size() for tensor in network.parameters())


def row_bytes(network: torch.nn.Module, features: int) -> int:
    """Return the bytes that a network saves of one row for its backward pass."""
    first = next(network.parameters())
    weights = {tensor.untyped_storage().data_ptr() for tensor in network.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage
        return tensor

    rows = torch.zeros(2, features, dtype=first.dtype, device=first.device)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        network(rows)
    return sum(storage.nbytes() for storage in kept.values()) // len(rows)
