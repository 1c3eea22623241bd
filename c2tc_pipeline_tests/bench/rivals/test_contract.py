"""What every classic rival promises, whatever its method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imblearn.utils import estimator_checks
from sklearn.base import clone

from c2tc_pipeline.allocation.shares import proportional_counts
from c2tc_pipeline.bench.rivals import make_rival
from c2tc_pipeline.common.errors import InputError

PICKING = ("random", "stratified", "herding", "k_center", "lightweight")
MAKING = ("cluster_centroids", "minibatch_kmeans")
ALL = PICKING + MAKING
DETERMINISTIC = ("herding", "k_center")
# k-means says that equal rows make fewer clusters than it was asked for; here that is the point.
few_distinct = pytest.mark.filterwarnings("ignore:Number of distinct clusters")


def rows_and_classes(rows: int = 120, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose classes lie far apart, shuffled, the last class with two rows only."""
    rng = np.random.default_rng(seed)
    y = np.sort(rng.integers(0, classes - 1, rows))
    y[:2] = classes - 1
    y = rng.permutation(y)
    return rng.random((rows, 4)) + 10 * y[:, None], y


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("rows", [3, 17, 119])
def test_the_budget_is_exact_every_class_is_there_and_labels_are_right(name: str, rows: int) -> None:
    X, y = rows_and_classes()
    rival = make_rival(name, ratio=0.5, rows=rows)
    X_small, y_small = rival.fit_resample(X, y)
    assert X_small.shape == (rows, 4)
    assert set(y_small) == {0, 1, 2}
    # A class fills its own stretch of ten, so that a row tells its class.
    np.testing.assert_array_equal(X_small[:, 0] // 10, y_small)
    np.testing.assert_array_equal(rival.counts_, np.bincount(y_small))


@pytest.mark.parametrize("name", [name for name in ALL if name != "random"])
@settings(max_examples=10)
@given(data=st.data())
def test_counts_are_proportional(name: str, data: st.DataObject) -> None:
    sizes = np.array(data.draw(st.lists(st.integers(1, 12), min_size=2, max_size=5)))
    budget = data.draw(st.integers(len(sizes), int(sizes.sum())))
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = np.random.default_rng(0).random((len(y), 2))
    rival = make_rival(name, ratio=0.5, rows=budget)
    _, y_small = rival.fit_resample(X, y)
    assert np.bincount(y_small).tolist() == proportional_counts(sizes, budget, sizes).tolist()
    if rival.weights_ is not None:
        assert len(rival.weights_) == budget
        assert (rival.weights_ > 0).all()


@pytest.mark.parametrize("name", ALL)
def test_the_ratio_counts_when_no_rows_are_given(name: str) -> None:
    X, y = rows_and_classes()
    assert len(make_rival(name, ratio=0.1).fit_resample(X, y)[0]) == 12
    assert len(make_rival(name, ratio=0.001).fit_resample(X, y)[0]) == 3


@pytest.mark.parametrize("name", ALL)
def test_the_same_seed_gives_the_same_rows(name: str) -> None:
    X, y = rows_and_classes()
    one, same, other = (make_rival(name, ratio=0.2, seed=seed).fit_resample(X, y)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.array_equal(one, other) == (name in DETERMINISTIC)


@pytest.mark.parametrize("name", ALL)
def test_sample_indices_point_at_equal_rows(name: str) -> None:
    X, y = rows_and_classes()
    rival = make_rival(name, ratio=0.2)
    X_small, y_small = rival.fit_resample(X, y)
    if name in MAKING:
        assert rival.sample_indices_ is None
        return
    assert rival.sample_indices_ is not None
    np.testing.assert_array_equal(X[rival.sample_indices_], X_small)
    np.testing.assert_array_equal(y[rival.sample_indices_], y_small)
    if name != "lightweight":
        assert len(set(rival.sample_indices_.tolist())) == len(X_small)


@pytest.mark.parametrize("name", ALL)
def test_frames_come_back_as_frames(name: str) -> None:
    X, y = rows_and_classes()
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcd"), index=pd.Index(range(900, 1020)))
    labels = pd.Series(np.array(["no", "yes", "maybe"])[y], name="answer", dtype="category")
    X_small, y_small = make_rival(name, ratio=0.1).fit_resample(frame, labels)
    assert X_small.columns.tolist() == list("abcd")
    assert (X_small.dtypes == np.float32).all()
    assert y_small.name == "answer"
    assert y_small.dtype == labels.dtype


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_keep_their_width(name: str, dtype: Any) -> None:
    X, y = rows_and_classes()
    assert make_rival(name, ratio=0.1).fit_resample(X.astype(dtype), y)[0].dtype == dtype


@pytest.mark.parametrize("name", ALL)
def test_three_rows(name: str) -> None:
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [5.0, 5.0]]), np.array(["a", "a", "b"])
    X_small, y_small = make_rival(name, ratio=0.01).fit_resample(X, y)
    assert y_small.tolist() == ["a", "b"]
    np.testing.assert_array_equal(X_small[1], [5.0, 5.0])


