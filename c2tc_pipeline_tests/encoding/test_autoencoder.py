"""The factorised autoencoder against a plain dense one on the N x D matrix, and how it trains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.decomposition import PCA

from c2tc_pipeline.encoding.autoencoder import FactorisedAutoencoder
from c2tc_pipeline.encoding.autoencoder_training import AutoencoderSettings, train_autoencoder
from c2tc_pipeline.encoding.vocabulary import Vocabulary
from c2tc_pipeline.tables.categories import factorise
from c2tc_pipeline.tables.category_counts import CategoryCounts

SETTINGS = AutoencoderSettings(latent=2, hidden=8, epochs=3)
Tables = list[np.ndarray]


class DenseAutoencoder(torch.nn.Module):
    """The same network in the usual way: linear layers on rows of similarities."""

    def __init__(self, model: FactorisedAutoencoder) -> None:
        super().__init__()
        # A linear layer keeps its weights as (outputs, inputs).
        self.layers = torch.nn.ModuleList(
            [
                _linear(model.w_in.T, model.b_in),
                _linear(model.w_code.T, model.b_code),
                _linear(model.w_back.T, model.b_back),
                _linear(model.w_out, model.b_out),
            ]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        into, code, back, out = self.layers
        return ((out(torch.relu(back(code(torch.relu(into(x)))))) - x) ** 2).sum(dim=1)

    def gradients(self) -> list[list[torch.Tensor]]:
        """Return the gradients of each layer's weights and biases."""
        return [
            [parameter.grad for parameter in layer.parameters() if parameter.grad is not None] for layer in self.layers
        ]


def _linear(weight: torch.Tensor, bias: torch.Tensor) -> torch.nn.Linear:
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0]).to(weight.dtype)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return layer


def random_case(sizes: list[int], rows: int = 50, seed: int = 0) -> tuple[Tables, np.ndarray]:
    """Return tables that are not even symmetric: only looked-up rows count."""
    rng = np.random.default_rng(seed)
    tables = [rng.random((size, size), dtype=np.float32) for size in sizes]
    return tables, np.stack([rng.integers(0, size, rows) for size in sizes], axis=1)


def string_case(rows: int = 60) -> tuple[Tables, np.ndarray]:
    """Return similarities of real strings, with missing values, and rows that repeat."""
    rng = np.random.default_rng(0)
    vocabularies = [["Husband", "Wife", "Housewife", None], ["never", "nearly never", "always", None]]
    columns = [pd.Series(rng.choice(np.array(words, dtype=object), rows)) for words in vocabularies]
    words = [Vocabulary.of_counts(CategoryCounts.of(column), (2, 4), most=99) for column in columns]
    places = [vocabulary.nearest_places(*factorise(column)) for vocabulary, column in zip(words, columns, strict=True)]
    return [vocabulary.similarities() for vocabulary in words], np.stack(places, axis=1)


def model_of(tables: Tables, dtype: torch.dtype) -> FactorisedAutoencoder:
    generator = torch.Generator().manual_seed(0)
    constants = [torch.from_numpy(table).to(dtype) for table in tables]
    model = FactorisedAutoencoder(constants, latent=3, hidden=7, generator=generator)
    with torch.no_grad():
        # Biases start at zero, which would hide a mistake in them.
        for bias in (model.b_in, model.b_code, model.b_back, model.b_out):
            bias.copy_(torch.rand(bias.shape, generator=generator) - 0.5)
    return model.to(dtype)


def dense_rows(tables: Tables, places: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(np.hstack([t[p] for t, p in zip(tables, places.T, strict=True)])).to(dtype)


CASES = {
    "one column": random_case([9]),
    "one category": random_case([1, 1]),
    "several columns in one block": random_case([5, 17, 3]),
    "columns over several blocks": random_case([120, 120, 120, 300, 4, 2]),
    "strings with missing values": string_case(),
}


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)], ids=["f32", "f64"])
@pytest.mark.parametrize("case", CASES)
def test_loss_and_gradients_are_those_of_the_dense_network(case: str, dtype: torch.dtype, tolerance: float) -> None:
    tables, places = CASES[case]
    model = model_of(tables, dtype)
    dense = DenseAutoencoder(model)
    ours = model.loss(torch.from_numpy(places))
    theirs = dense(dense_rows(tables, places, dtype))
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance * float(theirs.max().detach()))
    ours.mean().backward()
    theirs.mean().backward()
    into, code, back, out = dense.gradients()
    pairs = [
        (model.w_in, into[0].T),
        (model.b_in, into[1]),
        (model.w_code, code[0].T),
        (model.b_code, code[1]),
        (model.w_back, back[0].T),
        (model.b_back, back[1]),
        (model.w_out, out[0]),
        (model.b_out, out[1]),
    ]
    for parameter, expected in pairs:
        assert parameter.grad is not None
        scale = float(expected.abs().max())
        torch.testing.assert_close(parameter.grad, expected, rtol=tolerance, atol=tolerance * scale)


