"""The periodic embedding against its formula."""

from __future__ import annotations

import math

import pytest
import torch

from c2tc_pipeline.bench.networks.mlp_plr import mlp_plr_network


@pytest.mark.parametrize("lite", [False, True])
def test_the_network_is_periodic_then_linear_then_rectified(lite: bool) -> None:
    torch.manual_seed(0)
    network = mlp_plr_network(2, 3, (4,), frequencies=5, embedding=6, spread=0.7, lite=lite)
    assert isinstance(network, torch.nn.Sequential)
    rows = torch.rand(7, 2)
    weights = dict(network[0].named_parameters())
    embedded = []
    for column in range(2):
        angles = 2 * math.pi * rows[:, column, None] * weights["periodic.weight"][column]
        waves = torch.cat([angles.cos(), angles.sin()], dim=1)
        if lite:
            linear = waves @ weights["linear.weight"].T + weights["linear.bias"]
        else:
            linear = waves @ weights["linear.weight"][column] + weights["linear.bias"][column]
        embedded.append(linear.clamp(min=0))
    assert torch.cat(embedded, dim=1).shape == (7, 12)
    torch.testing.assert_close(network(rows), network[2](torch.cat(embedded, dim=1)))


def test_frequencies_spread_as_told() -> None:
    torch.manual_seed(0)
    for spread in (0.1, 2.0):
        network = mlp_plr_network(20, 2, (4,), frequencies=100, spread=spread)
        frequencies = dict(network.named_parameters())["0.periodic.weight"]
        assert abs(frequencies.std().item() / spread - 1) < 0.1
