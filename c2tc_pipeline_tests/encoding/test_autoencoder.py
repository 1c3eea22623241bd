"""The factorised autoencoder against a plain dense one on the N x D matrix, and how it trains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from c2tc_pipeline.encoding.autoencoder_training import AutoencoderSettings, train_autoencoder
from c2tc_pipeline_tests.encoding.autoencoder_cases import (
    CASES,
    DenseAutoencoder,
    Tables,
    dense_rows,
    model_of,
    random_case,
    string_case,
)

SETTINGS = AutoencoderSettings(latent=2, hidden=8, epochs=3)


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
    dense.assert_pulls_as(model, tolerance)


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
