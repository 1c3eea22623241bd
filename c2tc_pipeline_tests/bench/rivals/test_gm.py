"""Gradient matching: what is matched are gradients, and they do come closer."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch

from c2tc_pipeline.bench.networks.ft_transformer import ft_transformer_network
from c2tc_pipeline.bench.rivals.gm import GradientMatching, class_gradients, gradient_distance
from c2tc_pipeline.bench.rivals.relay import NetworkBuilder, relay_builder
from c2tc_pipeline.evaluation.models.network import mlp_network
from c2tc_pipeline_tests.bench.rivals.test_matching import blobs, classes_of, started

SMALL: dict[str, str | NetworkBuilder] = {
    "mlp": "mlp",
    "ft_transformer": partial(ft_transformer_network, blocks=1, width=8),
}


def test_the_distance_is_that_of_a_plain_computation() -> None:
    generator = torch.Generator().manual_seed(0)
    real, synthetic = (
        [torch.randn(4, 3, generator=generator), torch.randn(2, 3, 2, generator=generator)] for _ in range(2)
    )
    plain = 0.0
    for a, b in zip(real, synthetic, strict=True):
        for output in range(len(a)):
            p, q = a[output].reshape(-1).tolist(), b[output].reshape(-1).tolist()
            dot = sum(x * y for x, y in zip(p, q, strict=True))
            plain += 1 - dot / math.sqrt(sum(x * x for x in p) * sum(y * y for y in q))
    assert gradient_distance(real, synthetic).item() == pytest.approx(plain, rel=1e-5)


def test_opposite_gradients_are_two_apart_for_each_output() -> None:
    gradient = torch.randn(5, 3)
    assert gradient_distance([gradient], [-3 * gradient]).item() == pytest.approx(10, rel=1e-5)


@pytest.mark.parametrize("relay", ["mlp", "ft_transformer"])
def test_equal_rows_are_at_no_distance_dead_outputs_included(relay: str) -> None:
    network = relay_builder(relay, 3, 2)()
    rows = torch.rand(4, 3)
    real = class_gradients(network, rows, 1)
    if relay == "mlp":
        assert any(bool((gradient == 0).all(dim=1).any()) for gradient in real), "the case needs a dead output"
    assert gradient_distance(real, class_gradients(network, rows.flip(0), 1)).item() == pytest.approx(0, abs=1e-2)


def test_gradients_are_those_of_the_loss_on_one_class() -> None:
    network, rows = torch.nn.Linear(3, 4).double(), torch.rand(5, 3, dtype=torch.float64)
    (gradient,) = class_gradients(network, rows, 2)
    errors = network(rows).softmax(dim=1) - torch.eye(4, dtype=torch.float64)[2]
    torch.testing.assert_close(gradient, errors.T @ rows / 5)


def test_the_gradient_in_the_rows_is_that_of_finite_differences() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2)).double()
    generator = torch.Generator().manual_seed(0)
    for parameter in network.parameters():
        parameter.data.normal_(generator=generator)
    wanted = class_gradients(network, torch.rand(6, 2, dtype=torch.float64, generator=generator), 0)
    rows = torch.rand(2, 2, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda x: gradient_distance(wanted, class_gradients(network, x, 0, differentiable=True)), (rows,)
    )


@pytest.mark.parametrize("relay", ["mlp", "ft_transformer"])
def test_gradients_come_closer_under_networks_that_were_never_seen(relay: str) -> None:
    X, y = blobs(300)
    gm = GradientMatching(
        rows=4, relay=SMALL[relay], steps=60, learning_rate=0.03, batch_size=64, matches_per_network=3, inner_steps=2
    )
    rows, labels = gm.fit_resample(X, y)
    before, _ = started(gm, X, y)
    build = relay_builder(SMALL[relay], 2, 2, smooth=True)
    distances = []
    with torch.random.fork_rng():
        torch.manual_seed(12345)
        for _ in range(10):
            network = build()
            real = [class_gradients(network, part, code) for code, part in enumerate(classes_of(X, y))]
            distances.append(
                [
                    sum(
                        gradient_distance(real[code], class_gradients(network, part, code)).item()
                        for code, part in enumerate(classes_of(made, labels))
                    )
                    for made in (before, rows)
                ]
            )
    at_first, in_the_end = np.mean(distances, axis=0)
    assert in_the_end < 0.6 * at_first


def test_networks_are_renewed_and_trained_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    trained: list[int] = []

    def build(features: int, classes: int) -> torch.nn.Module:
        built.append(mlp_network(features, classes, (4,)))
        return built[-1]

    X, y = blobs(60)
    gm = GradientMatching(rows=4, relay=build, steps=7, matches_per_network=3, inner_steps=2)
    train = "c2tc_pipeline.bench.rivals.gm.Sgd.step"
    monkeypatch.setattr(train, lambda self, rate: trained.append(len(built)))
    gm.fit_resample(X, y)
    # The first network is the one whose size was estimated; the third to match has no time to train.
    assert len(built) == 1 + 3
    assert trained == [2] * 4 + [3] * 4
