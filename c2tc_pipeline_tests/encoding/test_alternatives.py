"""The ablation's encoders against scikit-learn's OrdinalEncoder, OneHotEncoder and PCA."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder

from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.label import LabelEncoder
from c2tc_pipeline.encoding.onehot import OneHotPcaEncoder
from c2tc_pipeline.encoding.target import TargetEncoder
from c2tc_pipeline_tests.encoding.mixed_tables import CODES, WORDS


def categories(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    weights = np.arange(1, 7) / 21
    return pd.DataFrame(
        {
            "relation": rng.choice(WORDS, rows, p=weights),
            "airport": rng.choice(CODES, rows),
            "port": rng.choice(CODES, rows),
        }
    )


def test_label_encoding_is_scikit_learns_ordinal_encoding_with_a_place_for_the_unknown() -> None:
    X = categories()
    ordinal = OrdinalEncoder().fit(X)
    places = [len(known) for known in ordinal.categories_]
    encoder = LabelEncoder().fit(X)
    np.testing.assert_allclose(encoder.transform(X), ordinal.transform(X) / places, rtol=1e-6)
    unknown = pd.DataFrame({"relation": ["?", None], "airport": ["?", None], "port": ["?", None]})
    np.testing.assert_array_equal(encoder.transform(unknown), 1)


def test_one_hot_pca_is_scikit_learns_up_to_the_sign() -> None:
    X = categories()
    onehot = OneHotEncoder(sparse_output=False).fit_transform(X)
    expected = MinMaxScaler().fit_transform(PCA(3, svd_solver="full").fit_transform(onehot))
    ours = OneHotPcaEncoder().fit_transform(X)
    for column in range(3):
        errors = [np.abs(ours[:, column] - side).max() for side in (expected[:, column], 1 - expected[:, column])]
        assert min(errors) < 1e-4


def test_one_hot_pca_does_not_depend_on_the_order_of_rows() -> None:
    X = categories()
    order = np.random.default_rng(1).permutation(len(X))
    ours, shuffled = OneHotPcaEncoder().fit(X), OneHotPcaEncoder().fit(X.iloc[order])
    np.testing.assert_allclose(ours.transform(X), shuffled.transform(X), atol=1e-5)


def test_one_hot_pca_puts_rare_missing_and_unseen_categories_in_one_place() -> None:
    X = categories()[["relation"]]
    encoder = OneHotPcaEncoder(max_categories=4).fit(X)
    rare, rarer = X.relation.value_counts().index[4:]
    encoded = encoder.transform(pd.DataFrame({"relation": [rare, rarer, None, "?"]}))
    assert len(np.unique(encoded)) == 1


@pytest.mark.parametrize("numeric", ["minmax", "quantile"])
def test_numbers_are_scaled_alike_by_all_encoders(numeric: str) -> None:
    X = pd.DataFrame({"x": np.random.default_rng(0).exponential(size=200)})
    encoded = [
        kind(numeric=numeric).fit_transform(X)
        for kind in (HybridEncoder, LabelEncoder, OneHotPcaEncoder, TargetEncoder)
    ]
    for other in encoded[1:]:
        np.testing.assert_array_equal(other, encoded[0])
