"""Distribution matching: what is matched are class means of embeddings, and they do come closer."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from c2tc_pipeline.bench.rivals.dm import DistributionMatching, mean_distance
from c2tc_pipeline.bench.rivals.relay import relay_builder, without_head
from c2tc_pipeline.evaluation.models.network import mlp_network
from c2tc_pipeline_tests.bench.rivals.test_matching import blobs, classes_of, started

IDENTITY = partial(mlp_network, widths=())


@pytest.mark.parametrize("batch_size", [1000, 40])
def test_with_the_rows_as_embeddings_one_row_a_class_becomes_the_class_mean(batch_size: int) -> None:
    X, y = blobs(300)
    dm = DistributionMatching(rows=2, relay=IDENTITY, steps=300, learning_rate=0.03, batch_size=batch_size)
    rows, labels = dm.fit_resample(X, y)
    means = np.stack([X[y == label].mean(axis=0) for label in labels])
    # Whole classes give the mean itself; batches of 40 give it up to the noise that the last steps leave.
    np.testing.assert_allclose(rows, means, atol=1e-3 if batch_size > 300 else 0.06)
    if batch_size > 300:
        assert dm.losses_[-1] < 1e-6 * dm.losses_[0]


def test_several_rows_of_a_class_have_the_class_mean_together() -> None:
    X, y = blobs(300)
    rows, labels = DistributionMatching(
        rows=10, relay=IDENTITY, steps=300, learning_rate=0.03, batch_size=1000
    ).fit_resample(X, y)
    for label in (0, 1):
        np.testing.assert_allclose(rows[labels == label].mean(axis=0), X[y == label].mean(axis=0), atol=1e-3)


@pytest.mark.parametrize("relay", ["mlp", "ft_transformer"])
def test_class_means_come_closer_under_networks_that_were_never_seen(relay: str) -> None:
    X, y = blobs(300)
    dm = DistributionMatching(rows=6, relay=relay, steps=40, learning_rate=0.03, batch_size=64)
    rows, labels = dm.fit_resample(X, y)
    before, _ = started(dm, X, y)
    build = relay_builder(relay, 2, 2)
    real = classes_of(X, y)
    distances = []
    with torch.random.fork_rng():
        torch.manual_seed(12345)
        for _ in range(10):
            embed = without_head(build())
            distances.append([mean_distance(embed, real, classes_of(made, labels)).item() for made in (before, rows)])
    at_first, in_the_end = np.mean(distances, axis=0)
    assert in_the_end < 0.2 * at_first


def test_the_distance_is_that_of_a_plain_computation() -> None:
    embed = without_head(mlp_network(3, 2, (4,)))
    real = [torch.rand(5, 3), torch.rand(2, 3)]
    synthetic = [torch.rand(1, 3), torch.rand(4, 3)]
    plain = 0.0
    for a, b in zip(real, synthetic, strict=True):
        mean_a = sum(embed(row) for row in a) / len(a)
        mean_b = sum(embed(row) for row in b) / len(b)
        plain += sum((p - q) ** 2 for p, q in zip(mean_a.tolist(), mean_b.tolist(), strict=True))
    assert mean_distance(embed, real, synthetic).item() == pytest.approx(plain, rel=1e-4)
    assert mean_distance(embed, real, real).item() == 0.0
