"""The condenser as a sampler: what scikit-learn and imbalanced-learn expect of one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from imblearn.pipeline import make_pipeline
from imblearn.utils.estimator_checks import parametrize_with_checks
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from c2tc_pipeline import Condenser, HybridEncoder, condense
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.stages import StageClock
from c2tc_pipeline.condensation.clusters import SingletonWarning
from c2tc_pipeline.condensation.encoded import EncodedRows
from c2tc_pipeline.condensation.table import PULL, training_weights
from c2tc_pipeline_tests.tools.made_tables import mixed_table


@pytest.fixture(autouse=True)
def _no_warning_but_the_one_about_singletons() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SingletonWarning)
        yield


def rows_and_classes(rows: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = (rng.random(rows) < 0.2).astype(int)
    return rng.normal(y[:, None], 1.0, (rows, 3)), y


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@parametrize_with_checks([Condenser(ratio=0.1)])
def test_imbalanced_learn_checks(estimator: Condenser, check: Callable[[Condenser], None]) -> None:
    check(estimator)


def test_fitted_attributes_agree() -> None:
    X, y = rows_and_classes()
    condenser = Condenser(ratio=0.1)
    X_small, y_small = condenser.fit_resample(X, y)
    assert condenser.fit(X, y) is condenser
    assert X_small.shape == (20, 3)
    assert condenser.classes_.tolist() == [0, 1]
    assert condenser.n_features_in_ == 3
    assert condenser.weights_.tolist() == np.bincount(condenser.membership_, minlength=20).tolist()
    np.testing.assert_array_equal(y_small[condenser.membership_], y)
    np.testing.assert_allclose(X_small, pd.DataFrame(X).groupby(condenser.membership_).mean())
    np.testing.assert_array_equal(condenser.membership_[condenser.sample_indices_], np.arange(20))


def test_medoids_are_rows_of_X() -> None:
    X, y = rows_and_classes()
    condenser = Condenser(ratio=0.1, representative="medoid", column_weights="none")
    X_small, y_small = condenser.fit_resample(X, y)
    np.testing.assert_array_equal(X_small, X[condenser.sample_indices_])
    np.testing.assert_array_equal(y_small, y[condenser.sample_indices_])
    means = pd.DataFrame(X).groupby(condenser.membership_).mean().to_numpy()
    gaps = pd.Series(((X - means[condenser.membership_]) ** 2).sum(axis=1))
    nearest = gaps.groupby(condenser.membership_).min()
    np.testing.assert_allclose(gaps[condenser.sample_indices_], nearest, atol=1e-9)


def test_inputs_and_parameters_are_not_modified() -> None:
    X, y = rows_and_classes()
    X_before, y_before = X.copy(), y.copy()
    condenser = Condenser(ratio=0.1, gamma="auto", random_state=3)
    before = condenser.get_params()
    condenser.fit_resample(X, y)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)
    assert condenser.get_params() == before


def test_a_second_fit_forgets_the_first() -> None:
    X, y = rows_and_classes()
    used = Condenser(ratio=0.1)
    used.fit_resample(pd.DataFrame(X[:90, :2], columns=["a", "b"]), y[:90])
    again, fresh = used.fit_resample(X, y), Condenser(ratio=0.1).fit_resample(X, y)
    np.testing.assert_array_equal(again[0], fresh[0])
    assert used.n_features_in_ == 3
    assert not hasattr(used, "feature_names_in_")


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(["no", "yes"] * 100, name="answer", dtype="str"),
        pd.Series([1, 2] * 100, name="answer", dtype="int8"),
        pd.Series(pd.Categorical(["no", "yes"] * 100, categories=["yes", "no", "never"]), name="answer"),
        pd.Series([True, False] * 100, name="answer"),
    ],
    ids=["str", "int8", "category", "bool"],
)
def test_frames_and_series_come_back_as_they_went_in(labels: pd.Series) -> None:
    X, _ = rows_and_classes()
    frame = pd.DataFrame(X.astype(np.float32), columns=["a", "b", "c"], index=pd.Index(range(500, 700)))
    X_small, y_small = Condenser(ratio=0.1).fit_resample(frame, labels)
    assert X_small.columns.tolist() == ["a", "b", "c"]
    assert (X_small.dtypes == np.float32).all()
    assert y_small.name == "answer"
    assert y_small.dtype == labels.dtype
    assert set(y_small) == set(labels)


@pytest.mark.parametrize(
    "text", [pd.Series(["u", "v"] * 100), pd.Categorical(["u", "v"] * 100)], ids=["str", "category"]
)
def test_text_is_refused_by_the_name_of_its_column(text: Any) -> None:
    X, y = rows_and_classes()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(colour=text)
    with pytest.raises(InputError, match="'colour'"):
        Condenser().fit_resample(frame, y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_gaps_and_infinities_are_refused(bad: float) -> None:
    X, y = rows_and_classes()
    X[7, 1] = bad
    with pytest.raises(ValueError, match=r"contains NaN|contains infinity"):
        Condenser().fit_resample(X, y)


def test_validation_rows() -> None:
    X, y = rows_and_classes(400)
    condenser = Condenser(ratio=0.1, gamma="auto")
    condenser.fit_resample(X[:300], y[:300], validation=(X[300:], y[300:]))
    assert condenser.allocation_.gamma in {score.gamma for score in condenser.plan_.gamma_scores}
    with pytest.raises(InputError, match="No validation row has a class"):
        condenser.fit_resample(X[:300], y[:300], validation=(X[300:], y[300:] + 7))
    with pytest.raises(ValueError, match="2 features"):
        condenser.fit_resample(X[:300], y[:300], validation=(X[300:, :2], y[300:]))


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_in_a_pipeline_after_the_encoder(output: str) -> None:
    frame = mixed_table(600, classes=2)
    X, y = frame.drop(columns="outcome"), frame["outcome"]
    encoder = HybridEncoder().set_output(transform=output)
    pipeline = make_pipeline(encoder, Condenser(ratio=0.1), LogisticRegression()).fit(X[::2], y[::2])
    predicted = pipeline.predict(X[1::2])
    # Rows are condensed when the pipeline is fitted and never when it predicts.
    assert len(predicted) == 300
    assert (predicted == y[1::2]).mean() > 0.6
    assert len(pipeline[1].weights_) == 30
    assert hasattr(pipeline[1], "feature_names_in_") == (output == "pandas")


def test_in_a_grid_search() -> None:
    X, y = rows_and_classes(300)
    pipeline = make_pipeline(Condenser(ratio=0.1), LogisticRegression())
    search = GridSearchCV(pipeline, {"condenser__allocation": ["ratio", "fipc"]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.6


@pytest.mark.parametrize("offset", [1e3, 1e4])
def test_where_the_rows_lie_does_not_matter_in_float32(offset: float) -> None:
    rng = np.random.default_rng(0)
    rows = rng.random((400, 5)).astype(np.float32)
    labels = rng.integers(0, 2, 400)

    def objective(shifted: np.ndarray) -> float:
        condenser = Condenser(0.05, column_weights="none")
        condensed, _ = condenser.fit_resample(shifted, labels)
        assert condensed.mean() == pytest.approx(shifted.mean(), rel=0.05)
        return condenser.allocation_.objective

    # The offset itself costs precision of the rows: about 1e-7 of it.
    assert objective(rows + np.float32(offset)) == pytest.approx(objective(rows), rel=0.05)


@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 3)), min_size=1, max_size=40))
def test_rows_of_a_class_count_by_their_members(rows: list[tuple[int, int]]) -> None:
    members, classes = np.array(rows).T
    weights = training_weights(members, classes)
    np.testing.assert_allclose(weights.mean(), 1)
    for value in np.unique(classes):
        own = classes == value
        np.testing.assert_allclose(weights[own] / weights[own].mean(), members[own] / members[own].mean())


def test_classes_weigh_between_what_they_were_given_and_what_they_have() -> None:
    """A class of a tenth of the rows that got half of the condensed ones weighs less than half, more than a tenth."""
    weights = training_weights(np.array([45, 45, 5, 5]), np.array(["a", "a", "b", "b"]))
    share = weights[2:].sum() / weights.sum()
    np.testing.assert_allclose(share, 0.5 * (1 - PULL) + 0.1 * PULL)
    assert 0.1 < share < 0.5


def test_the_table_and_the_condenser_agree() -> None:
    small = condense(mixed_table(), "outcome", rows=15)
    expected = training_weights(small.weight.to_numpy(), small.y.to_numpy())
    np.testing.assert_allclose(small.training_weight, expected)
    X, y = np.random.default_rng(0).random((100, 2)), np.repeat([0, 1], [80, 20])
    condenser = Condenser(rows=10).fit(X, y)
    _, labels = condenser.fit_resample(X, y)
    np.testing.assert_allclose(condenser.training_weights_, training_weights(condenser.weights_, labels))


@pytest.mark.parametrize("stored", [False, True])
def test_rows_close_to_each_other_are_clustered_as_by_exact_distances(stored: bool, tmp_path: Path) -> None:
    # What min-max scaling leaves of columns with outliers: rows within 0.0001 of 0.6.
    rng = np.random.default_rng(0)
    X = (0.6 + 1e-4 * rng.normal(size=(1_500, 5))).astype(np.float32)
    X[[0, 800]] = [0], [1]
    if stored:
        np.save(tmp_path / "rows.npy", X)
        X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    encoded = EncodedRows(X, np.array([0, 750, 1_500]), (), ("a", "b"))
    condenser = Condenser(rows=30)
    clusters = condenser.cluster(encoded, condenser.plan(encoded, clock=StageClock()), clock=StageClock())
    means = np.array([X[clusters.labels == cluster].mean(axis=0, dtype=np.float64) for cluster in range(30)])
    exact = np.square(X[:, None].astype(np.float64) - means).sum(axis=2)
    exact[:750, clusters.codes != 0] = exact[750:, clusters.codes != 1] = np.inf
    assert (exact.argmin(axis=1) != clusters.labels).mean() < 0.02
    np.testing.assert_allclose(clusters.centers, means, atol=1e-7)
