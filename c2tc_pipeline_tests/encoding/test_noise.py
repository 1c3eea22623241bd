"""Noise: only when training rows are encoded, only on target-encoded columns, seeded and clipped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.target import TargetPart
from c2tc_pipeline_tests.encoding.mixed_tables import QUICK, mixed_table


def noisy(**changes: Any) -> tuple[HybridEncoder, np.ndarray]:
    encoder = HybridEncoder(**{**QUICK, "noise": 0.2, **changes})
    return encoder, encoder.fit_transform(*mixed_table())


def target_columns(encoder: HybridEncoder) -> np.ndarray:
    return np.array([isinstance(part, TargetPart) for part in encoder.parts_ for _ in part.names()])


def test_only_target_encoded_columns_of_training_rows_get_noise() -> None:
    encoder, encoded = noisy()
    clean = encoder.transform(mixed_table()[0])
    noise = encoded - clean
    at_target = target_columns(encoder)
    assert 0 < at_target.sum() < len(at_target)
    np.testing.assert_array_equal(noise[:, ~at_target], 0)
    assert (np.abs(noise[:, at_target]).max(axis=0) > 0.1).all()
    assert encoded.min() >= 0
    assert encoded.max() <= 1
    np.testing.assert_array_equal(clean, HybridEncoder(**QUICK).fit_transform(*mixed_table()))


def test_noise_has_the_asked_for_spread_and_differs_between_columns() -> None:
    rows = 4_000
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a_code": rng.integers(0, 3, rows), "b_code": rng.integers(0, 3, rows)})
    # The middle category is far from both ends, so that nothing is clipped there.
    y = (rng.random(rows) < X.a_code * 0.25 + X.b_code * 0.25).astype(int)
    encoder = HybridEncoder(noise=0.05)
    noise = encoder.fit_transform(X, y) - encoder.transform(X)
    middle = ((X.a_code == 1) & (X.b_code == 1)).to_numpy()
    np.testing.assert_allclose(noise[middle].std(axis=0), 0.05, rtol=0.2)
    np.testing.assert_allclose(noise[middle].mean(axis=0), 0, atol=0.01)
    assert abs(np.corrcoef(noise[middle].T)[0, 1]) < 0.2


def test_the_seed_determines_the_noise() -> None:
    (_, one), (_, again), (encoder, other) = noisy(), noisy(), noisy(random_state=1)
    np.testing.assert_array_equal(one, again)
    at_target = target_columns(encoder)
    assert (one[:, at_target] != other[:, at_target]).any()


def test_a_numeric_column_with_the_name_of_a_target_column_gets_no_noise() -> None:
    X = pd.DataFrame({"day__is_b": np.linspace(0, 1, 60), "day": np.arange(60) % 5})
    y = np.array(["a", "b", "c"])[np.arange(60) // 20]
    encoder = HybridEncoder(noise=0.3, roles={"day": "code"})
    encoded = encoder.fit_transform(X, y)
    np.testing.assert_array_equal(encoded[:, 0], encoder.transform(X)[:, 0])
    assert (encoded[:, 1:] != encoder.transform(X)[:, 1:]).any()


def test_the_papers_setting_has_noise_and_the_default_none() -> None:
    assert HybridEncoder.as_in_paper().noise > 0
    encoder, encoded = noisy(noise=0.0)
    np.testing.assert_array_equal(encoded, encoder.transform(mixed_table()[0]))


@pytest.mark.parametrize("transform", ["default", "pandas"])
def test_noise_with_any_kind_of_output(transform: str) -> None:
    encoder = HybridEncoder(**QUICK, noise=0.2).set_output(transform=transform)
    np.testing.assert_array_equal(np.asarray(encoder.fit_transform(*mixed_table())), noisy()[1])
