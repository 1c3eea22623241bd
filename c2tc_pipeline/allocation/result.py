"""The result of an allocator."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


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

    Parameters
    ----------
    method : str
        The allocator's name.
    counts : ndarray of int
        Condensed rows per class, in the order of the problem's classes.
    objective : float
        The CCAP objective at ``counts``: in the losses that the allocator saw, or, once the classes are clustered, as
        measured over all rows. The trace stays in the losses that the allocator saw.
    evaluations : int
        How many k-means runs the losses cost.
    trace : tuple of TraceStep
        The search, step by step; a single step for allocators that do not search.
    bound : float or None
        A lower bound on the objective of any allocation, for the same losses; None when it is not known.
    gamma : float
        The exponent of the class sizes in the objective.

    Examples
    --------
    >>> a = Allocation("ratio", np.array([3, 1]), 10.0, 2, (), 9.5, 0.25)
    >>> round(a.gap, 4)
    0.05
    """

    method: str
    counts: np.ndarray
    objective: float
    evaluations: int
    trace: tuple[TraceStep, ...]
    bound: float | None
    gamma: float

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
