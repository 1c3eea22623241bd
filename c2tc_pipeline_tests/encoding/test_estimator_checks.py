"""scikit-learn's own examination of estimators; no check is expected to fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.label import LabelEncoder
from c2tc_pipeline.encoding.onehot import OneHotPcaEncoder
from c2tc_pipeline.encoding.target import TargetEncoder
from c2tc_pipeline_tests.encoding.mixed_tables import ENCODERS, encoder_name, mixed_table, new_rows


@parametrize_with_checks([HybridEncoder(), LabelEncoder(), OneHotPcaEncoder(), TargetEncoder()])
def test_scikit_learn_check(estimator: TableEncoder, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("encoder", ENCODERS, ids=encoder_name)
def test_a_pipeline_takes_raw_rows(encoder: TableEncoder) -> None:
    X, y = mixed_table()
    model = make_pipeline(clone(encoder), DecisionTreeClassifier(random_state=0)).fit(X, y)
    assert set(model.predict(new_rows())) <= set(y)


@pytest.mark.parametrize("encoder", ENCODERS, ids=encoder_name)
def test_set_output_gives_a_table_with_the_rows_index(encoder: TableEncoder) -> None:
    X, y = mixed_table()
    X = X.set_axis([f"row {i % 40}" for i in range(len(X))])
    plain = clone(encoder).fit(X, y)
    tabled = clone(encoder).set_output(transform="pandas")
    fitted = tabled.fit_transform(X, y)
    table = tabled.transform(X)
    assert isinstance(fitted, pd.DataFrame)
    assert list(fitted.columns) == list(table.columns) == plain.get_feature_names_out().tolist()
    assert table.index.equals(X.index)
    np.testing.assert_array_equal(table.to_numpy(), plain.transform(X))
