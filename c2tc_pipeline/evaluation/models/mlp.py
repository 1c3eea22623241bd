"""A plain multilayer perceptron, the network that most tables of the paper are evaluated with."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch

from c2tc_pipeline.evaluation.models.network import NetworkClassifier
from c2tc_pipeline.evaluation.training import Recipe


def mlp_network(features: int, classes: int, widths: Sequence[int] = (256, 256)) -> torch.nn.Module:
    """Return an untrained network of rectified linear layers, without dropout or normalisation."""
    layers: list[torch.nn.Module] = []
    for before, after in itertools.pairwise([features, *widths]):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear([features, *widths][-1], classes))


class MlpClassifier(NetworkClassifier):
    """Layers of rectified linear units, two of 256 by default, without dropout or normalisation.

    Examples
    --------
    >>> model = MlpClassifier(random_state=0).fit([[0.0], [0.2], [1.0]], ["no", "no", "yes"])
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        widths: Sequence[int] = (256, 256),
        *,
        recipe: str | Recipe = "default",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.widths = widths
        self.recipe = recipe
        self.device = device
        self.random_state = random_state

    def build(self, features: int, classes: int) -> torch.nn.Module:
        """Return an untrained network from ``features`` numbers to ``classes`` numbers per row."""
        return mlp_network(features, classes, self.widths)
