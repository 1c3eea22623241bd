"""The factorised autoencoder against a plain dense one on the N x D matrix, how it trains, and when memory is short."""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from c2tc_pipeline.common.devices import watch_fallbacks
from c2tc_pipeline.encoding import autoencoder
from c2tc_pipeline.encoding.autoencoder import (
    AutoencoderSettings,
    FactorisedAutoencoder,
    TrainedAutoencoder,
    distinct_rows,
    train_autoencoder,
)
from c2tc_pipeline.encoding.strings import Vocabulary
from c2tc_pipeline.tables.category_counts import CategoryCounts
from c2tc_pipeline.tables.kinds import factorise
from c2tc_pipeline_tests.tools.faults import ENDINGS, Memory, expected_fallbacks, pretended_devices

SETTINGS = AutoencoderSettings(latent=2, hidden=8, epochs=3)
Case = tuple[list[np.ndarray], np.ndarray]


def random_case(sizes: list[int], rows: int = 50, seed: int = 0) -> Case:
    """Return tables that are not even symmetric: only looked-up rows count."""
    rng = np.random.default_rng(seed)
    tables = [rng.random((size, size), dtype=np.float32) for size in sizes]
    return tables, np.stack([rng.integers(0, size, rows) for size in sizes], axis=1)


def string_case(rows: int = 60) -> Case:
    """Return similarities of real strings, with missing values, and rows that repeat."""
    rng = np.random.default_rng(0)
    vocabularies = [["Husband", "Wife", "Housewife", None], ["never", "nearly never", "always", None]]
    columns = [pd.Series(rng.choice(np.array(words, dtype=object), rows)) for words in vocabularies]
    words = [Vocabulary.of_counts(CategoryCounts.of(column), (2, 4), 99) for column in columns]
    places = [vocabulary.nearest_places(*factorise(column)) for vocabulary, column in zip(words, columns, strict=True)]
    return [vocabulary.similarities() for vocabulary in words], np.stack(places, axis=1)


CASES = {
    "one column": random_case([9]),
    "one category": random_case([1, 1]),
    "several columns in one block": random_case([5, 17, 3]),
    "columns over several blocks": random_case([120, 120, 120, 300, 4, 2]),
    "strings with missing values": string_case(),
}


def model_of(tables: list[np.ndarray], dtype: torch.dtype) -> FactorisedAutoencoder:
    generator = torch.Generator().manual_seed(0)
    model = FactorisedAutoencoder(tables, latent=3, hidden=7, generator=generator, dtype=dtype)
    with torch.no_grad():
        # Biases start at zero, which would hide a mistake in them.
        for bias in (model.b_in, model.b_code, model.b_back, model.b_out):
            bias.copy_(torch.rand(bias.shape, generator=generator) - 0.5)
    return model


def dense_rows(tables: list[np.ndarray], places: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(np.hstack([t[p] for t, p in zip(tables, places.T, strict=True)])).to(dtype)


def dense_loss(model: FactorisedAutoencoder, x: torch.Tensor) -> torch.Tensor:
    """The same network in the usual way, on rows of similarities."""
    code = torch.relu(x @ model.w_in + model.b_in) @ model.w_code + model.b_code
    return ((torch.relu(code @ model.w_back + model.b_back) @ model.w_out.T + model.b_out - x) ** 2).sum(dim=1)


@pytest.mark.parametrize("dead", [None, "b_in", "b_back"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-5), (torch.float64, 1e-12)], ids=["f32", "f64"])
@pytest.mark.parametrize("case", CASES)
def test_loss_and_gradients_are_those_of_the_dense_network(
    case: str, dtype: torch.dtype, tolerance: float, dead: str | None
) -> None:
    tables, places = CASES[case]
    model = model_of(tables, dtype)
    if dead is not None:
        with torch.no_grad():
            getattr(model, dead)[:3] = -100
    weight = np.random.default_rng(1).random(len(places))
    batch = model.batch(places, weight)
    ours, theirs = model.loss(batch), dense_loss(model, dense_rows(tables, places, dtype))
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance * float(theirs.max().detach()))
    weights = list(model.parameters())
    expected = torch.autograd.grad(batch.weight @ theirs, weights)
    for found, wanted in zip(torch.autograd.grad(model.summed_loss(batch), weights), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance * float(wanted.abs().max()))
    # Summed over parts of the batch it is the same gradient.
    parts = np.array_split(np.arange(len(places)), 3)
    sums = [torch.autograd.grad(model.summed_loss(model.batch(places[p], weight[p])), weights) for p in parts]
    for *pieces, wanted in zip(*sums, expected, strict=True):
        torch.testing.assert_close(sum(pieces), wanted, rtol=tolerance, atol=tolerance * float(wanted.abs().max()))


@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=6), rows=st.integers(1, 20), seed=st.integers(0, 2**32))
def test_products_and_distinct_rows_are_those_of_the_dense_matrix(sizes: list[int], rows: int, seed: int) -> None:
    tables, places = random_case(sizes, rows, seed)
    X = dense_rows(tables, places, torch.float64)
    batch = model_of(tables, torch.float64).batch(places)
    torch.testing.assert_close(batch.times(torch.eye(X.shape[1], dtype=torch.float64)), X)
    torch.testing.assert_close(batch.transposed_times(torch.eye(rows, dtype=torch.float64)), X.T)
    torch.testing.assert_close(batch.squared_norms, (X**2).sum(dim=1))
    first, counts = distinct_rows(places * 2**20)
    _, index, occurrences = np.unique(places, axis=0, return_index=True, return_counts=True)
    np.testing.assert_array_equal(first, index)
    np.testing.assert_array_equal(counts, occurrences)


