"""What stands for a cluster: its mean, or the real row next to it; and who stands behind each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from c2tc_pipeline.clustering.lloyd import Clusters
from c2tc_pipeline.clustering.rows import release_pages, row_array, row_chunks

REPRESENTATIVES = ("centroid", "medoid")


class SingletonWarning(UserWarning):
    """Some condensed rows stand for one source row each, and so repeat a real record."""


def singleton_message(singletons: int, rows: int) -> str:
    """Return what to tell people about condensed rows that repeat a source row.

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


def condensed_of_sorted(results: Sequence[Clusters]) -> np.ndarray:
    """Return the condensed row of each row, for rows in the order of their classes."""
    condensed = row_array(sum(len(result.labels) for result in results))
    first_row, first = 0, 0
    for result in results:
        for run in row_chunks(len(result.labels)):
            condensed[first_row + run.start : first_row + run.stop] = result.labels[run] + np.int32(first)
            release_pages(condensed)
            release_pages(result.labels)
        first_row, first = first_row + len(result.labels), first + len(result.centers)
    return condensed


def nearest_rows(edges: np.ndarray, results: Sequence[Clusters]) -> np.ndarray:
    """Return, for each cluster of each class, the position in the sorted rows of the member next to its centre."""
    return np.concatenate([start + result.nearest for start, result in zip(edges[:-1], results, strict=True)])


def equal_but_for_rounding(nearest: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return which means equal the row next to them: if any row equals a mean, that one does.

    Examples
    --------
    >>> equal_but_for_rounding(np.array([[0.3], [0.5]]), np.array([[0.1 + 0.2], [0.6]])).tolist()
    [True, False]
    """
    tolerance = 4 * np.finfo(centers.dtype).eps * np.abs(centers).max(initial=0.0)
    return np.asarray((np.abs(nearest - centers) <= tolerance).all(axis=1))
