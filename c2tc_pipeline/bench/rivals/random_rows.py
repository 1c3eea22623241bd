"""A uniform random sample of rows, what a condensed table has to beat first."""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.condensation.sampler import CondensedRows, Sampler
from c2tc_pipeline.evaluation.trial import random_rows


class RandomRows(Sampler):
    """Keep rows drawn uniformly at random, with at least one of each class.

    The paper's "Random". It does not say what becomes of a class that no draw hits; here such a class gets one row, see
    :func:`random_rows`. Costs one permutation of the row numbers.

    Parameters
    ----------
    ratio : float, default=0.01
        Rows to keep as a share of the rows.
    rows : int, optional
        Rows to keep in all, instead of a ratio.
    random_state : int, default=0
        Determines the draw.

    Examples
    --------
    >>> sampler = RandomRows(rows=4, random_state=0)
    >>> X, y = sampler.fit_resample(np.arange(40.0).reshape(20, 2), np.arange(20) % 2)
    >>> X.shape, len(set(sampler.sample_indices_.tolist()))
    ((4, 2), 4)
    """

    def __init__(self, ratio: float = 0.01, *, rows: int | None = None, random_state: int = 0) -> None:
        self.ratio = ratio
        self.rows = rows
        self.random_state = random_state

    def condense(self, X: np.ndarray, edges: np.ndarray, budget: int) -> CondensedRows:
        """Draw rows; see :meth:`Sampler.condense`."""
        codes = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
        chosen = random_rows(codes, budget, seed=self.random_state)
        return CondensedRows(X[chosen], codes[chosen], chosen=chosen)
