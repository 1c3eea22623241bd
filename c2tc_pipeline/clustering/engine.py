"""The clustering engine: the arithmetic of a Lloyd step on one kind of processor.

Subclasses say how rows are held on their device and how one step is computed there; the loop around the steps is in
:mod:`c2tc_pipeline.clustering.lloyd`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from c2tc_pipeline.clustering.blocks import Block, OpenBlock
from c2tc_pipeline.clustering.lloyd import Descent, KMeansResult, descend, lloyd
from c2tc_pipeline.clustering.row_source import HeldRows
from c2tc_pipeline.clustering.seeding import extend_centers
from c2tc_pipeline.common.devices import resolve_device


class Engine(ABC):
    """K-means on one kind of processor."""

    device: str = "cpu"
    """Where the arithmetic is done."""

    refresh: int = 1
    """After how many steps the centres around each centre are looked for again."""

    @abstractmethod
    def load(self, X: np.ndarray, weight: np.ndarray | None) -> Any:
        """Bring rows to the device once; what comes back is passed to :meth:`update` and :meth:`assign`."""

    @abstractmethod
    def update(self, rows: Any, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Do one Lloyd step on all rows of a class; return the new centres and the weight of each cluster."""

    @abstractmethod
    def assign(self, rows: Any, centers: np.ndarray) -> np.ndarray:
        """Return the nearest centre of each row, as int32."""

    def alone(self) -> Engine:
        """Return the engine on one thread, for work that goes on beside other work of the same kind."""
        return self

    def looks_around(self, rows: int, k: int) -> bool:
        """Tell whether so many rows should be compared with the centres around their own only, once they have one."""
        return False

    def around(self, centers: np.ndarray) -> np.ndarray:
        """Return for each centre those around it."""
        raise NotImplementedError

    def assign_around(self, X: np.ndarray, labels: np.ndarray, centers: np.ndarray, around: np.ndarray) -> np.ndarray:
        """Return the nearest of the centres around each row's own."""
        raise NotImplementedError

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
        >>> from c2tc_pipeline.clustering.engine import make_engine
        >>> X = np.array([[0.0], [0.2], [1.0]], dtype=np.float32)
        >>> make_engine("cpu").fit(X, 2).inertia.__round__(4)
        0.02
        """
        block = Block(HeldRows(X), weight=weight)
        return self.fit_block(block, k, init=init, seed=seed, max_iter=max_iter, tol=tol)

    def fit_block(
        self,
        block: Block,
        k: int,
        *,
        init: np.ndarray | None = None,
        seed: int | np.random.SeedSequence = 0,
        max_iter: int = 100,
        tol: float = 1e-4,
    ) -> KMeansResult:
        """Cluster the rows of one block; otherwise as :meth:`fit`."""
        rows = block.open()
        return lloyd(self, [rows], _start(rows, k, init, seed), max_iter=max_iter, tol=tol)

    def descend(
        self,
        X: np.ndarray,
        k: int,
        *,
        init: np.ndarray | None = None,
        seed: int | np.random.SeedSequence = 0,
        weight: np.ndarray | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
    ) -> Descent:
        """Find centres as :meth:`fit` does, without asking in the end which row is in which cluster."""
        rows = Block(HeldRows(X), weight=weight).open()
        return descend(self, rows, _start(rows, k, init, seed), max_iter=max_iter, tol=tol)


def _start(rows: OpenBlock, k: int, init: np.ndarray | None, seed: int | np.random.SeedSequence) -> np.ndarray:
    """Return ``k`` centres to begin with, those that are given among them."""
    known = np.empty((0, rows.X.shape[1]), rows.X.dtype) if init is None else init
    return extend_centers(rows.X, known, k, np.random.default_rng(seed), weight=rows.weight)


def make_engine(device: str = "auto") -> Engine:
    """Return the engine for a device setting: numpy and scikit-learn on the CPU, torch elsewhere."""
    resolved = resolve_device(device)
    if resolved == "cpu":
        from c2tc_pipeline.clustering.cpu import CpuEngine

        return CpuEngine()
    from c2tc_pipeline.clustering.torch_engine import TorchEngine

    return TorchEngine(resolved)