@pytest.mark.parametrize("name", [name for name in ALL if name != "lightweight"])
def test_a_budget_of_all_rows_keeps_them_all(name: str) -> None:
    X, y = rows_and_classes(40)
    X_small, y_small = make_rival(name, ratio=1.0).fit_resample(X, y)
    order, order_small = np.lexsort((X[:, 0], y)), np.lexsort((X_small[:, 0], y_small))
    np.testing.assert_allclose(X_small[order_small], X[order], rtol=1e-12)
    np.testing.assert_array_equal(y_small[order_small], y[order])


@few_distinct
@pytest.mark.parametrize("name", ALL)
def test_equal_rows(name: str) -> None:
    # Sixty rows of class 0 with two values, sixty of class 1 with one: fewer distinct rows than the budget.
    X = np.repeat([[0.0, 1.0], [1.0, 0.0], [5.0, 5.0]], [30, 30, 60], axis=0)
    y = np.repeat([0, 1], 60)
    rival = make_rival(name, ratio=0.1)
    X_small, y_small = rival.fit_resample(X, y)
    assert len(X_small) == 12
    assert (X_small[y_small == 1] == 5.0).all()
    first = X_small[y_small == 0]
    np.testing.assert_allclose(first.sum(axis=1), 1.0)
    if name in PICKING and name != "lightweight":
        assert rival.sample_indices_ is not None
        assert len(set(rival.sample_indices_.tolist())) == 12, "equal rows are still different rows"
    if name in ("herding", "k_center", "cluster_centroids", "minibatch_kmeans"):
        assert set(map(tuple, first.tolist())) == {(0.0, 1.0), (1.0, 0.0)}


@pytest.mark.parametrize("name", ALL)
def test_rows_and_parameters_are_not_modified(name: str) -> None:
    X, y = rows_and_classes()
    X_before = X.copy()
    rival = make_rival(name, ratio=0.1, seed=3)
    before = rival.get_params()
    first = rival.fit_resample(X, y)[0]
    np.testing.assert_array_equal(X, X_before)
    assert rival.get_params() == before
    np.testing.assert_array_equal(clone(rival).fit_resample(X, y)[0], first)


@pytest.mark.parametrize("name", ALL)
def test_wrong_input_is_refused(name: str) -> None:
    X, y = rows_and_classes()
    with pytest.raises(InputError, match=r"^A budget of 2 condensed rows does not fit"):
        make_rival(name, ratio=0.1, rows=2).fit_resample(X, y)
    with pytest.raises(InputError, match="one class only"):
        make_rival(name, ratio=0.1).fit_resample(X, np.zeros(120))


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@few_distinct
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "check", ["check_target_type", "check_samplers_list", "check_samplers_2d_target", "check_samplers_preserve_dtype"]
)
def test_imbalanced_learn_check(name: str, check: str) -> None:
    getattr(estimator_checks, check)(name, make_rival(name, ratio=0.1))
