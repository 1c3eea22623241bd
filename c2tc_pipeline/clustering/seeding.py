"""Starting centres: greedy k-means++, and relocation of centres on a sample of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from c2tc_pipeline.clustering.kernels import Kernel
from c2tc_pipeline.clustering.lloyd import Descent, descend
from c2tc_pipeline.clustering.rows import RowBlock

# Cells of the row-by-centre matrix held at once: 4 Mi float32 cells are 16 MiB.
_SCORE_CELLS = 4 * 2**20
# Lloyd on a sample stops at a step that lowers the loss by less than this share.
_SAMPLE_TOL = 1e-3
# Share of the centres that the first round of relocation moves, and the gain below which a round is undone.
_RELOCATED_SHARE = 0.1
_MIN_GAIN = 1e-4


def extend_centers(
    X: np.ndarray, centers: np.ndarray | None, k: int, rng: np.random.Generator, *, weight: np.ndarray | None = None
) -> np.ndarray:
    """Add rows to the given centres until there are ``k``, by greedy k-means++.

    Each new centre is the best of ``2 + log(k)`` rows drawn in proportion to their squared distance from the nearest
    centre. Without the greedy choice the loss after Lloyd was 4 % higher on Covertype's largest class in 283 clusters.
    """
    known = 0 if centers is None else len(centers)
    if known > k:
        raise ValueError(f"{known} centres are more than the {k} wanted.")
    found = np.empty((k, X.shape[1]), dtype=X.dtype)
    if centers is not None:
        found[:known] = centers
    if known == k:
        return found
    norms = np.einsum("ij,ij->i", X, X)
    nearest: np.ndarray | None = None
    if known:
        nearest = np.maximum(np.concatenate([scores.min(axis=1) for _, scores in _scores(X, found[:known])]) + norms, 0)
    # With the norms folded in, the product of a few rows with this matrix is the squared distance itself; contiguous
    # columns make it more than twice as fast.
    columns = np.ones((X.shape[1] + 2, len(X)), X.dtype)
    np.multiply(X.T, -2, out=columns[:-2])
    columns[-2] = norms
    trials = 2 + int(np.log(k))
    distances = np.empty((trials, len(X)), X.dtype)
    for position in range(known, k):
        mass = np.ones(len(X), X.dtype) if nearest is None else nearest
        drawn = _draw(mass if weight is None else mass * weight, 1 if nearest is None else trials, rng)
        folded = np.column_stack([X[drawn], np.ones_like(norms[drawn]), norms[drawn]])
        candidates = np.matmul(folded, columns, out=distances[: len(drawn)])
        if nearest is not None:
            np.minimum(candidates, nearest, out=candidates)
        remaining = candidates.sum(axis=1) if weight is None else candidates @ weight
        best = int(np.argmin(remaining))
        # Rounding may leave negative distances.
        nearest = np.maximum(candidates[best], 0)
        nearest[drawn[best]] = 0
        found[position] = X[drawn[best]]
    return found


def _draw(mass: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw positions with probability proportional to ``mass``, uniformly if all of it is zero."""
    cumulated = np.cumsum(mass, dtype=np.float64)
    if cumulated[-1] <= 0:
        return rng.integers(len(mass), size=size)
    return np.minimum(np.searchsorted(cumulated, rng.random(size) * cumulated[-1], side="right"), len(mass) - 1)


def start_on_sample(
    kernel: Kernel,
    sample: RowBlock,
    sizes: Sequence[int],
    k: int,
    init: np.ndarray | None,
    seeds: Sequence[np.random.SeedSequence],
    max_iter: int,
    rounds: int,
) -> np.ndarray:
    """Return centres for all rows: Lloyd and relocation on the first rows of a sample, then Lloyd on ever more."""
    X, weight = sample.rows.read(), sample.weight
    few, *more = [(X[:size], None if weight is None else weight[:size]) for size in sizes or [len(X)]]
    start = extend_centers(few[0], init, k, np.random.default_rng(seeds[0]), weight=few[1])
    first = descend(kernel, few[0], start, weight=few[1], max_iter=max_iter, tol=_SAMPLE_TOL)
    rng = np.random.default_rng(seeds[1])
    centers = relocate_centers(few[0], first, kernel, rng, weight=few[1], rounds=rounds).centers
    for rows, row_weight in more:
        centers = descend(kernel, rows, centers, weight=row_weight, max_iter=max_iter, tol=_SAMPLE_TOL).centers
    return centers


def relocate_centers(
    X: np.ndarray,
    start: Descent,
    kernel: Kernel,
    rng: np.random.Generator,
    *,
    weight: np.ndarray | None = None,
    rounds: int = 6,
) -> Descent:
    """Move centres that are hardly needed into the clusters with the largest loss; the loss never rises.

    Lloyd cannot move a centre across empty space. A round that does not pay is undone and the next moves half as many.
    """
    best = start
    k = len(start.centers)
    moving = max(1, int(k * _RELOCATED_SHARE))
    for _ in range(rounds):
        if moving < 1 or k < 2:
            break
        moved = _move_centers(X, best.centers, moving, rng, weight)
        candidate = descend(kernel, X, moved, weight=weight, tol=_SAMPLE_TOL)
        if candidate.inertia < best.inertia * (1 - _MIN_GAIN):
            best = candidate
        else:
            moving //= 2
    return best


def _move_centers(
    X: np.ndarray, centers: np.ndarray, moving: int, rng: np.random.Generator, weight: np.ndarray | None
) -> np.ndarray:
    k = len(centers)
    own, other, labels = _two_nearest(X, centers)
    row_weight = np.ones(len(X)) if weight is None else weight.astype(np.float64)
    loss = np.bincount(labels, own * row_weight, k)
    need = np.bincount(labels, (other - own) * row_weight, k)
    spare = np.argsort(need, kind="stable")[:moving]
    worst = np.argsort(-loss, kind="stable")
    worst = worst[~np.isin(worst, spare)][:moving]
    moved = centers.copy()
    order = np.argsort(labels, kind="stable")
    edges = np.searchsorted(labels[order], np.arange(k + 1))
    for source, target in zip(spare, worst, strict=False):
        members = order[edges[target] : edges[target + 1]]
        cumulated = np.cumsum(own[members] * row_weight[members])
        if len(members) and cumulated[-1] > 0:
            moved[source] = X[members[np.searchsorted(cumulated, rng.random() * cumulated[-1])]]
    return moved


def _two_nearest(X: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each row's squared distances to its nearest and second nearest centre, and the nearest centre."""
    own, other = np.empty(len(X)), np.empty(len(X))
    labels = np.empty(len(X), dtype=np.int64)
    for rows, scores in _scores(X, centers):
        norms = np.einsum("ij,ij->i", X[rows], X[rows])
        nearest = scores.argmin(axis=1)
        position = np.arange(len(nearest))
        labels[rows] = nearest
        own[rows] = np.maximum(scores[position, nearest] + norms, 0)
        scores[position, nearest] = np.inf
        other[rows] = scores.min(axis=1) + norms
    return own, other, labels


def _scores(X: np.ndarray, centers: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield ranges of rows with ``|c|^2 - 2 x.c`` for every centre; adding ``|x|^2`` gives squared distances."""
    norms = np.einsum("ij,ij->i", centers, centers)
    size = max(1, _SCORE_CELLS // len(centers))
    for start in range(0, len(X), size):
        rows = slice(start, start + size)
        scores = X[rows] @ centers.T
        scores *= -2
        scores += norms
        yield rows, scores
