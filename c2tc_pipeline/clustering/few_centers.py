"""Steps with few centres: scikit-learn's compiled kernel.

With few centres a row's scores are found so fast that numpy, which begins anew with each row, takes twice as long to
see which of them is largest. The kernel is private to scikit-learn, so this file is the only one that may touch it. The
public ``KMeans`` copies and centres the rows on every call and offers neither a warm-started step nor our stopping
rule.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster._k_means_lloyd import lloyd_iter_chunked_dense

from c2tc_pipeline.common.threads import one_blas_thread


def step_of_few(X: np.ndarray, weight: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Do a Lloyd step on one thread, since the kernel adds the sums of several in the order in which they finish.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows, C-contiguous.
    weight : ndarray of shape (n,)
        Their weights, in the precision of the rows.
    centers : ndarray of shape (k, d)
        The centres, in the precision of the rows.

    Returns
    -------
    updated, counts : tuple of ndarray
        The new centres and the weight of each cluster; an empty cluster has moved to a row that is served worst.

    Examples
    --------
    >>> X = np.array([[0.0], [0.5], [1.0]], dtype=np.float32)
    >>> updated, counts = step_of_few(X, np.ones(3, dtype=np.float32), X[[0, 2]])
    >>> updated.ravel().tolist(), counts.tolist()
    ([0.25, 1.0], [2.0, 1.0])
    """
    updated = np.zeros_like(centers)
    counts = np.zeros(len(centers), dtype=X.dtype)
    _run(X, weight, centers, updated, counts, 1, update_centers=True)
    return updated, counts.astype(np.float64)


def nearest_of_few(X: np.ndarray, weight: np.ndarray, centers: np.ndarray, threads: int) -> np.ndarray:
    """Return the nearest centre of each row, as int32; of several the first. Otherwise as :func:`step_of_few`."""
    counts = np.zeros(len(centers), dtype=X.dtype)
    return _run(X, weight, centers, centers.copy(), counts, threads, update_centers=False)


def _run(
    X: np.ndarray,
    weight: np.ndarray,
    centers: np.ndarray,
    updated: np.ndarray,
    counts: np.ndarray,
    threads: int,
    *,
    update_centers: bool,
) -> np.ndarray:
    labels = np.empty(len(X), dtype=np.int32)
    shift = np.zeros(len(centers), dtype=X.dtype)
    # The kernel runs one small matrix product per thread; BLAS threads inside OpenMP threads would fight.
    with one_blas_thread():
        lloyd_iter_chunked_dense(
            X, weight, centers, updated, counts, labels, shift, threads, update_centers=update_centers
        )
    return labels
