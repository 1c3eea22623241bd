"""The cheapest assignment of rows to centres that gives every centre at least so many rows.

A minimum-cost flow, solved on the graph of clusters rather than of rows: an edge from one cluster to another costs what
the cheapest of its rows would lose by moving there. It starts from the nearest centres, which is optimal without the
demand, and sends one row at a time along the cheapest path from a cluster that can spare one to one that lacks one;
such paths keep the assignment optimal for the sizes reached so far, so that the last one is optimal for the demand.

The tables of that graph grow with the square of the centres. Many centres are therefore divided along their widest
direction, the rows with them, until few are left in each part; within a part the assignment is optimal.
"""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.clustering.distances import score_blocks
from c2tc_pipeline.clustering.partition import chunks

# Centres that are solved together: the tables of 256 take one megabyte.
_MOST_CENTERS = 256


def assign_at_least(X: np.ndarray, centers: np.ndarray, nearest: np.ndarray, least: int) -> np.ndarray:
    """Return the cluster of each row, every cluster with at least ``least`` rows, at the smallest sum of squares.

    Optimal up to 256 centres; with more, each part of them is, for the rows that it got.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows.
    centers : ndarray of shape (k, d)
        The centres, with ``k * least <= n``.
    nearest : ndarray of int of shape (n,)
        The nearest centre of each row.
    least : int
        Rows that each cluster must have.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [0.2], [0.4], [5.0]])
    >>> assign_at_least(X, np.array([[0.0], [5.0]]), np.array([0, 0, 0, 0, 1]), 2).tolist()
    [0, 0, 0, 1, 1]
    """
    if len(centers) * least > len(X):
        raise ValueError(f"{len(X)} rows are too few for {len(centers)} clusters of {least} rows.")
    labels = nearest.astype(np.int64)
    _assign_part(X, centers, labels, np.arange(len(X)), np.arange(len(centers)), least)
    return labels.astype(np.int32)


def _assign_part(
    X: np.ndarray, centers: np.ndarray, labels: np.ndarray, rows: np.ndarray, part: np.ndarray, least: int
) -> None:
    """Settle the labels of some rows, all of them in clusters of one part of the centres."""
    if (np.bincount(labels[rows], minlength=len(centers))[part] >= least).all():
        return
    if len(part) <= _MOST_CENTERS:
        place = np.empty(len(centers), dtype=np.int64)
        place[part] = np.arange(len(part))
        own = X if len(rows) == len(X) else X[rows]
        labels[rows] = part[_ClusterGraph(own, centers[part], place[labels[rows]], least).solve()]
        return
    halves = _halves(centers, part)
    in_first = np.isin(labels[rows], halves[0])
    sides = [rows[in_first], rows[~in_first]]
    for side in (0, 1):
        lacking = len(halves[side]) * least - len(sides[side])
        if lacking > 0:
            sides = _lend(X, centers, labels, sides, halves, side, lacking)
    for side in (0, 1):
        _assign_part(X, centers, labels, sides[side], halves[side], least)


