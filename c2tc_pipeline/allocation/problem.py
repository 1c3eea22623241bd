"""The class-adaptive cluster allocation problem (CCAP), the losses that it reads from loss curves, and its solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from c2tc_pipeline.clustering.loss_curves import LossCurve
from c2tc_pipeline.common.errors import InputError


class CurveLosses:
    """Losses interpolated on loss curves."""

    def __init__(self, curves: Sequence[LossCurve]) -> None:
        self.curves = list(curves)

    @property
    def runs(self) -> int:
        """K-means runs made: one per grid point of each curve."""
        return sum(len(curve.grid) for curve in self.curves)

    def wcss(self, index: int, k: int) -> float:
        """Return the loss of class ``index`` in ``k`` clusters."""
        return float(self.curves[index].at(np.array([k]))[0])

    def table(self, index: int, largest: int) -> np.ndarray:
        """Return the losses of class ``index`` in 1, 2, ..., ``largest`` clusters."""
        return self.curves[index].at(np.arange(1, largest + 1))


@dataclass
class AllocationProblem:
    """CCAP for one table.

    The objective is the sum over classes of ``WCSS_i(k_i) / n_i ** gamma``, with every ``k_i`` between 1 and
    ``min(budget - (C - 1), n_i // min_rows)`` and all of them adding up to the budget.
    ``min_rows`` is the minimum number of source rows per cluster.
    """

    sizes: np.ndarray
    budget: int
    losses: CurveLosses
    gamma: float = 0.25
    min_rows: int = 1
    upper: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = np.asarray(self.sizes, dtype=np.int64)
        if (self.sizes < 1).any():
            raise InputError("Every class needs at least one row; drop classes without rows first.")
        if not len(self.sizes) <= self.budget <= self.sizes.sum():
            raise InputError(
                f"A budget of {self.budget} condensed rows does not fit {len(self.sizes)} classes with "
                f"{int(self.sizes.sum())} rows; it must lie between these two numbers."
            )
        if not 0 <= self.gamma <= 1:
            raise InputError(f"gamma is {self.gamma}, but must lie between 0 and 1.")
        room = self.sizes // self.min_rows
        if (room < 1).any() or self.budget > room.sum():
            raise InputError(
                f"Clusters of at least {self.min_rows} rows leave room for {int(room.sum())} condensed rows, and for "
                f"{int(room.min())} in the smallest class, but {self.budget} are asked for; choose fewer rows."
            )
        self.upper = np.minimum(self.budget - (len(self.sizes) - 1), room)

    def loss(self, index: int, k: int) -> float:
        """Return one class's term of the objective."""
        return self.losses.wcss(index, k) / float(self.sizes[index]) ** self.gamma

    def objective(self, counts: Sequence[int] | np.ndarray) -> float:
        """Return the objective of an allocation."""
        return float(sum(self.loss(index, int(k)) for index, k in enumerate(counts)))

    def loss_table(self, index: int) -> np.ndarray:
        """Return one class's term for 1, 2, ..., upper clusters."""
        return self.losses.table(index, int(self.upper[index])) / float(self.sizes[index]) ** self.gamma


@dataclass(frozen=True)
class TraceStep:
    """One proposal of a search; iteration 0 is the start, ``best`` the best objective after the step."""

    iteration: int
    proposed: float
    best: float
    accepted: bool
    step_limit: int
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Allocation:
    """The number of condensed rows of each class, with objective and bound.

    Examples
    --------
    >>> a = Allocation("ratio", np.array([3, 1]), 10.0, 2, (), 9.5, 0.25)
    >>> round(a.gap, 4)
    0.05
    """

    method: str  # the allocator's name
    counts: np.ndarray  # condensed rows of each class
    # In the losses that the allocator saw, as in the trace; once the classes are clustered, as measured over all rows.
    objective: float
    evaluations: int  # k-means runs that the losses cost
    trace: tuple[TraceStep, ...]  # a single step for allocators that do not search
    bound: float | None  # no allocation has a lower objective; None when it is not known
    gamma: float  # the exponent of the class sizes in the objective

    @property
    def gap(self) -> float | None:
        """How far above the bound the objective is, as a share of the objective; None without a bound."""
        if self.bound is None:
            return None
        return (self.objective - self.bound) / self.objective if self.objective > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the allocation as plain JSON values."""
        return {
            "method": self.method,
            "counts": [int(count) for count in self.counts],
            "objective": self.objective,
            "evaluations": self.evaluations,
            "bound": self.bound,
            "gamma": self.gamma,
            "trace": [asdict(step) for step in self.trace],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Allocation:
        """Rebuild an allocation from :meth:`to_dict`."""
        trace = tuple(TraceStep(**{**step, "counts": tuple(step["counts"])}) for step in values["trace"])
        return cls(**{**values, "counts": np.asarray(values["counts"], dtype=np.int64), "trace": trace})
