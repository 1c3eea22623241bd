"""The encoders as scikit-learn transformers, noise, and an encoder from outside."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from c2tc_pipeline.bench.encoders import LabelEncoder, OneHotPcaEncoder, TargetEncoder
from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.numeric import NumericPart
from c2tc_pipeline.encoding.part import Part
from c2tc_pipeline.encoding.storage import ENCODERS as REGISTRY
from c2tc_pipeline.encoding.storage import load_encoder, save_encoder, without_unused_strings
from c2tc_pipeline.encoding.target import TargetPart
from c2tc_pipeline_tests.encoding.mixed_tables import (
    QUICK,
    each_encoder,
    mixed_table,
    new_rows,
)


@parametrize_with_checks([HybridEncoder(), LabelEncoder(), OneHotPcaEncoder(), TargetEncoder()])
def test_scikit_learn_check(estimator: TableEncoder, check: Any) -> None:
    check(estimator)


@each_encoder
def test_a_pipeline_takes_raw_rows_and_set_output_keeps_the_index(encoder: TableEncoder) -> None:
    X, y = mixed_table()
    model = make_pipeline(clone(encoder), DecisionTreeClassifier(random_state=0)).fit(X, y)
    assert set(model.predict(new_rows())) <= set(y)
    X = X.set_axis([f"row {i % 40}" for i in range(len(X))])
    plain, tabled = clone(encoder).fit(X, y), clone(encoder).set_output(transform="pandas")
    fitted = tabled.fit_transform(X, y)
    np.testing.assert_array_equal(fitted.to_numpy(), plain.encode_training(X, y))
    table = tabled.transform(X)
    assert list(fitted.columns) == list(table.columns) == plain.get_feature_names_out().tolist()
    assert table.index.equals(X.index)
    np.testing.assert_array_equal(table.to_numpy(), plain.transform(X))


@pytest.mark.parametrize("numeric", ["minmax", "quantile"])
def test_numbers_are_scaled_alike_by_all_encoders(numeric: str) -> None:
    X = pd.DataFrame({"x": np.random.default_rng(0).exponential(size=200)})
    kinds = (HybridEncoder, LabelEncoder, OneHotPcaEncoder, TargetEncoder)
    first, *others = [kind(numeric=numeric).fit_transform(X) for kind in kinds]
    for other in others:
        np.testing.assert_array_equal(other, first)


def noisy(**changes: Any) -> tuple[HybridEncoder, np.ndarray]:
    encoder = HybridEncoder(**{**QUICK, "noise": 0.2, **changes})
    return encoder, encoder.fit_transform(*mixed_table())


def test_only_target_encoded_columns_of_training_rows_get_noise_from_the_seed() -> None:
    encoder, encoded = noisy()
    clean = noisy(noise=0.0)[1]
    at_target = np.array([isinstance(part, TargetPart) for part in encoder.parts_ for _ in part.names()])
    assert 0 < at_target.sum() < len(at_target)
    np.testing.assert_array_equal(encoded[:, ~at_target], clean[:, ~at_target])
    assert (np.abs(encoded - clean)[:, at_target].max(axis=0) > 0.1).all()
    assert 0 <= encoded.min() <= encoded.max() <= 1
    np.testing.assert_array_equal(encoder.transform(mixed_table()[0]), noisy(noise=0.0)[0].transform(mixed_table()[0]))
    np.testing.assert_array_equal(encoded, noisy()[1])
    assert (encoded[:, at_target] != noisy(random_state=1)[1][:, at_target]).any()
    tabled = HybridEncoder(**QUICK, noise=0.2).set_output(transform="pandas")
    np.testing.assert_array_equal(tabled.fit_transform(*mixed_table()), encoded)
    assert HybridEncoder.as_in_paper().noise > 0


def test_noise_has_the_given_spread_and_differs_between_columns() -> None:
    rows = 4_000
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a_code": rng.integers(0, 3, rows), "b_code": rng.integers(0, 3, rows)})
    # The middle category is far from both ends, so that nothing is clipped there.
    y = (rng.random(rows) < X.a_code * 0.25 + X.b_code * 0.25).astype(int)
    encoder = HybridEncoder(noise=0.05)
    clean = HybridEncoder().fit_transform(X, y)
    noise = (encoder.fit_transform(X, y) - clean)[(X.a_code == 1) & (X.b_code == 1)]
    np.testing.assert_allclose(noise.std(axis=0), 0.05, rtol=0.2)
    np.testing.assert_allclose(noise.mean(axis=0), 0, atol=0.01)
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.2


class OtherPart(NumericPart):
    """A part from outside the package."""

    kind = "other part of test_encoders"


class OtherEncoder(TableEncoder):
    """An encoder from outside the package."""

    def __init__(self, *, roles: Mapping[str, str] | None = None, random_state: int = 0) -> None:
        self.roles = roles
        self.random_state = random_state

    def _fit_parts(self, statistics: Any, columns: list[str], progress: Any) -> list[Part]:
        return [OtherPart.fit(statistics, columns, "minmax")]


def test_an_encoder_from_outside_needs_one_registry_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(REGISTRY, "OtherEncoder", f"{__name__}:OtherEncoder")
    X = mixed_table()[0][["height", "visits"]]
    encoder = OtherEncoder().fit(X)
    save_encoder(encoder, tmp_path)
    loaded = load_encoder(tmp_path)
    assert (type(loaded).__name__, type(loaded.parts_[0]).__name__) == ("OtherEncoder", "OtherPart")
    np.testing.assert_array_equal(loaded.transform(X), encoder.transform(X))
    assert without_unused_strings(encoder, X.iloc[:1]).removed == 0