def components_error(tables: list[np.ndarray], places: np.ndarray, latent: int) -> float:
    """Return the mean squared error of a plain PCA of the dense rows."""
    X = dense_rows(tables, places, torch.float64).numpy()
    pca = PCA(latent, svd_solver="full").fit(X)
    return float(((pca.inverse_transform(pca.transform(X)) - X) ** 2).sum(axis=1).mean())


@pytest.mark.parametrize("case", sorted(CASES.keys() - {"one category"}))
def test_training_starts_at_the_principal_components_of_all_rows(case: str) -> None:
    tables, places = CASES[case]
    # Steps of length zero: the weights stay at their start. Equal rows count as often as they occur.
    trained = train_autoencoder(tables, places, replace(SETTINGS, learning_rate=0.0))
    np.testing.assert_allclose(trained.losses, components_error(tables, places, 2), rtol=0.03, atol=1e-5)


@pytest.mark.parametrize("case", ["strings with missing values", "columns over several blocks"])
def test_training_goes_below_the_principal_components_and_reports_progress(case: str) -> None:
    tables, places = CASES[case]
    reported: list[tuple[int, int]] = []
    ten = replace(SETTINGS, epochs=10)
    losses = train_autoencoder(tables, places, ten, progress=lambda *done: reported.append(done)).losses
    assert reported == [(epoch, 10) for epoch in range(1, 11)]
    assert losses[-1] < min(losses[0], 0.95 * components_error(tables, places, SETTINGS.latent))


@pytest.mark.parametrize(
    ("sizes", "rows", "latent", "hidden"), [([4, 3], 1, 2, 8), ([2], 9, 6, 8), ([5, 4], 9, 7, 3), ([1], 2, 1, 1)]
)
def test_layers_wider_than_the_table_and_single_rows(sizes: list[int], rows: int, latent: int, hidden: int) -> None:
    trained = train_autoencoder(*random_case(sizes, rows), AutoencoderSettings(latent, hidden, epochs=2))
    assert all(np.isfinite(array).all() for array in trained.to_arrays().values())
    assert trained.w_code.shape == (hidden, latent)


def test_the_seed_determines_the_weights_whatever_the_threads_and_the_order_and_repetition_of_rows() -> None:
    tables, places = string_case()

    def weights(seed: int, rows: np.ndarray) -> dict[str, bytes]:
        trained = train_autoencoder(tables, rows, replace(SETTINGS, seed=seed))
        return {name: array.tobytes() for name, array in trained.to_arrays().items()}

    one, other = weights(1, places), weights(2, places)
    assert all(one[name] != other[name] for name in one)
    assert weights(1, np.random.default_rng(1).permutation(places)) == one == weights(1, np.tile(places, (3, 1)))
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert weights(1, places) == one
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(threads)


STEP = "autoencoder training"
TABLES, PLACES = random_case([9, 14], 150)


def trained(device: str = "cpu") -> TrainedAutoencoder:
    return train_autoencoder(TABLES, PLACES, replace(SETTINGS, epochs=1, batch_size=24), device=device)


def give(monkeypatch: pytest.MonkeyPatch, memory: Memory) -> None:
    limited = memory.under(FactorisedAutoencoder.summed_loss, lambda model, batch: len(batch.weight))
    monkeypatch.setattr(FactorisedAutoencoder, "summed_loss", limited)


def assert_same(ours: TrainedAutoencoder, theirs: TrainedAutoencoder, *, exactly: bool) -> None:
    """Compare weights and losses; sums in another order move weights whose gradients cancel at the PCA a little."""
    for name, array in theirs.to_arrays().items():
        np.testing.assert_allclose(ours.to_arrays()[name], array, rtol=0, atol=0 if exactly else 0.02, err_msg=name)
    np.testing.assert_allclose(ours.losses, theirs.losses, rtol=0 if exactly else 1e-3)


@pytest.mark.parametrize(("device", "times", "whole_batches"), ENDINGS)
@pytest.mark.parametrize("batch", [1, 5])
def test_running_out_of_memory_at_a_batch_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, device: str, times: int, whole_batches: bool, batch: int
) -> None:
    undisturbed = trained()
    give(monkeypatch, Memory(at=[batch * (attempt + 1) for attempt in range(times)]))
    with watch_fallbacks() as fallbacks, pretended_devices(monkeypatch):
        ours = trained(device)
    assert fallbacks == expected_fallbacks(STEP, device, times)
    assert_same(ours, undisturbed, exactly=whole_batches)


@pytest.mark.parametrize(("most_rows", "times"), [(23, 1), (3, 3)])
def test_fewer_rows_are_on_the_device_at_once_and_failed_attempts_leave_nothing(
    monkeypatch: pytest.MonkeyPatch, most_rows: int, times: int
) -> None:
    undisturbed = trained()
    models: list[weakref.ref[torch.nn.Module]] = []

    def build(*arguments: Any, **given: Any) -> FactorisedAutoencoder:
        assert [model() for model in models] == [None] * len(models)
        model = FactorisedAutoencoder(*arguments, **given)
        models.append(weakref.ref(model))
        return model

    monkeypatch.setattr(autoencoder, "FactorisedAutoencoder", build)
    give(monkeypatch, Memory(most_rows=most_rows))
    with watch_fallbacks() as fallbacks:
        ours = trained()
    assert fallbacks == expected_fallbacks(STEP, "cpu", times)
    assert len(models) == times + 1
    assert_same(ours, undisturbed, exactly=False)
