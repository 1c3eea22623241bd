"""Relays: built afresh, looked into, and their cost in memory."""

from __future__ import annotations

import pytest
import torch
from torch.func import functional_call

from c2tc_pipeline.bench.rivals.relay import RELAYS, named_views, relay_builder, row_bytes, weight_bytes, without_head
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.models.network import mlp_network


def flat(network: torch.nn.Module) -> torch.Tensor:
    return torch.cat([tensor.detach().reshape(-1) for tensor in network.parameters()])


@pytest.mark.parametrize("relay", RELAYS)
def test_a_relay_is_fresh_each_time_and_follows_the_seed(relay: str) -> None:
    build = relay_builder(relay, 3, 2)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first, second = flat(build()), flat(build())
        torch.manual_seed(0)
        assert torch.equal(flat(build()), first)
    assert not torch.equal(first, second)
    assert not build().training


@pytest.mark.parametrize("relay", RELAYS)
def test_the_head_turns_embeddings_into_outputs(relay: str) -> None:
    network = relay_builder(relay, 3, 2)()
    rows = torch.rand(5, 3)
    outputs = network(rows)
    head = [module for module in network.modules() if isinstance(module, torch.nn.Linear)][-1]
    embeddings = without_head(network)(rows)
    torch.testing.assert_close(head(embeddings), outputs)
    assert embeddings.shape == (5, head.in_features)


def test_a_linear_relay_has_the_rows_themselves_as_embeddings() -> None:
    rows = torch.rand(5, 3)
    assert torch.equal(without_head(mlp_network(3, 2, ()))(rows), rows)
    assert torch.equal(without_head(torch.nn.Linear(3, 2))(rows), rows)


@pytest.mark.parametrize("relay", RELAYS)
def test_a_vector_of_weights_is_the_network(relay: str) -> None:
    network, other, rows = relay_builder(relay, 3, 2)(), relay_builder(relay, 3, 2)(), torch.rand(5, 3)
    outputs = functional_call(other, named_views(other, flat(network)), (rows,))
    torch.testing.assert_close(outputs, network(rows))


def test_smooth_relays_have_second_derivatives() -> None:
    sharp, smooth = relay_builder("mlp", 3, 2)(), relay_builder("mlp", 3, 2, smooth=True)()
    for network, curved in ((sharp, False), (smooth, True)):
        rows = torch.rand(1, 3, requires_grad=True)
        (gradient,) = torch.autograd.grad(network(rows)[0, 0], rows, create_graph=True)
        assert bool(gradient.requires_grad) is True
        (second,) = torch.autograd.grad(gradient.sum(), rows, allow_unused=True, materialize_grads=True)
        assert bool((second != 0).any()) is curved


def test_a_relay_of_ones_own_is_left_as_it_is() -> None:
    own = mlp_network(3, 2)
    assert relay_builder(lambda features, classes: own, 3, 2, smooth=True)() is own
    assert any(isinstance(module, torch.nn.ReLU) for module in own.modules())


def test_an_unknown_relay() -> None:
    with pytest.raises(InputError, match="Relay 'resnet' is unknown; choose one of: mlp, ft_transformer"):
        relay_builder("resnet", 3, 2)


def test_what_a_relay_costs() -> None:
    network = mlp_network(5, 2, (7,))
    assert weight_bytes(network) == 4 * (5 * 7 + 7 + 7 * 2 + 2)
    # The rows, for the first layer, and what came out of the rectifier, for itself and for the last layer.
    assert row_bytes(network, 5) == 4 * (5 + 7)
