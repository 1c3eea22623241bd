"""Which of the weights that a training goes through are kept, by how they do on validation rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from c2tc_pipeline.common.devices import Place

# Looks at the validation rows in one training, at most, and rows that go through the network at once in a look.
_MOST_LOOKS = 50
_BLOCK_ROWS = 65_536


@dataclass(frozen=True)
class ValidationRows:
    """Rows that a network is not trained on, to choose among its weights.

    Parameters
    ----------
    rows : tensor of float32 of shape (n, d)
        The rows; at least one.
    classes : tensor of int64 of shape (n,)
        Their class numbers.
    """

    rows: torch.Tensor
    classes: torch.Tensor


class BestWeights:
    """Watches a training and remembers its best weights.

    The best have the highest accuracy on the validation rows, and among equals the lowest cross-entropy. There is a
    look after every epoch, but no more than 50 in a training, and one after the last step. A look draws nothing by lot,
    so that watching changes nothing of what is watched.

    Parameters
    ----------
    validation : ValidationRows
        What to look at.
    patience : int or None
        After how many looks in a row that found nothing better training should end; None lets it go on.
    epoch : int
        Steps an epoch.
    steps : int
        Steps of the whole training.
    place : Place
        Where the network is.

    Examples
    --------
    >>> rows = ValidationRows(torch.tensor([[1.0]]), torch.tensor([1]))
    >>> network = torch.nn.Linear(1, 2, bias=False)
    >>> best = BestWeights(rows, patience=1, epoch=1, steps=3, place=Place("cpu"))
    >>> for taken, weight in enumerate([1.0, -1.0]):
    ...     _ = network.weight.data.copy_(torch.tensor([[0.0], [weight]]))
    ...     best.is_enough(network, taken + 1)
    False
    True
    >>> best.restore(network)
    >>> network.weight.tolist()
    [[0.0], [1.0]]
    """

    def __init__(
        self, validation: ValidationRows, *, patience: int | None, epoch: int, steps: int, place: Place
    ) -> None:
        self.validation = validation
        self.patience = patience
        self.steps = steps
        self.place = place
        self.interval = max(epoch, math.ceil(steps / _MOST_LOOKS))
        self.score = (-math.inf, -math.inf)
        self.state: dict[str, torch.Tensor] = {}
        self.looks_since = 0

    def is_enough(self, network: torch.nn.Module, taken: int) -> bool:
        """Look at the network, if it is time to, after so many steps; return whether training should end."""
        if taken % self.interval and taken < self.steps:
            return False
        score = self._score(network)
        self.looks_since += 1
        if score > self.score or not self.state:
            self.score, self.looks_since = score, 0
            self.state = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
        return self.patience is not None and self.looks_since >= self.patience

    def restore(self, network: torch.nn.Module) -> None:
        """Give the network its best weights back."""
        network.load_state_dict(self.state)

    def _score(self, network: torch.nn.Module) -> tuple[float, float]:
        rows, classes = self.validation.rows, self.validation.classes
        was_training = network.training
        network.eval()
        with torch.no_grad():
            blocks = rows.split(self.place.part_of(min(len(rows), _BLOCK_ROWS)))
            outputs = torch.cat([network(block.to(self.place.device)).cpu() for block in blocks])
        network.train(was_training)
        accuracy = (outputs.argmax(dim=1) == classes).double().mean().item()
        return accuracy, -torch.nn.functional.cross_entropy(outputs, classes).item()
