"""K-center: rows such that no row of the class is far from one of them."""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.sampler import ClassSampler, CondensedClass, centred_float32

_STARTS = ("mean", "random")


class KCenter(ClassSampler):
    """Keep, class by class, the row farthest from those kept so far, again and again.

    The farthest-first walk of Gonzalez, "Clustering to minimize the maximum intercluster distance", TCS 1985: the
    largest distance from a row to the nearest kept one is at most twice the smallest possible. The paper's "K-Center"
    names the problem and not the first row: here it is the one nearest the class mean, or a random one on request.
    Budgets are proportional to class sizes; equal rows are kept only when all others are.

    Costs one product of the class's rows with a vector a pick, in float32, and one float32 copy of the class.

    Parameters
    ----------
    ratio : float, default=0.01
        Rows to keep as a share of the rows; every class gets at least one.
    rows : int, optional
        Rows to keep in all, instead of a ratio.
    start : {"mean", "random"}, default="mean"
        Which row of a class comes first: the one nearest its mean, which leaves nothing random, or one drawn by
        ``random_state``.
    random_state : int, default=0
        Determines the random start.

    Attributes
    ----------
    sample_indices_ : ndarray of int
        The rows kept, class by class, in the order in which they were picked.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0], [20.0], [30.0], [31.0]])
    >>> KCenter(rows=4).fit_resample(X, [0, 0, 0, 0, 0, 1, 1])[0].ravel().tolist()
    [6.0, 20.0, 0.0, 30.0]
    """

    def __init__(
        self, ratio: float = 0.01, *, rows: int | None = None, start: str = "mean", random_state: int = 0
    ) -> None:
        self.ratio = ratio
        self.rows = rows
        self.start = start
        self.random_state = random_state

    def condense_class(self, X: np.ndarray, count: int, rng: np.random.Generator) -> CondensedClass:
        """Pick ``count`` rows, farthest first."""
        if self.start not in _STARTS:
            raise InputError(f"Start {self.start!r} is unknown; choose one of: {', '.join(_STARTS)}.")
        rows = centred_float32(X)
        squares = np.einsum("ij,ij->i", rows, rows)
        distances = np.full(len(rows), np.inf, dtype=np.float32)
        fresh = np.empty(len(rows), dtype=np.float32)
        chosen = np.empty(count, dtype=np.int64)
        chosen[0] = squares.argmin() if self.start == "mean" else rng.integers(len(rows))
        for pick in range(1, count):
            last = chosen[pick - 1]
            np.dot(rows, -2 * rows[last], out=fresh)
            fresh += squares
            fresh += squares[last]
            np.minimum(distances, fresh, out=distances)
            # Below any rounding, so that a kept row never comes again, not even among equal ones.
            distances[last] = -1
            chosen[pick] = distances.argmax()
        return CondensedClass(chosen=chosen)
