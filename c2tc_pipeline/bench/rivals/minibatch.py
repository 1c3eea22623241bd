"""Mini-batch k-means in each class, the quick clustering that people reach for."""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.condensation.sampler import ClassSampler, CondensedClass

# Rows whose differences from their centres are held at once.
_CHUNK_ROWS = 32_768


class MiniBatchRows(ClassSampler):
    """Replace each class by the centres of scikit-learn's MiniBatchKMeans.

    Sculley, "Web-scale k-means clustering", WWW 2010, one start, with budgets in proportion to class sizes.
    Mini-batches can leave a centre without a row, more so where rows are equal: such a centre becomes the row that
    lies farthest from its own centre, so that the number of rows is exact and every centre stands for some row.

    Costs a few passes over the rows in batches, and one pass of rows times centres times columns for the cluster sizes.

    Parameters
    ----------
    ratio : float, default=0.01
        Centres as a share of the rows; every class gets at least one.
    rows : int, optional
        Centres in all, instead of a ratio.
    batch_size : int, default=4096
        Rows a step.
    random_state : int, default=0
        Determines the start and the batches.

    Attributes
    ----------
    weights_ : ndarray of int
        How many source rows are nearest to each centre.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [9.0], [10.0], [20.0], [22.0]])
    >>> sampler = MiniBatchRows(rows=3)
    >>> centres, _ = sampler.fit_resample(X, [0, 0, 0, 0, 1, 1])
    >>> len(centres), sampler.weights_.tolist()
    (3, [2, 2, 2])
    """

    def __init__(
        self, ratio: float = 0.01, *, rows: int | None = None, batch_size: int = 4096, random_state: int = 0
    ) -> None:
        self.ratio = ratio
        self.rows = rows
        self.batch_size = batch_size
        self.random_state = random_state

    def condense_class(self, X: np.ndarray, count: int, rng: np.random.Generator) -> CondensedClass:
        """Cluster the class into ``count`` non-empty clusters."""
        from sklearn.cluster import MiniBatchKMeans

        if count == len(X):
            return CondensedClass(X=X, weights=np.ones(count, dtype=np.int64))
        seed = int(rng.integers(2**31))
        found = MiniBatchKMeans(count, n_init=1, batch_size=self.batch_size, random_state=seed).fit(X)
        centres, sizes = _fill_empty(X, found.cluster_centers_.astype(X.dtype, copy=False), found.labels_)
        return CondensedClass(X=centres, weights=sizes)


def _fill_empty(X: np.ndarray, centres: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Put a row in the place of each centre that has none; return centres and cluster sizes.

    Examples
    --------
    >>> X = np.array([[0.0], [0.0], [3.0]])
    >>> centres, sizes = _fill_empty(X, np.array([[1.0], [7.0]]), np.array([0, 0, 0]))
    >>> centres.ravel().tolist(), sizes.tolist()
    ([1.0, 3.0], [2, 1])
    """
    centres = centres.copy()
    sizes = np.bincount(labels, minlength=len(centres))
    empty = np.flatnonzero(sizes == 0).tolist()
    if not empty:
        return centres, sizes
    distances = np.empty(len(X))
    for start in range(0, len(X), _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        distances[rows] = ((X[rows] - centres[labels[rows]]) ** 2).sum(axis=1)
    farthest = iter(np.argsort(-distances, kind="stable").tolist())
    for centre in empty:
        row = next(row for row in farthest if sizes[labels[row]] > 1)
        sizes[labels[row]] -= 1
        sizes[centre] = 1
        centres[centre] = X[row]
    return centres, sizes
