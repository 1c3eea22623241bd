"""The models: scikit-learn's examination, few rows, weights, seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.utils.estimator_checks import parametrize_with_checks

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.evaluation.models import MODELS, make_model
from c2tc_pipeline.evaluation.models.boosting import BoostingClassifier
from c2tc_pipeline.evaluation.models.mlp import MlpClassifier
from c2tc_pipeline.evaluation.training import Recipe

# Few steps and trees: scikit-learn fits each model some two hundred times.
QUICK = Recipe("adamw", 0.02, 0.0, epochs=1, batch_size=512, least_steps=60, cosine=True)
FEW_ROWS = np.array([[0.1, 0.2], [0.2, 0.1], [0.9, 0.8]], dtype=np.float32)


def expected_failures(model: Any) -> dict[str, str]:
    name = "check_sample_weight_equivalence_on_dense_data"
    if isinstance(model, BoostingClassifier):
        return {name: "rounding of sums decides between columns that split equally well"}
    return {name: "weights and repeated rows agree to the precision of float32, the check asks for that of float64"}


@parametrize_with_checks(
    [MlpClassifier((16,), recipe=QUICK, device="cpu"), BoostingClassifier(iterations=10)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("recipe", ["default", "paper"])
def test_three_rows_are_enough(name: str, recipe: str) -> None:
    model = make_model(name, recipe=recipe).fit(FEW_ROWS, ["no", "no", "yes"])
    assert model.classes_.tolist() == ["no", "yes"]
    probabilities = model.predict_proba(FEW_ROWS)
    assert probabilities.shape == (3, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    if recipe == "default":
        assert model.predict(FEW_ROWS).tolist() == ["no", "no", "yes"]


@pytest.mark.parametrize("name", MODELS)
def test_a_class_of_one_row_among_many(name: str) -> None:
    X = np.vstack([np.random.default_rng(0).random((200, 2)), [[5.0, 5.0]]])
    model = make_model(name).fit(X, [0] * 200 + [1])
    assert model.predict([[0.5, 0.5]]).tolist() == [0]


@pytest.mark.parametrize("name", MODELS)
def test_one_class_is_always_predicted(name: str) -> None:
    model = make_model(name).fit(FEW_ROWS, ["only"] * 3)
    assert model.predict([[0.0, 9.0]]).tolist() == ["only"]
    assert model.predict_proba([[0.0, 9.0]]).tolist() == [[1.0]]


@pytest.mark.parametrize("name", MODELS)
def test_the_default_models_learn(name: str) -> None:
    X, y = make_classification(600, 8, n_informative=5, n_classes=3, class_sep=2, random_state=0)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    assert make_model(name).fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.85


@pytest.mark.parametrize("name", MODELS)
def test_the_same_seed_gives_the_same_predictions(name: str) -> None:
    X, y = make_classification(60, 4, random_state=0)
    first, again, other = (make_model(name, seed=seed).fit(X, y).predict_proba(X) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    # Boosting has nothing to draw by lot below 200,000 rows.
    assert np.array_equal(first, other) == (name == "boosting")


def test_boosting_takes_weights_for_repeated_rows() -> None:
    """Exact where one split is the best; between two equally good ones the rounding of sums decides."""
    rng = np.random.default_rng(0)
    X, weights = np.sort(rng.random((30, 1)), axis=0), rng.integers(0, 4, 30)
    y = np.repeat([0, 1, 0, 2], [9, 8, 6, 7])
    model = BoostingClassifier()
    by_weight = clone(model).fit(X, y, weights).predict_proba(X)
    by_repeats = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).predict_proba(X)
    np.testing.assert_allclose(by_weight, by_repeats, atol=1e-6)
    assert np.abs(by_weight - clone(model).fit(X, y).predict_proba(X)).max() > 1e-3


def test_the_network_takes_weights_for_repeated_rows() -> None:
    """All rows fit into one batch, so that every step is the same but for rounding."""
    rng = np.random.default_rng(0)
    X, y, weights = rng.random((25, 3)), rng.integers(0, 3, 25), rng.integers(0, 4, 25)
    model = MlpClassifier((16, 16), recipe=QUICK, device="cpu")
    by_weight = clone(model).fit(X, y, weights).predict_proba(X)
    by_repeats = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).predict_proba(X)
    np.testing.assert_allclose(by_weight, by_repeats, atol=1e-3)
    assert np.abs(by_weight - clone(model).fit(X, y).predict_proba(X)).max() > 0.05


@pytest.mark.parametrize("name", MODELS)
def test_only_proportions_of_weights_count_for_the_majority(name: str) -> None:
    X, y = np.full((4, 1), 0.5), ["a", "a", "a", "b"]
    heavy = make_model(name).fit(X, y, sample_weight=[1, 1, 1, 9]).predict_proba(X[:1])[0]
    np.testing.assert_allclose(heavy, [0.25, 0.75], atol=0.01)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("weights", "message"),
    [([1, -1, 1], "-1 is negative"), ([0, 0, 0], "All sample weights are zero"), ([1, 1], "one for each of 3 rows")],
)
def test_weights_that_can_not_be_used(name: str, weights: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_model(name).fit(FEW_ROWS, [0, 1, 1], sample_weight=weights)


def test_prediction_goes_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classification(50, 4, random_state=0)
    model = MlpClassifier((8,), recipe=QUICK, device="cpu").fit(X, y)
    expected = model.predict_proba(X)
    monkeypatch.setattr("c2tc_pipeline.evaluation.models.network._BLOCK_ROWS", 7)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-6)


def test_the_network_has_the_shape_it_is_told() -> None:
    for model, shapes in [
        (MlpClassifier((7, 5)), [(7, 3), (5, 7), (2, 5)]),
        (MlpClassifier(), [(256, 3), (256, 256), (2, 256)]),
    ]:
        layers = [layer for layer in model.build(3, 2).modules() if isinstance(layer, torch.nn.Linear)]
        assert [tuple(layer.weight.shape) for layer in layers] == shapes


def test_an_unknown_model() -> None:
    with pytest.raises(InputError, match="Model 'svm' is unknown; choose one of: mlp, boosting"):
        make_model("svm")
