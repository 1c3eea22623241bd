"""Relocation: centres that are hardly needed move to where the loss is.

Lloyd cannot carry a centre across empty space, so a poor start stays poor. A round takes the centres whose rows would
be served almost as well by their neighbours, puts them among the rows of the worst clusters, and lets Lloyd settle.
Rounds that do not pay are undone and the next one moves half as many.
"""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.clustering.distances import score_blocks
from c2tc_pipeline.clustering.engine import Engine
from c2tc_pipeline.clustering.lloyd import Descent

_FIRST_SHARE = 0.1
_LEAST_GAIN = 1e-4


def relocate_centers(
    X: np.ndarray,
    start: Descent,
    engine: Engine,
    rng: np.random.Generator,
    *,
    weight: np.ndarray | None = None,
    rounds: int = 6,
    tol: float = 1e-3,
) -> Descent:
    """Improve centres by moving some of them; the loss never rises.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows that ``start`` was found for.
    start : Descent
        Centres to improve.
    engine : Engine
        What computes the Lloyd steps.
    rng : numpy.random.Generator
        Picks the rows that centres move to.
    weight : ndarray of shape (n,), optional
        Weights of the rows.
    rounds : int
        Most rounds.
    tol : float
        Stopping rule of Lloyd within a round.

    Examples
    --------
    >>> from c2tc_pipeline.clustering.engine import make_engine
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1], [9.0], [9.1]], dtype=np.float32)
    >>> engine = make_engine("cpu")
    >>> poor = engine.fit(X, 3, init=np.array([[0.0], [0.1], [7.0]], dtype=np.float32))
    >>> relocate_centers(X, poor, engine, np.random.default_rng(0)).inertia < poor.inertia
    True
    """
    best = start
    k = len(start.centers)
    moving = max(1, int(k * _FIRST_SHARE))
    for _ in range(rounds):
        if moving < 1 or k < 2:
            break
        moved = _moved_centers(X, best, moving, rng, weight)
        candidate = engine.descend(X, k, init=moved, weight=weight, tol=tol)
        if candidate.inertia < best.inertia * (1 - _LEAST_GAIN):
            best = candidate
        else:
            moving //= 2
    return best


def _moved_centers(
    X: np.ndarray, result: Descent, moving: int, rng: np.random.Generator, weight: np.ndarray | None
) -> np.ndarray:
    k = len(result.centers)
    own, other, labels = _two_nearest(X, result.centers)
    row_weight = np.ones(len(X)) if weight is None else weight.astype(np.float64)
    loss = np.bincount(labels, own * row_weight, k)
    need = np.bincount(labels, (other - own) * row_weight, k)
    spare = np.argsort(need, kind="stable")[:moving]
    worst = np.argsort(-loss, kind="stable")
    worst = worst[~np.isin(worst, spare)][:moving]
    centers = result.centers.copy()
    order = np.argsort(labels, kind="stable")
    edges = np.searchsorted(labels[order], np.arange(k + 1))
    for source, target in zip(spare, worst, strict=False):
        members = order[edges[target] : edges[target + 1]]
        ladder = np.cumsum(own[members] * row_weight[members])
        if len(members) and ladder[-1] > 0:
            centers[source] = X[members[np.searchsorted(ladder, rng.random() * ladder[-1])]]
    return centers


def _two_nearest(X: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each row's squared distances to its nearest and second nearest centre, and the nearest centre."""
    own, other = np.empty(len(X)), np.empty(len(X))
    labels = np.empty(len(X), dtype=np.int64)
    for rows, scores in score_blocks(X, centers):
        norms = np.einsum("ij,ij->i", X[rows], X[rows])
        nearest = scores.argmin(axis=1)
        position = np.arange(len(nearest))
        labels[rows] = nearest
        own[rows] = np.maximum(scores[position, nearest] + norms, 0)
        scores[position, nearest] = np.inf
        other[rows] = scores.min(axis=1) + norms
    return own, other, labels
