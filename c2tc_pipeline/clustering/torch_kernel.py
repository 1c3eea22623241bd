"""Lloyd steps in torch, for CUDA and MPS, in blocks that bound the distance matrix."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch

from c2tc_pipeline.clustering.kernels import Kernel
from c2tc_pipeline.common.devices import Place, on_device

# Cells of the distance matrix held at once: 64 Mi float32 cells are 256 MiB.
_DISTANCE_CELLS = 64 * 2**20

Result = TypeVar("Result")


class _Rows:
    """Rows and their weights, on the device where the last step on them fitted."""

    def __init__(self, X: np.ndarray, weight: np.ndarray | None, device: str) -> None:
        self.X = X
        self.weight = weight
        self.place = Place(device)
        self._loaded: tuple[str, torch.Tensor, torch.Tensor] | None = None

    def compute(self, step: Callable[[torch.Tensor, torch.Tensor, Place], Result]) -> Result:
        """Do a step at the first place with enough memory; the next step begins there."""

        def attempt(place: Place) -> Result:
            self.place = place
            return step(*self._at(place.device), place)

        return on_device("k-means", self.place, attempt)

    def _at(self, device: str) -> tuple[torch.Tensor, torch.Tensor]:
        if self._loaded is None or self._loaded[0] != device:
            self._loaded = None
            with warnings.catch_warnings():
                # Rows of a data frame are often read-only; they are not written here.
                warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
                X = torch.from_numpy(np.ascontiguousarray(self.X))
            if device == "mps":
                # MPS has no float64; final means and losses are computed from the rows on the CPU.
                X = X.float()
            weight = torch.ones(len(X)) if self.weight is None else torch.from_numpy(np.asarray(self.weight))
            self._loaded = device, X.to(device), weight.to(X.dtype).to(device)
        return self._loaded[1:]


class TorchKernel(Kernel):
    """Lloyd steps on a torch device; when its memory is too small, in smaller blocks, then on the CPU."""

    def __init__(self, device: str) -> None:
        self.device = device

    def load(self, X: np.ndarray, weight: np.ndarray | None) -> _Rows:
        return _Rows(X, weight, self.device)

    def update(self, rows: _Rows, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        def step(X: torch.Tensor, weight: torch.Tensor, place: Place) -> tuple[np.ndarray, np.ndarray]:
            device_centers = _like(X, centers)
            sums = torch.zeros_like(device_centers)
            counts = X.new_zeros(len(centers))
            distance = X.new_empty(len(X))
            for block in _blocks(X, centers, place):
                found, label = _nearest(X[block], device_centers)
                distance[block] = found
                sums.index_add_(0, label, X[block] * weight[block, None])
                counts.index_add_(0, label, weight[block])
            updated = torch.where(counts[:, None] > 0, sums / counts.clamp(min=1e-30)[:, None], device_centers)
            empty = torch.nonzero(counts == 0).ravel()
            if len(empty):
                # The centre of an empty cluster moves to one of the farthest rows.
                updated[empty] = X[torch.topk(distance, len(empty)).indices]
            return updated.cpu().numpy(), counts.cpu().numpy().astype(np.float64)

        return rows.compute(step)

    def assign(self, rows: _Rows, centers: np.ndarray) -> np.ndarray:
        def step(X: torch.Tensor, weight: torch.Tensor, place: Place) -> np.ndarray:
            device_centers = _like(X, centers)
            labels = [_nearest(X[block], device_centers)[1] for block in _blocks(X, centers, place)]
            return torch.cat(labels).to(torch.int32).cpu().numpy()

        return rows.compute(step)


def _like(X: torch.Tensor, centers: np.ndarray) -> torch.Tensor:
    """Return centres with the dtype and device of the rows."""
    return torch.from_numpy(np.ascontiguousarray(centers)).to(X.dtype).to(X.device)


def _nearest(X: torch.Tensor, centers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return each row's squared distance to its nearest centre, and that centre."""
    scores = torch.addmm((centers**2).sum(1)[None, :], X, centers.T, alpha=-2.0)
    best, label = scores.min(dim=1)
    return best + (X**2).sum(1), label


def _blocks(X: torch.Tensor, centers: np.ndarray, place: Place) -> list[slice]:
    size = place.part_of(min(len(X), max(1, _DISTANCE_CELLS // len(centers))))
    return [slice(start, start + size) for start in range(0, len(X), size)]
