"""Mini-batch k-means in each class."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from c2tc_pipeline.bench.rivals import ClassRival, CondensedClass

# Rows whose differences from their centres are held at once.
_CHUNK_ROWS = 32_768


@dataclass(eq=False, repr=False)
class MiniBatchRows(ClassRival):
    """The centres of scikit-learn's MiniBatchKMeans, weighted by the number of rows nearest to each.

    Mini-batches can leave a centre without a row: such a centre becomes the row that lies farthest from its own centre,
    so that the number of rows is exact.
    """

    _: KW_ONLY
    batch_size: int = 4096

    def condense_class(self, X: np.ndarray, count: int, rng: np.random.Generator) -> CondensedClass:
        from sklearn.cluster import MiniBatchKMeans

        if count == len(X):
            return CondensedClass(X=X, weights=np.ones(count, dtype=np.int64))
        seed = int(rng.integers(2**31))
        found = MiniBatchKMeans(count, n_init=1, batch_size=self.batch_size, random_state=seed).fit(X)
        centres, sizes = fill_empty(X, found.cluster_centers_.astype(X.dtype, copy=False), found.labels_)
        return CondensedClass(X=centres, weights=sizes)


def fill_empty(X: np.ndarray, centres: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Replace each centre without rows by a row; return centres and cluster sizes."""
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
