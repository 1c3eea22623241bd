"""What is computed on one block: functions of their arguments alone, so that any process may do them, or repeat them.

Every function takes a block first and opens it itself; where blocks are not in memory, that is when they are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from c2tc_pipeline.clustering.blocks import Block, OpenBlock
from c2tc_pipeline.clustering.partition import PartitionSums, own_gaps, partition_sums
from c2tc_pipeline.clustering.running_sums import moved_sums

if TYPE_CHECKING:
    from c2tc_pipeline.clustering.engine import Engine

Labelled = tuple[np.ndarray, PartitionSums]
"""The clusters of a block's rows, and what the rows add to them."""


def assign(block: Block | OpenBlock, engine: Engine, centers: np.ndarray, power: bool = True) -> Labelled:
    """Assign rows to their nearest centres; their power is the same each time, and needed once."""
    rows = block.open()
    return label(rows, engine.assign(engine.load(rows.X, rows.weight), centers), len(centers), power=power)


def assign_around(
    block: Block | OpenBlock, before: Labelled, engine: Engine, centers: np.ndarray, around: np.ndarray
) -> Labelled:
    """Assign rows to the nearest of the centres around those that they had."""
    rows = block.open()
    labels = engine.assign_around(rows.X, before[0], centers, around)
    return labels, moved_sums(rows.X, rows.weight, *before, labels)


def label(rows: OpenBlock, labels: np.ndarray, k: int, *, power: bool = True) -> Labelled:
    """Add up what rows contribute to the clusters that they are in."""
    return labels, partition_sums(rows.X, labels, k, rows.weight, power=power)


def farthest(
    block: Block | OpenBlock, labelled: Labelled, centers: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows that are farthest from their centres.

    Returns
    -------
    gaps, labels, rows, positions : tuple of ndarray
        Of at most ``most`` rows, the farthest first: squared distance, cluster, the row itself, its position in the
        block.
    """
    rows = block.open()
    gaps = own_gaps(rows.X, labelled[0], centers)
    order = np.argsort(-gaps, kind="stable")[:most]
    return gaps[order], labelled[0][order], rows.X[order], order


def sizes(labelled: Labelled) -> np.ndarray:
    """Return how many rows, whatever their weights, are in each cluster."""
    return np.bincount(labelled[0], minlength=len(labelled[1].counts))


def relabel(block: Block | OpenBlock, labelled: Labelled, moves: tuple[np.ndarray, np.ndarray]) -> Labelled:
    """Move some rows, given by their positions in the block, to other clusters."""
    positions, clusters = moves
    if not len(positions):
        return labelled
    rows = block.open()
    labels = labelled[0].copy()
    labels[positions] = clusters
    return label(rows, labels, len(labelled[1].counts))


def measure(block: Block | OpenBlock, labelled: Labelled, means: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Measure rows against the means of their clusters.

    Returns
    -------
    inertia : float
        Weighted sum of squared distances.
    least : ndarray of shape (k,)
        The squared distance of the nearest member of each cluster, infinite where it has none here.
    nearest : ndarray of int
        Where that member stands in the class.
    """
    rows = block.open()
    labels = labelled[0]
    gaps = own_gaps(rows.X, labels, means)
    inertia = float(gaps.sum() if rows.weight is None else gaps @ rows.weight.astype(np.float64))
    least = np.full(len(means), np.inf)
    np.minimum.at(least, labels, gaps)
    # Of members at the same distance the first in the class.
    tied = np.flatnonzero(gaps == least[labels])
    nearest = np.full(len(means), np.iinfo(np.int64).max)
    np.minimum.at(nearest, labels[tied], rows.places(tied))
    return inertia, least, nearest
