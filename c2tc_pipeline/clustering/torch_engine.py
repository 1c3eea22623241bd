"""The torch engine: the same Lloyd step for CUDA, in blocks that bound the distance matrix."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch

from c2tc_pipeline.clustering.engine import Engine

# Cells of the distance matrix held at once: 64 Mi float32 cells are 256 MiB.
_DISTANCE_CELLS = 64 * 2**20


@dataclass(frozen=True)
class _Rows:
    X: torch.Tensor
    weight: torch.Tensor


class TorchEngine(Engine):
    """Lloyd on a torch device.

    Parameters
    ----------
    device : str
        A torch device, such as ``"cuda"``.

    Examples
    --------
    >>> X = np.array([[0.0], [0.2], [1.0]], dtype=np.float32)
    >>> TorchEngine("cpu").fit(X, 2).labels.tolist() in ([0, 0, 1], [1, 1, 0])
    True
    """

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)

    def load(self, X: np.ndarray, weight: np.ndarray | None) -> _Rows:
        with warnings.catch_warnings():
            # Rows taken from a data frame are often marked read-only, and here they are only read.
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            rows = torch.from_numpy(np.ascontiguousarray(X)).to(self.device)
        if weight is None:
            return _Rows(rows, torch.ones(len(X), dtype=rows.dtype, device=self.device))
        return _Rows(rows, torch.from_numpy(np.asarray(weight)).to(self.device, rows.dtype))

    def update(self, rows: _Rows, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        device_centers = self._to_device(rows, centers)
        sums = torch.zeros_like(device_centers)
        counts = torch.zeros(len(centers), dtype=rows.X.dtype, device=self.device)
        farthest_gap = torch.empty(len(rows.X), dtype=rows.X.dtype, device=self.device)
        for block in self._blocks(len(rows.X), len(centers)):
            gap, label = self._nearest(rows.X[block], device_centers)
            farthest_gap[block] = gap
            sums.index_add_(0, label, rows.X[block] * rows.weight[block, None])
            counts.index_add_(0, label, rows.weight[block])
        updated = torch.where(counts[:, None] > 0, sums / counts.clamp(min=1e-30)[:, None], device_centers)
        empty = torch.nonzero(counts == 0).ravel()
        if len(empty):
            # A centre that lost all its rows moves to the worst-served ones and finds its rows in the next step.
            updated[empty] = rows.X[torch.topk(farthest_gap, len(empty)).indices]
        return updated.cpu().numpy(), counts.cpu().numpy().astype(np.float64)

    def assign(self, rows: _Rows, centers: np.ndarray) -> np.ndarray:
        device_centers = self._to_device(rows, centers)
        blocks = self._blocks(len(rows.X), len(centers))
        labels = [self._nearest(rows.X[block], device_centers)[1] for block in blocks]
        return torch.cat(labels).to(torch.int32).cpu().numpy()

    def _to_device(self, rows: _Rows, centers: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(centers)).to(self.device, rows.X.dtype)

    def _nearest(self, X: torch.Tensor, centers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return each row's squared distance to its nearest centre, and that centre."""
        scores = torch.addmm((centers**2).sum(1)[None, :], X, centers.T, alpha=-2.0)
        best, label = scores.min(dim=1)
        return best + (X**2).sum(1), label

    def _blocks(self, n: int, k: int) -> list[slice]:
        size = max(1, _DISTANCE_CELLS // k)
        return [slice(start, start + size) for start in range(0, n, size)]
