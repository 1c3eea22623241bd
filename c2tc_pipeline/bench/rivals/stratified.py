"""A random sample of rows with the classes in their own proportions."""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.condensation.sampler import ClassSampler, CondensedClass


class StratifiedRows(ClassSampler):
    """Keep rows drawn at random within each class, each class in proportion to its size.

    Textbook stratified sampling. Odd rows go to the classes with the largest remainders and every class gets at least
    one row. Costs one draw without replacement a class.

    Parameters
    ----------
    ratio : float, default=0.01
        Rows to keep as a share of the rows; every class gets at least one.
    rows : int, optional
        Rows to keep in all, instead of a ratio.
    random_state : int, default=0
        Determines the draws.

    Examples
    --------
    >>> sampler = StratifiedRows(rows=5, random_state=0)
    >>> X, y = sampler.fit_resample(np.arange(40.0).reshape(20, 2), np.repeat([0, 1], [16, 4]))
    >>> y.tolist()
    [0, 0, 0, 0, 1]
    """

    def __init__(self, ratio: float = 0.01, *, rows: int | None = None, random_state: int = 0) -> None:
        self.ratio = ratio
        self.rows = rows
        self.random_state = random_state

    def condense_class(self, X: np.ndarray, count: int, rng: np.random.Generator) -> CondensedClass:
        """Draw ``count`` rows, none twice."""
        return CondensedClass(chosen=np.sort(rng.choice(len(X), count, replace=False)))
