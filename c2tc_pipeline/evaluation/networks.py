"""A plain multilayer perceptron."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch


def mlp_network(features: int, classes: int, widths: Sequence[int] = (256, 256)) -> torch.nn.Module:
    """Return an untrained network of rectified linear layers, without dropout or normalisation.

    Examples
    --------
    >>> mlp_network(3, 2)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    """
    layers: list[torch.nn.Module] = []
    for before, after in itertools.pairwise([features, *widths]):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear([features, *widths][-1], classes))
