"""The models: scikit-learn's examination, few rows, weights, seeds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from c2tc_pipeline.bench.models.ft_transformer import FtTransformerClassifier
from c2tc_pipeline.bench.models.mlp_plr import MlpPlrClassifier
from c2tc_pipeline.bench.models.realmlp import RealMlpClassifier
from c2tc_pipeline.bench.models.tabnet import TabNetClassifier
from c2tc_pipeline.bench.models.tabr import TabrClassifier
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.models import MODELS, make_model
from c2tc_pipeline.evaluation.models.lightgbm import LightGbmClassifier
from c2tc_pipeline.evaluation.models.native_columns import NativeColumns
from c2tc_pipeline.evaluation.models.network import MlpClassifier, NetworkClassifier
from c2tc_pipeline.evaluation.models.sklearn_models import BoostingClassifier, LogisticClassifier, NeighbourClassifier
from c2tc_pipeline.evaluation.models.trees import rows_kept_aside
from c2tc_pipeline.evaluation.training import RECIPES, Recipe
from c2tc_pipeline.evaluation.trial import LabelledRows, random_rows, run_trial

# Few steps and trees: every model is fitted many times.
QUICK = Recipe("adamw", 0.02, 0.0, epochs=1, batch_size=512, least_steps=40, cosine=True)
# Enough to see whether anything breaks.
BRIEF = Recipe("adamw", 0.02, 0.0, epochs=4, batch_size=512)
FEW_ROWS = np.array([[0.1, 0.2], [0.2, 0.1], [0.9, 0.8]], dtype=np.float32)


def small(model: type[NetworkClassifier], times: float = 1.0, steps: int = 40, **settings: Any) -> NetworkClassifier:
    """Return a network that takes quick steps, so many times as long, whatever its own factor."""
    rate = QUICK.learning_rate * times / model.rate_factor
    recipe = replace(QUICK, learning_rate=rate, least_steps=steps)
    return model(**{"recipe": recipe, "device": "cpu"} | settings)


# Every model, small.
SMALL: dict[str, Callable[..., Any]] = {
    "mlp": partial(small, MlpClassifier, widths=(16,)),
    "mlp_plr": partial(small, MlpPlrClassifier, widths=(16,)),
    "realmlp": partial(small, RealMlpClassifier, 3.0, widths=(16, 16)),
    "ft_transformer": partial(small, FtTransformerClassifier, steps=60, blocks=1, width=16, heads=2),
    "tabnet": partial(small, TabNetClassifier, 5.0, width=4, looks=1),
    "tabr": partial(small, TabrClassifier, 0.3, width=16, context=10),
    "boosting": partial(BoostingClassifier, iterations=10),
    "lightgbm": partial(LightGbmClassifier, iterations=10),
    "logistic": LogisticClassifier,
    "neighbour": NeighbourClassifier,
}
NETWORKS = list(SMALL)[:6]
TREES = ["boosting", "lightgbm"]


def brief(name: str, **settings: Any) -> Any:
    return SMALL[name](**{"recipe": BRIEF} | settings if name in NETWORKS else settings)


def some_rows(n: int = 60, columns: int = 4) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(n, columns, n_informative=3, n_redundant=0, class_sep=2, random_state=0)
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), y


def expected_failures(model: Any) -> dict[str, str]:
    name = "check_sample_weight_equivalence_on_dense_data"
    if isinstance(model, MlpClassifier):
        return {name: "weights and repeated rows agree to the precision of float32, the check asks for that of float64"}
    return {}


# The other networks share their base with this one.
@parametrize_with_checks(
    [
        MlpClassifier((16,), recipe=replace(QUICK, least_steps=25), device="cpu"),
        BoostingClassifier(iterations=3),
        LogisticClassifier(),
        NeighbourClassifier(),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)


def test_every_model_is_tested_here() -> None:
    assert SMALL.keys() == MODELS.keys()
    for name, small in SMALL.items():
        assert type(make_model(name, device="cpu")) is type(small())


@pytest.mark.parametrize("name", MODELS)
def test_three_rows_are_enough(name: str) -> None:
    model = make_model(name)
    if name == "tabnet":  # whose steps take longest
        model = SMALL[name](steps=60)
    elif name in NETWORKS:  # as large as they are, for fewer steps
        model.set_params(recipe=replace(RECIPES["default"], least_steps=60))
    papers = [SMALL[name](recipe=replace(RECIPES["paper"], epochs=5))] if name in NETWORKS else []
    for other in papers:
        np.testing.assert_allclose(other.fit(FEW_ROWS, ["no", "no", "yes"]).predict_proba(FEW_ROWS).sum(axis=1), 1)
    model.fit(FEW_ROWS, ["no", "no", "yes"])
    assert model.classes_.tolist() == ["no", "yes"]
    probabilities = model.predict_proba(FEW_ROWS)
    assert probabilities.shape == (3, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    if name != "logistic":  # whose coefficients three rows hardly move
        assert model.predict(FEW_ROWS).tolist() == ["no", "no", "yes"]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.3]], [1]),
        ([[0.2], [0.4], [0.9]], [0, 1, 2]),
        (np.full((4, 3), 0.5), [0, 1, 0, 1]),
    ],
    ids=["one row", "one column", "constant columns"],
)
def test_awkward_training_sets(name: str, X: Any, y: list[int]) -> None:
    model = brief(name).fit(X, y)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (len(y), len(set(y)))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    # Far from all training rows.
    assert np.isfinite(model.predict_proba(np.full_like(np.asarray(X), 1e3))).all()


@pytest.mark.parametrize("name", MODELS)
def test_a_class_of_one_row_among_many_and_a_single_class(name: str) -> None:
    X = np.vstack([np.random.default_rng(0).random((100, 2)), [[5.0, 5.0]]])
    assert SMALL[name]().fit(X, [0] * 100 + [1]).predict([[0.5, 0.5]]).tolist() == [0]
    model = brief(name).fit(FEW_ROWS, ["only"] * 3)
    assert model.predict([[0.0, 9.0]]).tolist() == ["only"]
    assert model.predict_proba([[0.0, 9.0]]).tolist() == [[1.0]]


@pytest.mark.parametrize("name", [*MODELS, "default mlp"])
def test_models_learn(name: str) -> None:
    X, y = make_classification(600, 8, n_informative=5, n_classes=3, class_sep=2, random_state=0)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    model = SMALL[name]() if name in SMALL else make_model("mlp")
    # A third of the rows is of the most frequent class.
    assert model.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.75


@pytest.mark.parametrize("name", MODELS)
def test_the_same_seed_gives_the_same_predictions(name: str) -> None:
    X, y = some_rows()
    if name in ("logistic", "neighbour"):
        first, again = (SMALL[name]().fit(X, y).predict_proba(X) for _ in range(2))
        np.testing.assert_array_equal(first, again)
        return
    first, again, other = (brief(name, random_state=seed).fit(X, y).predict_proba(X) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    # Trees draw nothing at random below 1,000 rows.
    assert np.array_equal(first, other) == (name in TREES)


def test_scikit_learns_own_models_are_behind_the_plain_ones() -> None:
    X, y = some_rows(80)
    weights = np.arange(80.0) % 3
    logistic = LogisticRegression(max_iter=1000).fit(X[:60], y[:60], weights[:60])
    ours = LogisticClassifier().fit(X[:60], y[:60], weights[:60])
    np.testing.assert_allclose(ours.predict_proba(X[60:]), logistic.predict_proba(X[60:]), atol=1e-3)
    nearest = KNeighborsClassifier(1).fit(X[:60], y[:60])
    np.testing.assert_array_equal(NeighbourClassifier().fit(X[:60], y[:60]).predict(X[60:]), nearest.predict(X[60:]))


@pytest.mark.parametrize("name", MODELS)
def test_a_row_of_no_weight_is_a_row_that_is_not_there(name: str) -> None:
    X, y = some_rows(40)
    weights = np.arange(40) % 3 > 0
    y[np.flatnonzero(~weights)[0]] = 9
    model, absent = (brief(name) for _ in range(2))
    model.fit(X, y, weights.astype(float))
    absent.fit(X[weights], y[weights])
    assert model.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(model.predict_proba(X), absent.predict_proba(X))


@pytest.mark.parametrize("name", ["mlp", "realmlp", "ft_transformer", *TREES, "logistic", "neighbour"])
def test_weights_stand_for_repeated_rows(name: str) -> None:
    """All rows fit into one batch, so that every step is the same but for rounding."""
    rng = np.random.default_rng(0)
    X, y, weights = rng.random((25, 3)), rng.integers(0, 3, 25), rng.integers(0, 4, 25)
    # Rounding grows with the steps of an attention network: from 1e-7 after 20 of them to 1e-2 after 60.
    model = SMALL[name](steps=20) if name == "ft_transformer" else SMALL[name]()
    if name in TREES:  # exact where one split is the best; between two equally good ones rounding decides
        X, y = np.sort(X[:, :1], axis=0), np.repeat([0, 1, 0, 2], [7, 6, 5, 7])
    by_weight = clone(model).fit(X, y, weights).predict_proba(X)
    by_repeats = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).predict_proba(X)
    np.testing.assert_allclose(by_weight, by_repeats, atol=5e-3)
    assert np.abs(by_weight - clone(model).fit(X, y).predict_proba(X)).max() > (1e-3 if name in TREES else 0.02)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "neighbour"])
def test_weights_decide_between_rows_that_are_alike(name: str) -> None:
    X, y = np.full((4, 1), 0.5), ["a", "a", "a", "b"]
    heavy, light = (
        SMALL[name]().fit(X, y, sample_weight=[1, 1, 1, weight]).predict_proba(X[:1])[0, 1] for weight in (9, 1)
    )
    if name == "realmlp":  # a tenth of every label is spread over both classes
        np.testing.assert_allclose([heavy, light], [0.725, 0.275], atol=0.02)
    elif name == "tabr":  # rows tell their neighbours' labels and with them, among so few, their own
        assert heavy > light
    else:
        np.testing.assert_allclose([heavy, light], [0.75, 0.25], atol=0.03)


# Networks share what reads their weights.
@pytest.mark.parametrize("name", ["mlp", *TREES, "logistic", "neighbour"])
@pytest.mark.parametrize(
    "weights",
    [[1, -1, 1], [0, 0, 0], [1, 1]],
    ids=str,
)
def test_weights_that_can_not_be_used(name: str, weights: list[int]) -> None:
    with pytest.raises(InputError, match=r"[Ss]ample weight"):
        make_model(name).fit(FEW_ROWS, [0, 1, 1], sample_weight=weights)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_rate_factor_holds_for_adamw_alone(name: str) -> None:
    model = SMALL[name]()
    assert model.own_recipe().learning_rate == pytest.approx(model.recipe.learning_rate * model.rate_factor)
    assert SMALL[name](recipe="paper").own_recipe() == RECIPES["paper"]


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("mlp_plr", "rtdl_num_embeddings"),
        ("ft_transformer", "rtdl_revisiting_models"),
        ("tabnet", "pytorch_tabnet"),
        ("lightgbm", "lightgbm"),
    ],
)
def test_a_missing_package_is_named_before_anything_is_trained(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What Python does with a name that is None here is not to import it.
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.tab_network", None)
    with pytest.raises(InputError, match=package):
        make_model(name).fit(FEW_ROWS, [0, 1, 1])


def test_prediction_goes_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classification(50, 4, random_state=0)
    model = MlpClassifier((8,), recipe=QUICK, device="cpu").fit(X, y)
    expected = model.predict_proba(X)
    monkeypatch.setattr("c2tc_pipeline.evaluation.models.network._BLOCK_ROWS", 7)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-6)


def test_a_model_from_outside_needs_one_registry_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="'svm'"):
        make_model("svm")
    monkeypatch.setitem(MODELS, "svm", "sklearn.svm:LinearSVC")
    model = make_model("svm", seed=3)
    assert model.random_state == 3
    rows = LabelledRows(FEW_ROWS, np.array([0, 0, 1]))
    assert run_trial(model, rows, rows, classes=2).value.scores.accuracy == 1


def rare_class(rare_rows: int) -> tuple[np.ndarray, ...]:
    """Return 3,500 training and 2,000 test rows of eight classes; rows of the last one look like any other.

    scikit-learn's trees without a penalty and early stopping diverge with a single such row: an accuracy of 0.22.
    """
    rng = np.random.default_rng(2)
    y = rng.choice(7, 50_000, p=[0.3, 0.25, 0.2, 0.1, 0.08, 0.05, 0.02])
    X = rng.normal(size=(50_000, 12)).astype(np.float32)
    X[:, :5] += 0.8 * np.random.default_rng(3).normal(size=(7, 5))[y]
    X[:, 5] += (y % 3) * np.sign(X[:, 0])
    X[:, 8:] = np.round(X[:, 8:] * 2)
    y[rng.choice(50_000, 11, replace=False)] = 7
    train = random_rows(y[:35_000], 3_500, seed=0)
    labels = y[train]
    labels[np.random.default_rng(0).choice(3_500, rare_rows - 1, replace=False)] = 7
    return X[train], labels, X[35_000:37_000], y[35_000:37_000]


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("rare_rows", [1, 7])
def test_a_rare_class_does_not_make_the_whole_table_worse_than_a_tenth(name: str, rare_rows: int) -> None:
    X, y, test, truth = rare_class(rare_rows)
    assert np.count_nonzero(y == 7) == rare_rows
    tenth = random_rows(y, 350, seed=0)
    whole, part = (make_model(name).fit(X[rows], y[rows]) for rows in (slice(None), tenth))
    assert whole.score(test, truth) > part.score(test, truth)
    assert whole.score(test, truth) > 0.75


def test_rows_kept_aside_are_a_tenth_of_every_class_that_is_not_rare() -> None:
    labels = np.repeat(["a", "b", "c", "d"], [900, 200, 19, 1])
    aside = rows_kept_aside(labels, 0)
    assert {name: int(aside[labels == name].sum()) for name in "abcd"} == {"a": 90, "b": 20, "c": 0, "d": 0}
    assert not rows_kept_aside(labels[:999], 0).any()


def source_columns(n: int, values: int = 40) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table whose label depends on a string column only."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, values, n)
    frame = pd.DataFrame(
        {
            "code": [f"v{code}" for code in codes],
            "noise": rng.random(n),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 99, n), unit="D"),
            "flag": pd.Series(rng.random(n) < 0.5).astype("boolean"),
            "arrow": pd.Series(rng.integers(0, 9, n)).astype("int64[pyarrow]"),
        }
    )
    return frame, (codes * 7919 % 13) % 3


@pytest.mark.parametrize("name", TREES)
def test_trees_learn_from_source_columns(name: str) -> None:
    frame, y = source_columns(2_000)
    model = make_model(name).fit(frame[:1_500], y[:1_500])
    assert model.score(frame[1_500:], y[1_500:]) > 0.95
    strange = frame[1_500:1_510].copy()
    strange["code"] = pd.Series(["new", None] * 5, index=strange.index)
    strange[["noise", "day", "flag"]] = strange[["noise", "day", "flag"]].mask(strange["noise"] >= 0)
    assert strange.isna().sum().tolist() == [5, 10, 10, 10, 0]
    np.testing.assert_allclose(model.predict_proba(strange).sum(axis=1), 1)
    many, classes = source_columns(3_000, values=1_000)
    assert make_model(name).set_params(iterations=3).fit(many, classes).predict(many[:5]).shape == (5,)
    assert make_model(name).fit(frame[:3], ["a", "a", "b"]).predict(frame[:3]).shape == (3,)


def test_only_trees_take_source_columns() -> None:
    assert [name for name in MODELS if make_model(name).takes_original] == [name for name in MODELS if name in TREES]


def test_native_columns_are_numbers_days_and_codes_by_frequency() -> None:
    frame = pd.DataFrame(
        {
            "text": ["b", "a", "b", None, "c"],
            "kind": pd.Categorical([3, 3, 1, 3, None]),
            "day": pd.to_datetime(pd.Series([1.0, np.nan, 0.5, 0, 0]), unit="D"),
            "size": pd.array([1, None, 3, 4, 5], dtype="Int64"),
            "ratio": [0.5, np.nan, np.inf, 1, 2],
        }
    )
    columns = NativeColumns(max_categories=2).fit(frame)
    assert columns.is_category_.tolist() == [True, True, False, False, False]
    found = columns.transform(frame)
    expected = {
        "text": [0, 1, 0, np.nan, 2],
        "kind": [0, 0, 1, 0, np.nan],
        "day": [1, np.nan, 0.5, 0, 0],
        "size": [1, np.nan, 3, 4, 5],
        "ratio": [0.5, np.nan, 1e300, 1, 2],
    }
    pd.testing.assert_frame_equal(found, pd.DataFrame(expected).astype(float))
    with pytest.raises(ValueError, match="size"):
        columns.transform(frame.drop(columns="size"))


@pytest.mark.parametrize("name", TREES)
def test_trees_are_trained_on_columns_without_a_value(name: str) -> None:
    X, y = some_rows(40)
    empty = np.full((40, 1), np.nan)
    with_empty = SMALL[name]().fit(np.hstack([X, empty]), y)
    filled = np.hstack([X, np.ones((40, 1))])
    np.testing.assert_array_equal(with_empty.predict_proba(filled), SMALL[name]().fit(X, y).predict_proba(X))
