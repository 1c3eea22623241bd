"""Weights of columns in distances: what says nothing about the label counts less."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline import Condenser, condense
from c2tc_pipeline.clustering.rows import RowSource
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.column_weights import choose_weights


def telling_and_noise(rows: int = 1_500, noise: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((rows, 1 + noise)).astype(np.float32)
    y = (np.sin(9 * X[:, 0]) + 0.3 * rng.normal(size=rows) > 0).astype(int)
    order = np.argsort(y, kind="stable")
    return X[order], y[order]


def test_a_telling_column_among_noise_weighs_most() -> None:
    X, y = telling_and_noise()
    edges = np.concatenate([[0], np.cumsum(np.bincount(y))])
    found = choose_weights(RowSource.of(X), edges, [[f"x{i}"] for i in range(X.shape[1])], "auto")
    assert found is not None
    assert max(found.importance, key=found.importance.__getitem__) == "x0"
    assert found.power is not None
    assert found.power > 0
    assert max(found.factors[1:]) < found.factors[0]
    assert choose_weights(RowSource.of(X[:900]), np.array([0, 450, 900]), [["a"], ["b"]], "auto") is None


def test_encoded_columns_of_one_source_column_share_a_weight() -> None:
    X, y = telling_and_noise(noise=3)
    edges = np.concatenate([[0], np.cumsum(np.bincount(y))])
    found = choose_weights(RowSource.of(X), edges, [["a"], ["b"], ["b"], ["c"]], "auto")
    assert found is not None
    assert found.factors[1] == found.factors[2]


def test_weighted_clusters_lie_around_the_means_of_their_rows() -> None:
    X, y = telling_and_noise(600, 2)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    condenser = Condenser(rows=20, column_weights={"a": 5.0, "b": 0.1})
    small, _ = condenser.fit_resample(frame, y)
    means = frame.groupby(condenser.membership_).mean()
    np.testing.assert_allclose(small, means, atol=1e-6)
    plain = Condenser(rows=20, column_weights="none").fit(frame, y)
    within = [frame["a"].groupby(each.membership_).std().mean() for each in (condenser, plain)]
    assert within[0] < within[1]
    alike, none = (Condenser(rows=20, column_weights=how).fit(frame, y) for how in ({"a": 1.0}, "none"))
    np.testing.assert_array_equal(alike.membership_, none.membership_)


@pytest.mark.parametrize(
    ("wanted", "named"), [("best", "column_weights"), ({"a": 0}, "'a'"), ({"aa": 1.0}, "'aa'"), (3, "column_weights")]
)
def test_weights_that_can_not_be_used(wanted: Any, named: str) -> None:
    rows = pd.DataFrame({"a": range(40), "b": [1, 5] * 20, "y": ["n"] * 20 + ["p"] * 20})
    with pytest.raises(InputError, match=named):
        condense(rows, label="y", rows=6, column_weights=wanted)


def test_scaled_rows_of_files_are_those_of_memory(tmp_path: Any) -> None:
    X = np.random.default_rng(0).random((500, 3)).astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    factors = np.array([0.25, 1.0, 3.0])
    stored = RowSource.of(np.load(tmp_path / "rows.npy", mmap_mode="r")).scaled(factors)
    held = RowSource.of(X, str(tmp_path / "rows.npy")).scaled(factors)
    assert held.stored is not None
    for rows in (stored, held, held.stored):
        np.testing.assert_array_equal(rows.part(100, 200).read(), X[100:200] * factors.astype(np.float32))
        np.testing.assert_array_equal(rows.take(np.array([7, 3])), X[[7, 3]] * factors.astype(np.float32))