def _halves(centers: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divide centres at the median of the coordinate in which they differ most."""
    own = centers[part]
    order = np.argsort(own[:, int(own.var(axis=0).argmax())], kind="stable")
    middle = len(part) // 2
    return np.sort(part[order[:middle]]), np.sort(part[order[middle:]])


def _lend(
    X: np.ndarray,
    centers: np.ndarray,
    labels: np.ndarray,
    sides: list[np.ndarray],
    halves: tuple[np.ndarray, np.ndarray],
    side: int,
    lacking: int,
) -> list[np.ndarray]:
    """Move the rows that lose least to the half that has too few for its clusters."""
    lender = sides[1 - side]
    best, cost = np.empty(len(lender), dtype=np.int64), np.empty(len(lender))
    for run in chunks(len(lender), X.shape[1]):
        some = lender[run]
        rows, own = X[some].astype(np.float64), centers[labels[some]].astype(np.float64)
        kept_score = np.einsum("ij,ij->i", own, own) - 2 * np.einsum("ij,ij->i", rows, own)
        for block, scores in score_blocks(rows, centers[halves[side]].astype(np.float64)):
            here = slice(run.start + block.start, run.start + min(block.stop, len(some)))
            best[here] = scores.argmin(axis=1)
            cost[here] = scores.min(axis=1) - kept_score[block]
    moved = np.sort(np.argsort(cost, kind="stable")[:lacking])
    labels[lender[moved]] = halves[side][best[moved]]
    kept = np.ones(len(lender), dtype=bool)
    kept[moved] = False
    changed = list(sides)
    changed[side] = np.sort(np.concatenate([sides[side], lender[moved]]))
    changed[1 - side] = lender[kept]
    return changed


class _ClusterGraph:
    """Clusters, and what the cheapest row of each would lose by moving to another one.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    centers : ndarray of shape (k, d)
        Centres.
    labels : ndarray of int
        The nearest centre of each row.
    least : int
        Rows that each cluster must have.
    """

    def __init__(self, X: np.ndarray, centers: np.ndarray, labels: np.ndarray, least: int) -> None:
        self.X = X
        self.centers = centers.astype(np.float64)
        self.norms = np.einsum("ij,ij->i", self.centers, self.centers)
        self.labels = labels.copy()
        self.least = least
        self.sizes = np.bincount(labels, minlength=len(centers))
        k = len(centers)
        self.cost = np.full((k, k), np.inf)
        self.row = np.full((k, k), -1, dtype=np.int64)
        self.potential = np.zeros(k)

    def solve(self) -> np.ndarray:
        """Move rows until no cluster lacks any, and return the labels."""
        order = np.argsort(self.labels, kind="stable")
        edges = np.searchsorted(self.labels[order], np.arange(len(self.centers) + 1))
        for cluster in range(len(self.centers)):
            self._look(cluster, order[edges[cluster] : edges[cluster + 1]], np.arange(len(self.centers)))
        while (self.sizes < self.least).any():
            self._send_one()
        return self.labels

    def _look(self, cluster: int, members: np.ndarray, targets: np.ndarray) -> None:
        """Find the cheapest row of a cluster for some others."""
        self.cost[cluster, targets], self.row[cluster, targets] = np.inf, -1
        # In blocks: a cluster may hold most rows of a large class.
        size = max(1, 2**20 // len(self.centers))
        for start in range(0, len(members), size):
            some = members[start : start + size]
            scores = self._scores(self.X[some])
            losses = scores[:, targets] - scores[:, cluster, None]
            first = losses.argmin(axis=0)
            found = losses[first, np.arange(len(targets))]
            better = found < self.cost[cluster, targets]
            self.cost[cluster, targets[better]] = found[better]
            self.row[cluster, targets[better]] = some[first[better]]
        self.cost[cluster, cluster] = np.inf

    def _scores(self, X: np.ndarray) -> np.ndarray:
        return self.norms - 2 * (X.astype(np.float64) @ self.centers.T)

    def _send_one(self) -> None:
        """Bring one row to a cluster that lacks some, along the cheapest path (Dijkstra, from the path's end).

        The potential of a cluster is the cost of its cheapest path; with it no edge costs less than nothing, although
        moving a row back would. A cluster that lacks rows is the end of a path, so that its potential is 0.
        """
        spare = self.sizes > self.least
        base = self.potential[spare].min()
        lacking = np.flatnonzero(self.sizes < self.least)
        # All ends are settled at once: the first step of everybody's path backwards.
        ends = self.cost[:, lacking]
        first = ends.argmin(axis=1)
        following = lacking[first]
        distance = np.maximum(ends[np.arange(len(ends)), first] - self.potential, 0.0)
        distance[lacking], following[lacking] = 0.0, -1
        pending = self.sizes >= self.least
        reach, source = np.inf, -1
        while True:
            here = int(np.where(pending, distance, np.inf).argmin())
            if not pending[here] or distance[here] >= reach:
                break
            pending[here] = False
            if spare[here] and distance[here] + self.potential[here] - base < reach:
                reach, source = distance[here] + self.potential[here] - base, here
            # Rounding must not make a step cost less than nothing.
            step = np.maximum(self.cost[:, here] + self.potential[here] - self.potential, 0.0)
            shorter = pending & (distance[here] + step < distance)
            distance[shorter] = distance[here] + step[shorter]
            following[shorter] = here
        self.potential += np.minimum(distance, reach)
        self._move_along(source, following)

    def _move_along(self, cluster: int, following: np.ndarray) -> None:
        while (target := int(following[cluster])) >= 0:
            row = int(self.row[cluster, target])
            self.labels[row] = target
            self.sizes[cluster] -= 1
            self.sizes[target] += 1
            lost = np.flatnonzero(self.row[cluster] == row)
            self._look(cluster, np.flatnonzero(self.labels == cluster), lost)
            scores = self._scores(self.X[row : row + 1])[0]
            losses = scores - scores[target]
            cheaper = losses < self.cost[target]
            cheaper[target] = False
            self.cost[target, cheaper] = losses[cheaper]
            self.row[target, cheaper] = row
            cluster = target
