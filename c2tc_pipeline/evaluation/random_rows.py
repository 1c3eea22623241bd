"""Uniform random samples with at least one row of each class."""

from __future__ import annotations

import numpy as np


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
