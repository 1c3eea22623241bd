"""The dense autoencoder is the factorised one, and is trained alike."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from c2tc_pipeline.encoding.autoencoder import FactorisedAutoencoder
from c2tc_pipeline.encoding.autoencoder_training import AutoencoderSettings, train_autoencoder
from c2tc_pipeline.evaluation.speed.dense_autoencoder import DenseAutoencoder, dense_matrix, same_start, train_dense


@pytest.fixture
def columns() -> tuple[list[np.ndarray], np.ndarray]:
    """Similarities of three columns' categories, and 480 rows that are all different."""
    rng = np.random.default_rng(0)
    tables = []
    for size in (9, 8, 10):
        similar = rng.random((size, size), dtype=np.float32) / 2
        tables.append((similar + similar.T) / 2 + np.eye(size, dtype=np.float32) / 2)
    every = np.array(list(itertools.product(range(9), range(8), range(10))))
    return tables, every[rng.choice(len(every), 480, replace=False)]


def test_the_matrix_holds_each_rows_similarities() -> None:
    tables = [np.array([[1, 0.5], [0.5, 1]], dtype=np.float32), np.eye(2, dtype=np.float32)]
    assert dense_matrix(tables, np.array([[1, 0], [0, 1]])).tolist() == [[0.5, 1, 1, 0], [1, 0.5, 0, 1]]


def test_with_the_same_weights_the_losses_are_the_same(columns: tuple[list[np.ndarray], np.ndarray]) -> None:
    tables, places = columns
    generator = torch.Generator().manual_seed(0)
    model = FactorisedAutoencoder([torch.from_numpy(t) for t in tables], latent=2, hidden=8, generator=generator)
    with torch.no_grad():
        factorised = model.loss(torch.from_numpy(places)).numpy()
        dense = DenseAutoencoder.like(model).loss(dense_matrix(tables, places)).numpy()
    assert dense == pytest.approx(factorised, rel=1e-4)


def test_from_the_same_start_training_ends_at_the_same_loss(columns: tuple[list[np.ndarray], np.ndarray]) -> None:
    tables, places = columns
    settings = AutoencoderSettings(latent=2, hidden=16, epochs=10, batch_size=30)
    factorised = train_autoencoder(tables, places, settings).losses
    dense = dense_matrix(tables, places)
    model = same_start(tables, places, settings)
    trained = train_dense(model, dense, settings, batch_size=30)
    assert trained.finished
    assert len(trained.losses) == 10
    assert trained.losses[-1] == pytest.approx(factorised[-1], rel=0.01)
    # From anywhere else it is not: the agreement above says something.
    elsewhere = train_dense(DenseAutoencoder(27, latent=2, hidden=16), dense, settings, batch_size=30)
    assert abs(elsewhere.losses[-1] / factorised[-1] - 1) > 0.01


def test_the_time_ends_it_between_two_epochs(columns: tuple[list[np.ndarray], np.ndarray]) -> None:
    tables, places = columns
    settings = AutoencoderSettings(latent=2, hidden=4)
    ticks = iter(range(100))
    model = same_start(tables, places, settings)
    trained = train_dense(
        model, dense_matrix(tables, places), settings, batch_size=480, time_limit=3.5, clock=lambda: next(ticks)
    )
    assert not trained.finished
    assert len(trained.losses) == 3
