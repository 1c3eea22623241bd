"""imbalanced-learn's ClusterCentroids with the budgets that all rivals have."""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.allocation.shares import proportional_counts
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.sampler import CondensedRows, Sampler


class ClusterCentroidsRows(Sampler):
    """Replace each class by the k-means centroids that imbalanced-learn computes.

    ``imblearn.under_sampling.ClusterCentroids`` with its default KMeans, and with counts in proportion to class sizes,
    so that it competes at the same number of rows as the others. A class that keeps all its rows is not clustered.
    imbalanced-learn does not say how many rows a centroid stands for, so there are no weights.

    Costs a full k-means a class: rows times centroids times columns for each of up to 300 rounds.

    Parameters
    ----------
    ratio : float, default=0.01
        Centroids as a share of the rows; every class gets at least one.
    rows : int, optional
        Centroids in all, instead of a ratio.
    random_state : int, default=0
        The ``random_state`` of ClusterCentroids.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0], [20.0], [22.0]])
    >>> centroids, _ = ClusterCentroidsRows(rows=3).fit_resample(X, [0, 0, 0, 0, 1, 1])
    >>> sorted(centroids.ravel().tolist())
    [0.5, 9.5, 21.0]
    """

    def __init__(self, ratio: float = 0.01, *, rows: int | None = None, random_state: int = 0) -> None:
        self.ratio = ratio
        self.rows = rows
        self.random_state = random_state

    def condense(self, X: np.ndarray, edges: np.ndarray, budget: int) -> CondensedRows:
        """Cluster the classes; see :meth:`Sampler.condense`."""
        try:
            from imblearn.under_sampling import ClusterCentroids
        except ImportError:
            raise InputError(
                "The rival 'cluster_centroids' needs imbalanced-learn, which is not installed; "
                "run: pip install 'c2tc_pipeline[bench]'."
            ) from None
        sizes = np.diff(edges)
        counts = proportional_counts(sizes, budget, sizes)
        codes = np.repeat(np.arange(len(sizes)), sizes)
        # Classes that are not named pass through; k-means with a cluster a row would be long and change nothing.
        strategy = {code: int(counts[code]) for code in np.flatnonzero(counts < sizes).tolist()}
        centroids, labels = ClusterCentroids(sampling_strategy=strategy, random_state=self.random_state).fit_resample(
            X, codes
        )
        return CondensedRows(centroids.astype(X.dtype, copy=False), labels)
