"""A uniform random sample of rows, what a condensed table has to beat first."""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.condensation.sampler import CondensedRows, Sampler


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


def random_rows(codes: np.ndarray, rows: int, *, seed: int) -> np.ndarray:
    """Draw rows uniformly at random, then see to it that no class is without a row.

    A class that was not drawn gets one of its rows, in the place of the row drawn last of the classes that have
    several. Otherwise the sample is uniform, as in the paper.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        The class number of each row.
    rows : int
        How many to draw, from the number of classes to n.
    seed : int
        The same seed draws the same rows.

    Returns
    -------
    ndarray of int
        Sorted positions, none twice.

    Examples
    --------
    >>> codes = np.array([0] * 99 + [1])
    >>> drawn = random_rows(codes, 5, seed=0)
    >>> len(drawn), np.bincount(codes[drawn]).tolist()
    (5, [4, 1])
    """
    order = np.random.default_rng([seed, 0x5A]).permutation(len(codes))
    drawn, left = order[:rows].copy(), order[rows:]
    counts = np.bincount(codes[drawn], minlength=int(codes.max()) + 1)
    for absent in np.setdiff1d(codes, codes[drawn]).tolist():
        giving = int(np.flatnonzero(counts[codes[drawn]] > 1)[-1])
        counts[codes[drawn[giving]]] -= 1
        drawn[giving] = left[codes[left] == absent][0]
        counts[absent] = 1
    return np.sort(drawn)
