"""The clustering engine: one Lloyd loop, with the arithmetic of a step left to a processor.

Subclasses say how rows are held on their device and how one step is computed there; the loop, its stopping rule and
the repair of empty clusters are written once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from c2tc_pipeline.clustering.partition import PartitionSums, own_gaps, partition_sums
from c2tc_pipeline.clustering.seeding import extend_centers
from c2tc_pipeline.devices import resolve_device


@dataclass(frozen=True)
class KMeansResult:
    """A partition of rows: every cluster has a member, every centre is the mean of its members.

    Parameters
    ----------
    centers : ndarray of shape (k, d)
        Means of the clusters, in the precision of the rows.
    labels : ndarray of int32
        The cluster of each row.
    counts : ndarray of shape (k,)
        Total weight of each cluster.
    inertia : float
        Within-cluster sum of squares, computed in float64.
    iterations : int
        Lloyd steps taken.
    """

    centers: np.ndarray
    labels: np.ndarray
    counts: np.ndarray
    inertia: float
    iterations: int


class Engine(ABC):
    """K-means on one kind of processor."""

    @abstractmethod
    def load(self, X: np.ndarray, weight: np.ndarray | None) -> Any:
        """Bring rows to the device once; what comes back is passed to :meth:`update` and :meth:`assign`."""

    @abstractmethod
    def update(self, rows: Any, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Do one Lloyd step and return the new centres and the weight of each cluster."""

    @abstractmethod
    def assign(self, rows: Any, centers: np.ndarray) -> np.ndarray:
        """Return the nearest centre of each row, as int32."""

    def step(self, X: np.ndarray, centers: np.ndarray, weight: np.ndarray | None = None) -> PartitionSums:
        """Return what a block of rows adds to the clusters: the map half of a map-reduce Lloyd."""
        labels = self.assign(self.load(X, weight), centers)
        return partition_sums(X, labels, len(centers), weight)

    def fit(
        self,
        X: np.ndarray,
        k: int,
        *,
        init: np.ndarray | None = None,
        seed: int | np.random.SeedSequence = 0,
        weight: np.ndarray | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
    ) -> KMeansResult:
        """Cluster rows by Lloyd's algorithm.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Rows, float32 or float64, C-contiguous.
        k : int
            Number of clusters, at most the number of distinct rows.
        init : ndarray of shape (<= k, d), optional
            Centres to start from; missing ones are added by k-means++ sampling around those given.
        seed : int or SeedSequence
            Determines the sampled centres.
        weight : ndarray of shape (n,), optional
            Weights of the rows.
        max_iter : int
            Most Lloyd steps.
        tol : float
            Stop when a step lowers the inertia by less than this share of it.

        Examples
        --------
        >>> from c2tc_pipeline.clustering import make_engine
        >>> X = np.array([[0.0], [0.2], [1.0]], dtype=np.float32)
        >>> make_engine("cpu").fit(X, 2).inertia.__round__(4)
        0.02
        """
        rng = np.random.default_rng(seed)
        centers = extend_centers(X, np.empty((0, X.shape[1]), X.dtype) if init is None else init, k, rng, weight=weight)
        rows = self.load(X, weight)
        power = _weighted_power(X, weight)
        previous = np.inf
        steps = 0
        while steps < max_iter:
            steps += 1
            centers, counts = self.update(rows, centers)
            # The step's own inertia for free: around their means, rows keep what the means do not explain.
            inertia = power - float(counts @ np.einsum("ij,ij->i", centers, centers, dtype=np.float64))
            if previous - inertia <= tol * inertia:
                break
            previous = inertia
        labels = fill_empty_clusters(X, self.assign(rows, centers), centers)
        sums = partition_sums(X, labels, k, weight)
        means = sums.means()
        gaps = own_gaps(X, labels, means)
        inertia = float(gaps.sum() if weight is None else gaps @ weight.astype(np.float64))
        return KMeansResult(means.astype(X.dtype), labels, sums.counts, inertia, steps)


def fill_empty_clusters(X: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Give each empty cluster the row that is farthest from its own centre, taken from a cluster that can spare it.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [0.9]])
    >>> fill_empty_clusters(X, np.array([0, 0, 0], dtype=np.int32), np.array([[0.0], [5.0]]))
    array([0, 0, 1], dtype=int32)
    """
    sizes = np.bincount(labels, minlength=len(centers))
    empty = np.flatnonzero(sizes == 0)
    if not len(empty):
        return labels
    labels = labels.copy()
    by_distance = np.argsort(-own_gaps(X, labels, centers), kind="stable")
    taker = iter(empty)
    cluster = next(taker)
    for row in by_distance:
        if sizes[labels[row]] > 1:
            sizes[labels[row]] -= 1
            labels[row] = cluster
            following = next(taker, None)
            if following is None:
                break
            cluster = following
    return labels


def make_engine(device: str = "auto") -> Engine:
    """Return the engine for a device setting: scikit-learn's compiled Lloyd on the CPU, torch elsewhere."""
    resolved = resolve_device(device)
    if resolved == "cpu":
        from c2tc_pipeline.clustering.cpu import CpuEngine

        return CpuEngine()
    from c2tc_pipeline.clustering.torch_engine import TorchEngine

    return TorchEngine(resolved)


def _weighted_power(X: np.ndarray, weight: np.ndarray | None) -> float:
    norms = np.einsum("ij,ij->i", X, X)
    return float(norms.sum(dtype=np.float64) if weight is None else norms @ weight.astype(np.float64))
