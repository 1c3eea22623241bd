"""The encoders of the ablation against scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder
from sklearn.preprocessing import TargetEncoder as ScikitTargetEncoder

from c2tc_pipeline.bench.encoders import LabelEncoder, OneHotPcaEncoder, TargetEncoder
from c2tc_pipeline_tests.encoding.mixed_tables import CODES, WORDS


def categories(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    relation = rng.choice(WORDS, rows, p=np.arange(1, 7) / 21)
    return pd.DataFrame({"relation": relation, "airport": rng.choice(CODES, rows), "port": rng.choice(CODES, rows)})


def test_label_encoding_is_scikit_learns_ordinal_encoding_with_a_place_for_the_unknown() -> None:
    X = categories()
    ordinal = OrdinalEncoder().fit(X)
    places = [len(known) for known in ordinal.categories_]
    encoder = LabelEncoder().fit(X)
    np.testing.assert_allclose(encoder.transform(X), ordinal.transform(X) / places, rtol=1e-6)
    unknown = pd.DataFrame({"relation": ["?", None], "airport": ["?", None], "port": ["?", None]})
    np.testing.assert_array_equal(encoder.transform(unknown), 1)


def test_one_hot_pca_is_scikit_learns_up_to_the_sign_whatever_the_order_of_rows() -> None:
    X = categories()
    onehot = OneHotEncoder(sparse_output=False).fit_transform(X)
    expected = MinMaxScaler().fit_transform(PCA(3, svd_solver="full").fit_transform(onehot))
    encoder = OneHotPcaEncoder().fit(X)
    ours = encoder.transform(X)
    for column in range(3):
        errors = [np.abs(ours[:, column] - side).max() for side in (expected[:, column], 1 - expected[:, column])]
        assert min(errors) < 1e-4
    shuffled = OneHotPcaEncoder().fit(X.sample(frac=1, random_state=1))
    np.testing.assert_allclose(shuffled.transform(X), ours, atol=1e-5)
    assert list(encoder.sources().values()) == [list(X.columns)] * 3


def test_one_hot_pca_puts_rare_missing_and_unseen_categories_in_one_place() -> None:
    X = categories()[["relation"]]
    encoder = OneHotPcaEncoder(max_categories=4).fit(X)
    rare, rarer = X.relation.value_counts().index[4:]
    assert len(np.unique(encoder.transform(pd.DataFrame({"relation": [rare, rarer, None, "?"]})))) == 1


def test_the_scalar_target_is_the_mean_class_number_and_depends_on_the_order() -> None:
    rng = np.random.default_rng(0)
    codes, shares = rng.integers(0, 7, 400), rng.dirichlet([1, 1, 1], 7)
    X, y = pd.DataFrame({"c": codes}), np.array([rng.choice(3, p=shares[code]) for code in codes])
    oracle = ScikitTargetEncoder(target_type="continuous", smooth=10.0).fit(X, y.astype(float))
    encoder = TargetEncoder(roles={"c": "code"}, smoothing=10.0, scalar=True)
    encoded = encoder.fit(X, y).transform(X)
    np.testing.assert_allclose(encoded, MinMaxScaler().fit_transform(oracle.transform(X)), atol=1e-6)
    turned = encoder.fit(X, (y + 1) % 3).transform(X)
    assert abs(np.corrcoef(encoded.ravel(), turned.ravel())[0, 1]) < 0.99