def test_equal_rows_merged_and_weighted_give_the_same_loss_and_gradient() -> None:
    tables, places = string_case()
    distinct, counts = np.unique(places, axis=0, return_counts=True)
    assert len(distinct) < len(places)
    merged, single = model_of(tables, torch.float64), model_of(tables, torch.float64)
    weight = torch.from_numpy(counts / counts.sum())
    (merged.loss(torch.from_numpy(distinct)) * weight).sum().backward()
    single.loss(torch.from_numpy(places)).mean().backward()
    for ours, theirs in zip(merged.parameters(), single.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-10, atol=1e-12)


def components_error(tables: Tables, places: np.ndarray, latent: int) -> float:
    """Return the mean squared error of a plain PCA of the dense rows."""
    X = dense_rows(tables, places, torch.float64).numpy()
    pca = PCA(latent, svd_solver="full").fit(X)
    return float(((pca.inverse_transform(pca.transform(X)) - X) ** 2).sum(axis=1).mean())


@pytest.mark.parametrize("case", sorted(CASES.keys() - {"one category"}))
def test_training_starts_at_the_principal_components_of_all_rows(case: str) -> None:
    tables, places = CASES[case]
    # Steps of length zero: the weights stay at their start. Equal rows count as often as they occur.
    settings = replace(SETTINGS, learning_rate=0.0)
    expected = components_error(tables, places, SETTINGS.latent)
    np.testing.assert_allclose(train_autoencoder(tables, places, settings).losses, expected, rtol=0.03, atol=1e-5)


@pytest.mark.parametrize("case", ["strings with missing values", "columns over several blocks"])
def test_training_goes_below_the_principal_components(case: str) -> None:
    tables, places = CASES[case]
    losses = train_autoencoder(tables, places, replace(SETTINGS, epochs=10)).losses
    assert len(losses) == 10
    assert losses[-1] < losses[0]
    assert losses[-1] < 0.95 * components_error(tables, places, SETTINGS.latent)


@pytest.mark.parametrize(
    ("sizes", "rows", "latent", "hidden"), [([4, 3], 1, 2, 8), ([2], 9, 6, 8), ([5, 4], 9, 7, 3), ([1], 2, 1, 1)]
)
def test_layers_wider_than_the_table_and_single_rows(sizes: list[int], rows: int, latent: int, hidden: int) -> None:
    settings = AutoencoderSettings(latent, hidden, epochs=2)
    trained = train_autoencoder(*random_case(sizes, rows), settings)
    assert all(np.isfinite(array).all() for array in trained.to_arrays().values())
    assert trained.w_code.shape == (hidden, latent)


def test_enough_width_reconstructs_almost_everything() -> None:
    tables, places = string_case()
    losses = train_autoencoder(tables, places, AutoencoderSettings(latent=6, epochs=20, learning_rate=0.02)).losses
    # Without reconstruction the error is the variance of the rows.
    assert losses[-1] < 0.05 * dense_rows(tables, places, torch.float64).var(dim=0).sum().item()


def test_the_seed_determines_the_weights_to_the_byte() -> None:
    tables, places = string_case()

    def weights(seed: int) -> dict[str, bytes]:
        trained = train_autoencoder(tables, places, replace(SETTINGS, seed=seed))
        return {name: array.tobytes() for name, array in trained.to_arrays().items()}

    one, again, other = weights(1), weights(1), weights(2)
    assert one == again
    assert all(one[name] != other[name] for name in one)


@pytest.mark.parametrize("again", ["shuffled", "three times"])
def test_neither_the_order_of_rows_nor_how_often_the_table_is_repeated_matters(again: str) -> None:
    tables, places = string_case()
    rows = np.random.default_rng(1).permutation(places) if again == "shuffled" else np.tile(places, (3, 1))
    one, other = (train_autoencoder(tables, p, SETTINGS) for p in (places, rows))
    np.testing.assert_array_equal(one.w_in, other.w_in)
    np.testing.assert_array_equal(one.w_code, other.w_code)


def test_frequent_rows_are_reconstructed_better() -> None:
    table = np.eye(8, dtype=np.float32)
    settings = AutoencoderSettings(latent=1, hidden=8, epochs=8, learning_rate=0.02)

    def error_of_first(repeats: int) -> float:
        places = np.repeat(np.arange(8), [repeats, *[1] * 7])[:, None]
        # The mean error is over all rows, so with one row in a thousand of another kind it is that of the first.
        return float(train_autoencoder([table], places, settings).losses[-1])

    assert error_of_first(7_000) < 0.1 * error_of_first(1)


def test_progress_is_told_once_an_epoch() -> None:
    told: list[tuple[int, int]] = []
    train_autoencoder(*string_case(), SETTINGS, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
