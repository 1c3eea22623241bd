"""The dense autoencoder is the factorised one, and is trained alike."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from c2tc_pipeline.bench.speed.dense_autoencoder import DenseAutoencoder, dense_matrix, same_task, train_dense
from c2tc_pipeline.encoding.autoencoder import AutoencoderSettings, FactorisedAutoencoder, train_autoencoder


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
    model = FactorisedAutoencoder(tables, latent=2, hidden=8, generator=generator)
    with torch.no_grad():
        factorised = model.loss(model.batch(places)).numpy()
        dense = DenseAutoencoder.like(model).loss(dense_matrix(tables, places)).numpy()
    assert dense == pytest.approx(factorised, rel=1e-4)


def test_the_same_steps_from_the_same_start_end_at_the_same_losses(
    columns: tuple[list[np.ndarray], np.ndarray],
) -> None:
    tables, places = columns
    settings = AutoencoderSettings(latent=2, hidden=16, epochs=10, batch_size=30)
    # Some rows more than once: both merge them, and count them by their numbers.
    places = np.vstack([places, places[:40]])
    factorised = train_autoencoder(tables, places, settings).losses
    task = same_task(tables, places, settings)
    trained = train_dense(task, settings)
    assert trained.finished
    assert list(trained.losses) == pytest.approx(factorised.tolist(), rel=5e-3)
    # From anywhere else it does not: the agreement above says something.
    elsewhere = dataclasses.replace(task, start=DenseAutoencoder(27, latent=2, hidden=16))
    assert abs(train_dense(elsewhere, settings).losses[-1] / factorised[-1] - 1) > 0.01


def test_the_time_ends_it_between_two_epochs(columns: tuple[list[np.ndarray], np.ndarray]) -> None:
    tables, places = columns
    settings = AutoencoderSettings(latent=2, hidden=4)
    ticks = iter(range(100))
    trained = train_dense(same_task(tables, places, settings), settings, time_limit=3.5, clock=lambda: next(ticks))
    assert not trained.finished
    assert len(trained.losses) == 3
