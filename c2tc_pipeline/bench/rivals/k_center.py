"""K-center: rows such that no row of the class is far from one of them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from c2tc_pipeline.bench.rivals import ClassRival, CondensedClass, centred_float32
from c2tc_pipeline.common.errors import InputError

_STARTS = ("mean", "random")


@dataclass(eq=False, repr=False)
class KCenter(ClassRival):
    """Farthest-first traversal (Gonzalez, TCS 1985): the radius is at most twice the smallest possible.

    The paper's "K-Center" does not say which row comes first: here it is the one nearest to the class mean, or a random
    one (``start="random"``). Equal rows are kept only when all others are. Costs one matrix-vector product per pick.
    """

    _: KW_ONLY
    start: str = "mean"

    def condense_class(self, X: np.ndarray, count: int, rng: np.random.Generator) -> CondensedClass:
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
