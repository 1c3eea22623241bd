"""The clusters of all classes: means, sizes and members, in the order of the condensed rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from c2tc_pipeline.allocation.result import Allocation
from c2tc_pipeline.clustering.lloyd import ClassClusters
from c2tc_pipeline.clustering.rows import RowSource, release_pages, row_array, row_chunks

REPRESENTATIVES = ("centroid", "medoid")


class SingletonWarning(UserWarning):
    """Some condensed rows stand for one source row each, and so repeat a real record."""


def singleton_message(singletons: int, rows: int) -> str:
    """Return the notice about condensed rows that repeat a source row.

    Examples
    --------
    >>> print(singleton_message(2, 40))
    2 of 40 condensed rows stand for a single source row and repeat it; choose a smaller ratio if records must not show.
    """
    verbs = ("stands", "repeats") if singletons == 1 else ("stand", "repeat")
    return (
        f"{singletons} of {rows} condensed rows {verbs[0]} for a single source row and {verbs[1]} it; "
        "choose a smaller ratio if records must not show."
    )


@dataclass(frozen=True)
class Clusters:
    """The clusters of all classes; cluster i is condensed row i.

    Parameters
    ----------
    allocation : Allocation
        Clusters per class, with the objective measured over all rows.
    centers : ndarray of shape (k, d)
        The mean of each cluster.
    weights : ndarray of int
        Rows of each cluster.
    labels : ndarray of int32
        The cluster of each row, for rows sorted by class; in a temporary file when rows are many.
    nearest : ndarray of int
        The position, in rows sorted by class, of the member nearest to each mean.
    """

    allocation: Allocation
    centers: np.ndarray
    weights: np.ndarray
    labels: np.ndarray
    nearest: np.ndarray

    @classmethod
    def joined(cls, allocation: Allocation, edges: np.ndarray, results: Sequence[ClassClusters]) -> Clusters:
        """Join the clusters of each class."""
        labels = row_array(int(edges[-1]))
        first = 0
        for start, result in zip(edges[:-1].tolist(), results, strict=True):
            for run in row_chunks(len(result.labels)):
                labels[start + run.start : start + run.stop] = result.labels[run] + np.int32(first)
                release_pages(labels)
                release_pages(result.labels)
            first += len(result.centers)
        return cls(
            allocation=allocation,
            centers=np.vstack([result.centers for result in results]),
            weights=np.concatenate([result.counts for result in results]).astype(np.int64),
            labels=labels,
            nearest=np.concatenate([start + result.nearest for start, result in zip(edges[:-1], results, strict=True)]),
        )

    @property
    def codes(self) -> np.ndarray:
        """The class number of each cluster."""
        return np.repeat(np.arange(len(self.allocation.counts)), self.allocation.counts)

    @property
    def singletons(self) -> int:
        """Clusters of a single row."""
        return int((self.weights == 1).sum())

    def members(self, places: np.ndarray) -> np.ndarray:
        """Return the clusters of the rows at these positions in rows sorted by class."""
        found = np.asarray(self.labels[places])
        release_pages(self.labels)
        return found

    def repeats(self, rows: RowSource) -> np.ndarray:
        """Return which means equal a row: if any row equals a mean but for rounding, the nearest one does."""
        return equal_but_for_rounding(rows.take(self.nearest), self.centers)


def equal_but_for_rounding(nearest: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return which rows of two arrays are equal within a few units of the last place.

    Examples
    --------
    >>> equal_but_for_rounding(np.array([[0.3], [0.5]]), np.array([[0.1 + 0.2], [0.6]])).tolist()
    [True, False]
    """
    tolerance = 4 * np.finfo(centers.dtype).eps * np.abs(centers).max(initial=0.0)
    return np.asarray((np.abs(nearest - centers) <= tolerance).all(axis=1))
