"""What stands for a cluster: its mean, or the real row next to it; and who stands behind each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from c2tc_pipeline.clustering import KMeansResult
from c2tc_pipeline.clustering.partition import own_gaps

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


def condensed_of_rows(results: Sequence[KMeansResult], order: np.ndarray) -> np.ndarray:
    """Return the condensed row of each source row, given where the sorted rows stand in the source."""
    offsets = np.cumsum([0, *(len(result.centers) for result in results)])
    membership = np.empty(len(order), dtype=np.int32)
    membership[order] = np.concatenate([r.labels + o for r, o in zip(results, offsets[:-1], strict=True)])
    return membership


def nearest_rows(X: np.ndarray, edges: np.ndarray, results: Sequence[KMeansResult]) -> np.ndarray:
    """Return, for each cluster of each class, the position in ``X`` of the member next to its centre."""
    nearest = []
    for start, end, result in zip(edges[:-1], edges[1:], results, strict=True):
        order = np.lexsort((own_gaps(X[start:end], result.labels, result.centers), result.labels))
        first = np.searchsorted(result.labels[order], np.arange(len(result.centers)))
        nearest.append(start + order[first])
    return np.concatenate(nearest)
