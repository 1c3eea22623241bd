"""Herding: rows whose mean follows the mean of their class."""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.condensation.sampler import ClassSampler, CondensedClass, centred_float32


class Herding(ClassSampler):
    """Keep, class by class, rows whose mean stays as near as can be to the mean of the class.

    Welling, "Herding dynamical weights to learn", ICML 2009, on the encoded rows themselves as features. The weight
    vector moves by mean minus row with each pick, and the row with the largest product with it comes next.

    Where the paper supposes features of equal length, rows of a table are not: half the squared length of a row is
    taken off its product, so that each pick is exactly the row whose addition brings the mean of the picks nearest to
    the class mean. No row is picked twice, where Welling allows it. Budgets are proportional to class sizes. Nothing is
    random: ``random_state`` is there for the interface only, and every seed gives the same rows.

    Costs one product of the class's rows with a vector a pick, in float32, so rows times picks times columns in all,
    and one float32 copy of the class.

    Parameters
    ----------
    ratio : float, default=0.01
        Rows to keep as a share of the rows; every class gets at least one.
    rows : int, optional
        Rows to keep in all, instead of a ratio.
    random_state : int, default=0
        Without effect.

    Attributes
    ----------
    sample_indices_ : ndarray of int
        The rows kept, class by class, in the order in which they were picked.

    Examples
    --------
    >>> X = np.array([[0.0], [4.0], [5.0], [11.0], [1.0], [2.0]])
    >>> herding = Herding(rows=4)
    >>> herding.fit_resample(X, [0, 0, 0, 0, 1, 1])[0].ravel().tolist()
    [5.0, 4.0, 11.0, 1.0]
    """

    def __init__(self, ratio: float = 0.01, *, rows: int | None = None, random_state: int = 0) -> None:
        self.ratio = ratio
        self.rows = rows
        self.random_state = random_state

    def condense_class(self, X: np.ndarray, count: int, rng: np.random.Generator) -> CondensedClass:
        """Pick ``count`` rows greedily."""
        # Around the class mean, mean minus row is minus the row.
        rows = centred_float32(X)
        half_squares = np.einsum("ij,ij->i", rows, rows) / 2
        weight = np.zeros(rows.shape[1])
        products = np.empty(len(rows), dtype=np.float32)
        chosen = np.empty(count, dtype=np.int64)
        for pick in range(count):
            np.dot(rows, weight.astype(np.float32), out=products)
            products -= half_squares
            best = int(products.argmax())
            chosen[pick] = best
            weight -= rows[best]
            half_squares[best] = np.inf
        return CondensedClass(chosen=chosen)
