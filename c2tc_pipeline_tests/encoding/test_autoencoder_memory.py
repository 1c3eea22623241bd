"""The autoencoder when memory is short: the same weights, by other ways."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
import torch

from c2tc_pipeline.common.devices import watch_fallbacks
from c2tc_pipeline.encoding import autoencoder_training
from c2tc_pipeline.encoding.autoencoder import FactorisedAutoencoder
from c2tc_pipeline.encoding.autoencoder_inputs import WeightedRows
from c2tc_pipeline.encoding.autoencoder_training import (
    AutoencoderSettings,
    TrainedAutoencoder,
    _pull,
    train_autoencoder,
)
from c2tc_pipeline.encoding.look_ups import JoinedColumns
from c2tc_pipeline_tests.tools.faults import ENDINGS, Always, Memory, expected_fallbacks, pretended_devices

STEP = "autoencoder training"
SETTINGS = AutoencoderSettings(latent=2, hidden=6, epochs=1, batch_size=24)


def rows_of(model: FactorisedAutoencoder, rows: WeightedRows) -> int:
    return len(rows.weight)


RNG = np.random.default_rng(0)
TABLES = [RNG.random((size, size), dtype=np.float32) for size in (9, 14)]
PLACES = np.stack([RNG.integers(0, len(table), 150) for table in TABLES], axis=1)


def trained(device: str = "cpu") -> TrainedAutoencoder:
    return train_autoencoder(TABLES, PLACES, SETTINGS, device=device)


def give(monkeypatch: pytest.MonkeyPatch, memory: Memory) -> None:
    monkeypatch.setattr(FactorisedAutoencoder, "summed_loss", memory.under(FactorisedAutoencoder.summed_loss, rows_of))


def assert_same(ours: TrainedAutoencoder, theirs: TrainedAutoencoder, rtol: float) -> None:
    for name, array in theirs.to_arrays().items():
        np.testing.assert_allclose(ours.to_arrays()[name], array, rtol=rtol, atol=rtol, err_msg=name)


@pytest.mark.parametrize(("device", "times", "whole_batches"), ENDINGS)
@pytest.mark.parametrize("batch", [1, 5])
def test_running_out_at_a_batch_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, device: str, times: int, whole_batches: bool, batch: int
) -> None:
    undisturbed = trained()
    give(monkeypatch, Memory(at=[batch * (attempt + 1) for attempt in range(times)]))
    with watch_fallbacks() as fallbacks, pretended_devices(monkeypatch):
        ours = trained(device)
    assert fallbacks == expected_fallbacks(STEP, device, times)
    assert_same(ours, undisturbed, rtol=0 if whole_batches else 1e-4)


@pytest.mark.parametrize("size", [1, 7, 49])
def test_parts_pull_as_the_whole_batch_does(size: int) -> None:
    generator = torch.Generator().manual_seed(0)
    model = FactorisedAutoencoder(list(map(torch.from_numpy, TABLES)), latent=2, hidden=6, generator=generator)
    rows, weight = torch.from_numpy(PLACES[:50]), torch.rand(50, generator=generator)
    joined = JoinedColumns.of(PLACES[:50], model.sizes, most=40)

    def pull(size: int) -> tuple[torch.Tensor, list[torch.Tensor | None]]:
        model.zero_grad()
        parts = torch.arange(50).split(size)
        loss = _pull(model, [WeightedRows.of(model.inputs(joined.batch(part)), weight[part]) for part in parts])
        return loss, [tensor.grad for tensor in model.parameters()]

    (loss, gradients), (whole_loss, whole_gradients) = pull(size), pull(50)
    torch.testing.assert_close(loss, whole_loss)
    torch.testing.assert_close(gradients, whole_gradients)
    mean = (model.loss(rows) * weight).sum() / 50
    torch.testing.assert_close(gradients, list(torch.autograd.grad(mean, list(model.parameters()))))


@pytest.mark.parametrize(("most_rows", "times"), [(24, 0), (23, 1), (6, 2), (3, 3)])
def test_fewer_rows_are_on_the_device_at_once(monkeypatch: pytest.MonkeyPatch, most_rows: int, times: int) -> None:
    undisturbed = trained()
    give(monkeypatch, Memory(most_rows=most_rows))
    with watch_fallbacks() as fallbacks:
        ours = trained()
    assert fallbacks == expected_fallbacks(STEP, "cpu", times)
    assert_same(ours, undisturbed, rtol=1e-4)


def test_the_error_arrives_when_nothing_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, Memory(at=Always()))
    with watch_fallbacks() as fallbacks, pytest.raises(torch.OutOfMemoryError):
        trained()
    assert fallbacks == expected_fallbacks(STEP, "cpu", 3)


def test_another_error_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, Memory(at={3}, error=RuntimeError("shapes do not match")))
    with watch_fallbacks() as fallbacks, pytest.raises(RuntimeError, match="shapes do not match"):
        trained()
    assert fallbacks == []


def test_a_try_that_failed_leaves_nothing_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    models: list[weakref.ref[torch.nn.Module]] = []

    def build(*arguments: Any, **settings: Any) -> FactorisedAutoencoder:
        assert [model() for model in models] == [None] * len(models)
        model = FactorisedAutoencoder(*arguments, **settings)
        models.append(weakref.ref(model))
        return model

    monkeypatch.setattr(autoencoder_training, "FactorisedAutoencoder", build)
    give(monkeypatch, Memory(most_rows=3))
    trained()
    assert len(models) == 4
