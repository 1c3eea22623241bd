"""Distances between rows and centres, in blocks that bound memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

# Cells of the row-by-centre matrix held at once: 4 Mi float32 cells are 16 MiB.
_CELLS = 4 * 2**20


def score_blocks(X: np.ndarray, centers: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield blocks of rows with ``|c|^2 - 2 x.c`` for every centre; adding ``|x|^2`` gives the squared distances.

    Examples
    --------
    >>> [(rows, scores)] = score_blocks(np.array([[1.0], [3.0]]), np.array([[0.0], [2.0]]))
    >>> scores + np.array([[1.0], [9.0]])
    array([[1., 1.],
           [9., 1.]])
    """
    norms = np.einsum("ij,ij->i", centers, centers)
    size = max(1, _CELLS // len(centers))
    for start in range(0, len(X), size):
        rows = slice(start, start + size)
        scores = X[rows] @ centers.T
        scores *= -2
        scores += norms
        yield rows, scores
