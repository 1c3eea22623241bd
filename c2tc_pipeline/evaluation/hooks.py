"""What a network may tell its trainer about itself.

A network is a torch module from rows to one number a class, and needs none of this. One that has more to say has the
method or the attribute of that name; the trainer looks for those, never for a network's type.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch


@runtime_checkable
class SeesTrainingRows(Protocol):
    """A network that wants to see all training rows once, before the first step, on its own device."""

    def see(self, rows: torch.Tensor, classes: torch.Tensor, weights: torch.Tensor) -> None:
        """Take in rows (n, d), their class numbers (n,) and how much they count (n,)."""


@runtime_checkable
class HasOwnLoss(Protocol):
    """A network whose loss in training is not the cross-entropy of its output."""

    def row_losses(self, rows: torch.Tensor, classes: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """Return one loss for each row of a batch; ``numbers`` are the rows' places among all training rows."""


@runtime_checkable
class NeedsCompany(Protocol):
    """A network that can't be trained on batches of fewer than so many rows, as batch normalisation can't."""

    least_batch: int


def row_losses(
    network: torch.nn.Module, rows: torch.Tensor, classes: torch.Tensor, numbers: torch.Tensor
) -> torch.Tensor:
    """Return one loss for each row of a batch: the network's own, or else the cross-entropy of its output.

    Examples
    --------
    >>> rows, classes = torch.tensor([[0.0, 0.0], [0.0, 9.0]]), torch.tensor([0, 1])
    >>> row_losses(torch.nn.Identity(), rows, classes, torch.arange(2)).round(decimals=2)
    tensor([0.6900, 0.0000])
    """
    if isinstance(network, HasOwnLoss):
        return network.row_losses(rows, classes, numbers)
    return torch.nn.functional.cross_entropy(network(rows), classes, reduction="none")


def least_batch(network: torch.nn.Module) -> int:
    """Return how many rows a batch of the network must have.

    Examples
    --------
    >>> least_batch(torch.nn.Linear(1, 2))
    1
    """
    return network.least_batch if isinstance(network, NeedsCompany) else 1
