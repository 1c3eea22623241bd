"""Networks when memory is short: the same training and the same predictions, by other ways."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import numpy as np
import pytest
import torch

from c2tc_pipeline.bench.models.realmlp import RealMlpNetwork
from c2tc_pipeline.bench.models.tabr import TabrNetwork
from c2tc_pipeline.common.devices import watch_fallbacks
from c2tc_pipeline.evaluation.models.network import MlpClassifier
from c2tc_pipeline.evaluation.training import Recipe, train
from c2tc_pipeline_tests.tools.faults import ENDINGS, Memory, expected_fallbacks, pretended_devices

TRAINING, PREDICTION = "network training", "network prediction"
# Plain descent: a gradient of the wrong length, which Adam would hide, shows.
RECIPE = Recipe("sgd", 0.1, 0.01, epochs=4, batch_size=16)
generator = torch.Generator().manual_seed(1)
ROWS = torch.rand(40, 3, generator=generator)
CLASSES = (ROWS.sum(dim=1) > 1.5).long()
WEIGHTS = 0.5 + torch.rand(40, generator=generator)


class Limited(torch.nn.Sequential):
    """A network whose rows take memory."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
        self.memory = memory

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        self.memory.take(len(rows))
        return super().forward(rows)


def trained(memory: Memory, device: str = "cpu") -> torch.nn.Module:
    return train(lambda: Limited(memory), ROWS, CLASSES, WEIGHTS, recipe=RECIPE, seed=3, device=device)


def weights_of(network: torch.nn.Module) -> torch.Tensor:
    return torch.cat([tensor.detach().reshape(-1) for tensor in network.parameters()])


@pytest.mark.parametrize(("device", "times", "whole_batches"), ENDINGS)
@pytest.mark.parametrize("batch", [1, 4])
def test_running_out_at_a_batch_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, device: str, times: int, whole_batches: bool, batch: int
) -> None:
    undisturbed = weights_of(trained(Memory()))
    memory = Memory(at=[batch * (attempt + 1) for attempt in range(times)])
    with watch_fallbacks() as fallbacks, pretended_devices(monkeypatch):
        ours = trained(memory, device)
    assert fallbacks == expected_fallbacks(TRAINING, device, times)
    tolerance = 0 if whole_batches else 1e-5
    torch.testing.assert_close(weights_of(ours), undisturbed, rtol=tolerance, atol=tolerance)
    assert not ours.training


@pytest.mark.parametrize(("most_rows", "times"), [(15, 1), (2, 3)])
def test_fewer_rows_are_on_the_device_at_once(most_rows: int, times: int) -> None:
    with watch_fallbacks() as fallbacks:
        ours = trained(Memory(most_rows=most_rows))
    assert fallbacks == expected_fallbacks(TRAINING, "cpu", times)
    torch.testing.assert_close(weights_of(ours), weights_of(trained(Memory())), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("network", [lambda: TabrNetwork(3, 2, width=8), lambda: RealMlpNetwork(3, 2, (8,))])
def test_networks_with_losses_of_their_own_go_in_parts_too(
    network: Callable[[], RealMlpNetwork | TabrNetwork],
) -> None:
    def tried(memory: Memory) -> torch.Tensor:
        def build() -> torch.nn.Module:
            built = network()
            limited = memory.under(built.row_losses, lambda rows, classes, numbers: len(rows))
            built.row_losses = limited  # type: ignore[method-assign]
            return built

        return weights_of(train(build, ROWS, CLASSES, WEIGHTS, recipe=RECIPE, seed=3))

    with watch_fallbacks() as fallbacks:
        ours = tried(Memory(most_rows=4))
    assert fallbacks == expected_fallbacks(TRAINING, "cpu", 2)
    torch.testing.assert_close(ours, tried(Memory()), rtol=1e-4, atol=1e-4)


def test_failed_attempts_leave_neither_networks_nor_another_random_state() -> None:
    networks: list[weakref.ref[torch.nn.Module]] = []
    memory = Memory(most_rows=2)
    before = torch.get_rng_state()

    def build() -> torch.nn.Module:
        assert [network() for network in networks] == [None] * len(networks)
        network = Limited(memory)
        networks.append(weakref.ref(network))
        return network

    train(build, ROWS, CLASSES, WEIGHTS, recipe=RECIPE, seed=3)
    assert len(networks) == 4
    assert torch.equal(torch.get_rng_state(), before)


class LimitedClassifier(MlpClassifier):
    """A classifier whose network takes memory, of which there is enough while it is trained."""

    def build(self, features: int, classes: int) -> torch.nn.Module:
        return Limited(Memory())


def limit(model: LimitedClassifier, memory: Memory) -> None:
    assert isinstance(model.network_, Limited)
    model.network_.memory = memory


@pytest.mark.parametrize(("device", "times", "whole_batches"), ENDINGS)
def test_predictions_stay_the_same(
    monkeypatch: pytest.MonkeyPatch, device: str, times: int, whole_batches: bool
) -> None:
    rows = np.asarray(ROWS)
    with pretended_devices(monkeypatch):
        model = LimitedClassifier(recipe=RECIPE, device=device).fit(rows, CLASSES)
        expected = model.predict_proba(rows)
        limit(model, Memory(at=range(1, times + 1)))
        with watch_fallbacks() as fallbacks:
            ours = model.predict_proba(rows)
    assert fallbacks == expected_fallbacks(PREDICTION, device, times)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=0 if whole_batches else 1e-6)
