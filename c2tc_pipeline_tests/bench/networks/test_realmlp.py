"""The parts of RealMLP against what the paper says of them."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.bench.networks.realmlp import (
    NtpLinear,
    RealMlpNetwork,
    RobustScaling,
    ScaledParameter,
    weighted_quantile,
)
from c2tc_pipeline.common.optimisers import AdamW, FlatWeights


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=12),
    st.sampled_from([0.25, 0.5, 0.75]),
)
def test_quantiles_are_those_of_repeated_rows(pairs: list[tuple[int, int]], share: float) -> None:
    values, counts = (np.array(numbers) for numbers in zip(*pairs, strict=True))
    expected = np.quantile(np.repeat(values, counts), share, method="inverted_cdf")
    rows = torch.tensor(values, dtype=torch.float32)[:, None]
    # Weights as the trainer gives them: 1 on average.
    weights = torch.tensor(counts, dtype=torch.float32)
    assert weighted_quantile(rows, weights / weights.mean(), share).tolist() == [expected]


def test_columns_are_scaled_robustly_and_clipped_smoothly() -> None:
    scaling = RobustScaling(3)
    usual = torch.arange(101.0)
    rows = torch.stack([usual, torch.where(usual < 90, 0.0, 8.0), torch.full((101,), 7.0)], dim=1)
    scaling.fit(rows, torch.ones(101))
    # Median 50 and quartiles 25 and 75; equal quartiles and a range of 8; a constant.
    scaled = torch.tensor([[100.0, 8.0, 7.0], [50.0, 0.0, 9.0], [1e12, -1e12, 1.0]])
    one, two = 1 / np.sqrt(1 + 1 / 9), 2 / np.sqrt(1 + 4 / 9)
    expected = torch.tensor([[one, two, 0.0], [0.0, 0.0, 0.0], [3.0, -3.0, 0.0]])
    torch.testing.assert_close(scaling(scaled)[1:], expected[1:].float())
    torch.testing.assert_close(scaling(scaled)[0], torch.tensor([one, two, 0.0]).float())


def test_a_layer_divides_by_the_root_of_its_inputs() -> None:
    torch.manual_seed(0)
    layer = NtpLinear(400, 300)
    assert abs(layer.weight.std().item() - 1) < 0.02
    rows = torch.randn(5, 400)
    torch.testing.assert_close(layer(rows), rows @ layer.weight / 20 + layer.bias(), rtol=1e-4, atol=1e-5)
    assert abs(layer.bias().std().item() - 1) < 0.1


def test_a_scaled_parameter_moves_faster_under_adam() -> None:
    parameter = ScaledParameter(torch.ones(2), speed=6.0)
    flat = FlatWeights(parameter)
    parameter().sum().backward()
    AdamW(flat).step(0.01)
    torch.testing.assert_close(parameter(), torch.full((2,), 1 - 6 * 0.01))


def test_an_untrained_network_takes_no_side_and_smooths_labels() -> None:
    network = RealMlpNetwork(2, 4, (8,), smoothing=0.1)
    rows, classes = torch.rand(3, 2), torch.tensor([0, 1, 3])
    assert (network(rows) == 0).all()
    last = network.layers[-1]
    assert isinstance(last, NtpLinear)
    torch.nn.init.normal_(last.weight)
    shares = network(rows).log_softmax(dim=1)
    target = 0.9 * torch.nn.functional.one_hot(classes, 4) + 0.1 / 4
    torch.testing.assert_close(network.row_losses(rows, classes, torch.arange(3)), -(target * shares).sum(dim=1))
