"""The class-adaptive cluster allocation problem (CCAP): who may get how many clusters, and what it costs.

An allocator sees class sizes, a budget, and a loss for each (class, number of clusters). Where the loss comes from, a
measured curve or a k-means run on all rows, is the business of a loss source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from c2tc_pipeline.clustering.class_rows import ClassRows
from c2tc_pipeline.clustering.curve import ClassCurve
from c2tc_pipeline.common.errors import InputError


class LossSource(Protocol):
    """Where WCSS(class, k) comes from."""

    known_everywhere: bool
    """Whether a whole table costs no more than one entry, so that bounds come for free."""

    @property
    def runs(self) -> int:
        """K-means runs made so far."""

    def wcss(self, index: int, k: int) -> float:
        """Return the loss of class ``index`` in ``k`` clusters."""

    def table(self, index: int, largest: int) -> np.ndarray:
        """Return the losses of class ``index`` in 1, 2, ..., ``largest`` clusters."""


class CurveLosses:
    """Losses read off measured curves: every k costs nothing once the curve is there.

    Examples
    --------
    >>> curve = ClassCurve(10, 10, np.array([1, 4]), np.array([8.0, 2.0]), 10)
    >>> CurveLosses([curve]).wcss(0, 2)
    4.0
    """

    known_everywhere = True

    def __init__(self, curves: Sequence[ClassCurve]) -> None:
        self.curves = list(curves)

    @property
    def runs(self) -> int:
        """One run per grid point of each curve."""
        return sum(len(curve.grid) for curve in self.curves)

    def wcss(self, index: int, k: int) -> float:
        """Read one point."""
        return float(self.curves[index].at(np.array([k]))[0])

    def table(self, index: int, largest: int) -> np.ndarray:
        """Read the curve at every k."""
        return self.curves[index].at(np.arange(1, largest + 1))


class ExactLosses:
    """Losses from a k-means run on all rows for each (class, k), as the paper has it; each is made once.

    Parameters
    ----------
    classes : sequence of ClassRows
        The rows of each class.
    seed : int
        Every (class, k) has a seed of its own, so that a loss does not depend on the order of questions.
    relocate, max_iter, tol
        Passed to :meth:`ClassRows.cluster`.
    """

    known_everywhere = False

    def __init__(
        self,
        classes: Sequence[ClassRows],
        *,
        seed: int = 0,
        relocate: int = 0,
        max_iter: int = 100,
        tol: float = 5e-4,
    ) -> None:
        self.classes = list(classes)
        self.seed = seed
        self.options = {"relocate": relocate, "max_iter": max_iter, "tol": tol}
        self._known: dict[tuple[int, int], float] = {}

    @property
    def runs(self) -> int:
        """One run per (class, k) asked for."""
        return len(self._known)

    def wcss(self, index: int, k: int) -> float:
        """Cluster the class, unless that was done before."""
        if (index, k) not in self._known:
            seed = np.random.SeedSequence([self.seed, index, k])
            result = self.classes[index].cluster(k, seed=seed, **self.options)  # type: ignore[arg-type]
            self._known[index, k] = result.inertia
        return self._known[index, k]

    def table(self, index: int, largest: int) -> np.ndarray:
        """Cluster the class at every k; dear, meant for small problems."""
        return np.array([self.wcss(index, k) for k in range(1, largest + 1)])


@dataclass
class AllocationProblem:
    """CCAP for one table.

    The objective is the sum over classes of ``WCSS_i(k_i) / n_i ** gamma``, with every ``k_i`` between 1 and
    ``min(budget - (C - 1), n_i // least_rows)`` and all of them adding up to the budget.

    Parameters
    ----------
    sizes : sequence of int
        Source rows of each class.
    budget : int
        Condensed rows in all.
    losses : LossSource
        WCSS of each class at each number of clusters.
    gamma : float
        Exponent of the class sizes, from 0 (large classes dominate) to 1 (classes count alike).
    least_rows : int
        Source rows that every cluster must have.

    Examples
    --------
    >>> curves = [ClassCurve(n, n, np.array([1, n]), np.array([1.0 * n, 0.1]), n) for n in (80, 20)]
    >>> problem = AllocationProblem([80, 20], 10, CurveLosses(curves), gamma=0.0)
    >>> problem.upper.tolist(), problem.objective([9, 1]) < problem.objective([1, 9])
    ([9, 9], True)
    """

    sizes: np.ndarray
    budget: int
    losses: LossSource
    gamma: float = 0.25
    least_rows: int = 1
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
        room = self.sizes // self.least_rows
        if (room < 1).any() or self.budget > room.sum():
            raise InputError(
                f"Clusters of at least {self.least_rows} rows leave room for {int(room.sum())} condensed rows, and for "
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
