"""The evaluation of a condensed table: what is trained on, what is remembered; metrics; random samples."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score, f1_score
from threadpoolctl import threadpool_info

from c2tc_pipeline import CondensedTable, condense
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.optimisers import one_thread
from c2tc_pipeline.evaluation.averages import mean_scores
from c2tc_pipeline.evaluation.models import MODELS, make_model
from c2tc_pipeline.evaluation.scores import evaluate_condensed
from c2tc_pipeline.evaluation.training import RECIPES, Recipe
from c2tc_pipeline.evaluation.trial import LabelledRows, random_rows, run_trial, score_predictions, trial_key
from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.storage.hashing import hash_array
from c2tc_pipeline_tests.tools.made_tables import mixed_table

pytestmark = pytest.mark.filterwarnings("ignore::c2tc_pipeline.condensation.clusters.SingletonWarning")

COLUMNS = ["training_set", "model", "seed", "rows", "accuracy", "macro_f1", "class_f1", "fit_seconds", "cache_hit"]


class Nearest(ClassifierMixin, BaseEstimator):
    """A model that fits at once and remembers what it was given."""

    fits: list[list[str]] = []  # noqa: RUF012
    predictions: list[np.ndarray] = []  # noqa: RUF012

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Nearest:
        self.fits.append([hash_array(X), hash_array(y), "none" if sample_weight is None else hash_array(sample_weight)])
        self.rows, self.codes = X, y
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        self.predictions.append(X)
        nearest = ((X[:, None, :] - self.rows[None]) ** 2).sum(axis=2).argmin(axis=1)
        return np.asarray(self.codes[nearest])


@pytest.fixture
def nearest(monkeypatch: pytest.MonkeyPatch) -> type[Nearest]:
    """The model under two names, so that there are two to compare."""
    for name in ("nearest", "twin"):
        monkeypatch.setitem(MODELS, name, Nearest)
    Nearest.fits, Nearest.predictions = [], []
    return Nearest


@pytest.fixture(scope="module")
def parts() -> tuple[pd.DataFrame, pd.DataFrame, CondensedTable]:
    shuffled = mixed_table(400).sample(frac=1, random_state=0)
    train, test = shuffled.iloc[:300], shuffled.iloc[300:]
    return train, test, condense(train, "outcome", rows=12)


Parts = tuple[pd.DataFrame, pd.DataFrame, CondensedTable]


def test_the_rows_of_the_result(parts: Parts, nearest: type[Nearest]) -> None:
    train, test, small = parts
    told: list[tuple[str, int, int]] = []
    scores = evaluate_condensed(
        small, train, test, models=["nearest", "twin"], seeds=(3, 4), listener=lambda *news: told.append(news)
    )
    assert scores.columns.tolist() == COLUMNS
    keys = product(["condensed", "random", "whole"], ["nearest", "twin"], [3, 4])
    assert [tuple(key) for key in scores[["training_set", "model", "seed"]].to_numpy().tolist()] == list(keys)
    assert scores["rows"].tolist() == [12] * 8 + [300] * 4
    assert not scores["cache_hit"].any()
    assert told == [("evaluate", done, 12) for done in range(13)]


def test_scores_are_those_of_the_model_by_hand(parts: Parts) -> None:
    train, test, small = parts
    scores = evaluate_condensed(small, train, test, models=["boosting"]).set_index("training_set")
    encoded = small.encoder.encode_rows(test)
    for name, X, y, weight in [
        ("condensed", small.X.to_numpy(), small.y, small.training_weight.to_numpy()),
        ("whole", small.encoder.encode_rows(train), train["outcome"], None),
    ]:
        with one_thread():
            predicted = make_model("boosting").fit(X, y.to_numpy().astype(str), weight).predict(encoded)
        assert scores.loc[name, "accuracy"] == pytest.approx((predicted == test["outcome"].to_numpy()).mean())
    assert (scores["class_f1"].map(len) == 3).all()
    np.testing.assert_allclose(scores["class_f1"].map(np.mean), scores["macro_f1"])


def test_training_never_sees_the_test_rows(parts: Parts, nearest: type[Nearest]) -> None:
    """Poisoned test rows change predictions, but neither what is trained on nor the condensed table."""
    train, test, small = parts
    before = [hash_array(small.X.to_numpy()), hash_array(small.encoder.encode_rows(train))]
    poisoned = test.assign(amount=np.nan, age=10**6, job="POISON", outcome=test["outcome"].to_numpy()[::-1])
    fits, predictions = [], []
    for rows in (test, poisoned):
        nearest.fits, nearest.predictions = [], []
        evaluate_condensed(small, train, rows, models=["nearest"], seeds=(0, 1))
        fits.append(nearest.fits)
        predictions.append(nearest.predictions)
    assert fits[0] == fits[1]
    assert len(fits[0]) == 6
    assert all(not np.array_equal(clean, bad) for clean, bad in zip(*predictions, strict=True))
    assert all(len(rows) == len(test) for rows in predictions[0])
    assert len(predictions[0]) == 6, "one look at the test rows for each trained model"
    assert [hash_array(small.X.to_numpy()), hash_array(small.encoder.encode_rows(train))] == before


def test_training_sets_go_through_the_same_encoder(parts: Parts, nearest: type[Nearest]) -> None:
    train, test, small = parts
    evaluate_condensed(small, train, test, models=["nearest"], seeds=(0, 1))
    condensed, again, one, other, whole, _ = nearest.fits
    assert condensed == again
    assert condensed[0] == hash_array(small.X.to_numpy(dtype=np.float32))
    assert whole[0] == hash_array(small.encoder.encode_rows(train))
    assert one != other, "each seed draws another sample"
    np.testing.assert_array_equal(nearest.predictions[0], small.encoder.encode_rows(test))


def test_a_trial_takes_one_thread_and_gives_the_others_back() -> None:
    counts = []

    class Counting(Nearest):
        def predict(self, X: np.ndarray) -> np.ndarray:
            counts.append({torch.get_num_threads(), *(pool["num_threads"] for pool in threadpool_info())})
            return super().predict(X)

    rows = LabelledRows(np.eye(3, dtype=np.float32), np.arange(3))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    run_trial(Counting(), rows, rows, classes=3)
    after = torch.get_num_threads()
    torch.set_num_threads(before)
    assert (counts, after) == ([{1}], 2)


def test_condensed_rows_count_by_their_training_weights(parts: Parts, nearest: type[Nearest]) -> None:
    train, test, small = parts
    for weighted in (False, True):
        evaluate_condensed(small, train, test, models=["nearest"], weighted=weighted)
    assert [fit[2] == "none" for fit in nearest.fits] == [True, True, True, False, True, True]
    assert nearest.fits[3][2] == hash_array(small.training_weight.to_numpy())


def test_scores_are_looked_up_the_second_time(parts: Parts, nearest: type[Nearest], tmp_path: Path) -> None:
    train, test, small = parts
    cache = ContentCache(tmp_path)
    settings: dict[str, Any] = {"models": ["nearest", "mlp"], "recipe": "paper", "cache": cache}
    first, second = (evaluate_condensed(small, train, test, **settings) for _ in range(2))
    assert not first["cache_hit"].any()
    assert second["cache_hit"].all()
    assert len(nearest.fits) == 3
    pd.testing.assert_frame_equal(first.drop(columns="cache_hit"), second.drop(columns="cache_hit"))
    # One test row more: nothing that was known applies.
    assert not evaluate_condensed(small, train, test.iloc[1:], **settings)["cache_hit"].any()
    # Another seed: the models, and the random samples, are others.
    assert not evaluate_condensed(small, train, test, **{**settings, "seeds": [9]})["cache_hit"].any()


def test_a_damaged_score_is_made_again(tmp_path: Path, nearest: type[Nearest]) -> None:
    rows = LabelledRows(np.eye(3, dtype=np.float32), np.arange(3))
    cache = ContentCache(tmp_path)
    run_trial(Nearest(), rows, rows, classes=3, cache=cache)
    stored = next(tmp_path.rglob("trial.json"))
    stored.write_text(stored.read_text().replace("1.0", "0.9"))
    found = run_trial(Nearest(), rows, rows, classes=3, cache=cache)
    assert (found.hit, found.damaged, found.value.scores.accuracy) == (False, True, 1.0)


def test_a_key_holds_everything_that_determines_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = LabelledRows(np.eye(3, dtype=np.float32), np.arange(3))
    changed_rows = [
        LabelledRows(2 * rows.X, rows.codes),
        LabelledRows(rows.X, rows.codes[::-1].copy()),
        LabelledRows(rows.X, rows.codes, np.ones(3)),
    ]
    mlp = make_model("mlp", device="cpu")
    keys = [trial_key(mlp, rows, rows, classes=3)]
    keys += [trial_key(mlp, other, rows, classes=3) for other in changed_rows]
    keys += [trial_key(mlp, rows, other, classes=3) for other in changed_rows[:2]]
    keys += [
        trial_key(make_model(name, seed=seed), rows, rows, classes=3) for name, seed in [("mlp", 1), ("boosting", 0)]
    ]
    keys += [trial_key(make_model("mlp", recipe="paper"), rows, rows, classes=3), trial_key(mlp, rows, rows, classes=4)]
    monkeypatch.setattr("c2tc_pipeline.evaluation.trial.SCORES_VERSION", 0)
    keys.append(trial_key(mlp, rows, rows, classes=3))
    assert len(set(keys)) == len(keys) == 11
    monkeypatch.undo()
    # A recipe that says the same under another name, and another device, make no difference.
    monkeypatch.setitem(RECIPES, "same", RECIPES["default"])
    assert trial_key(make_model("mlp", recipe="same", device="auto"), rows, rows, classes=3) == keys[0]
    monkeypatch.setitem(RECIPES, "default", Recipe("sgd", 0.1, 0.0, epochs=1, batch_size=9))
    assert trial_key(mlp, rows, rows, classes=3) not in keys


def test_rows_without_a_label_are_left_out_and_unknown_classes_are_errors(parts: Parts, nearest: type[Nearest]) -> None:
    train, test, small = parts
    partly = test.assign(outcome=[None] * 10 + ["never seen"] * 50 + test["outcome"].tolist()[60:])
    scores = evaluate_condensed(small, train, partly, models=["nearest"])
    assert len(nearest.predictions[0]) == 90
    assert (scores["accuracy"] <= 40 / 90).all()
    known = scores["class_f1"].map(sum)
    np.testing.assert_allclose(scores["macro_f1"], known / 4)


@pytest.mark.parametrize("dtype", ["category", "int64", "bool", "Int64", "object"])
def test_labels_of_every_kind(dtype: str, nearest: type[Nearest], tmp_path: Path) -> None:
    frame = mixed_table(200, classes=2).sample(frac=1, random_state=1)
    numbers = (frame["outcome"] == "class b").astype(int)
    labels = numbers.map({0: 7, 1: "seven"}) if dtype == "object" else numbers.astype(dtype)  # type: ignore[call-overload]
    frame = frame.assign(outcome=labels)
    small = condense(frame.iloc[:150], "outcome", rows=6)
    small.save(tmp_path / "small")
    for table in (small, CondensedTable.load(tmp_path / "small")):
        scores = evaluate_condensed(table, frame.iloc[:150], frame.iloc[150:], models=["nearest"])
        assert scores["accuracy"].between(0.3, 1).all()


def test_settings_and_rows_that_can_not_be_used(parts: Parts) -> None:
    train, test, small = parts
    wrong: list[dict[str, Any]] = [{"models": ["svm"]}, {"models": []}, {"seeds": []}, {"device": "abacus"}]
    for change in [*wrong, {"recipe": "papr"}]:
        with pytest.raises(InputError):
            evaluate_condensed(small, train, test, **change)
    for rows, named in [(test.drop(columns=name), f"'{name}'") for name in ("outcome", "amount")] + [(test[:0], "")]:
        with pytest.raises(InputError, match=named):
            evaluate_condensed(small, train, rows)
    with pytest.raises(InputError):
        evaluate_condensed(small, train.assign(outcome="new"), test)


def test_means_are_over_seeds_and_models_stay_together(parts: Parts, nearest: type[Nearest]) -> None:
    train, test, small = parts
    scores = evaluate_condensed(small, train, test, models=["nearest", "twin"], seeds=(0, 1, 2))
    means = mean_scores(scores)
    assert means["model"].tolist() == ["nearest"] * 3 + ["twin"] * 3
    assert means["training_set"].tolist() == ["condensed", "random", "whole"] * 2
    of_random = scores.query("model == 'nearest' and training_set == 'random'")
    row = means.iloc[1]
    assert row["seeds"] == 3
    assert row["accuracy"] == pytest.approx(of_random["accuracy"].mean())
    assert row["macro_f1_std"] == pytest.approx(np.std(of_random["macro_f1"]))
    assert row["accuracy_std"] > 0


pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=40)


@given(pairs)
def test_scores_are_scikit_learns_over_the_classes_of_the_test_rows(rows: list[tuple[int, int]]) -> None:
    truth, predicted = np.array(rows).T
    scores = score_predictions(truth, predicted, 4)
    present = np.unique(truth)
    assert scores.accuracy == pytest.approx(accuracy_score(truth, predicted))
    assert scores.macro_f1 == pytest.approx(
        f1_score(truth, predicted, labels=present, average="macro", zero_division=0)
    )
    by_class = f1_score(truth, predicted, labels=range(4), average=None, zero_division=0)
    assert len(scores.class_f1) == 4
    for number, (ours, theirs) in enumerate(zip(scores.class_f1, by_class, strict=True)):
        assert ours == (pytest.approx(theirs) if number in present else None)


@given(st.lists(st.integers(0, 3), min_size=4, max_size=50), st.data())
def test_a_random_sample_has_every_class_and_no_row_twice(drawn: list[int], data: st.DataObject) -> None:
    codes = np.array(drawn)
    rows = data.draw(st.integers(len(set(drawn)), len(drawn)))
    sample = random_rows(codes, rows, seed=data.draw(st.integers(0, 9)))
    assert len(sample) == len(set(sample.tolist())) == rows
    assert set(codes[sample]) == set(drawn)


def test_a_random_sample_is_uniform_when_no_class_is_rare() -> None:
    codes = np.arange(20) % 2
    counts = sum(np.bincount(random_rows(codes, 10, seed=seed), minlength=20) for seed in range(2000))
    # Each row is drawn in half of the samples; five standard deviations are 112.
    assert np.abs(np.asarray(counts) - 1000).max() < 112
    kept_shares = {int(codes[random_rows(codes, 10, seed=seed)].sum()) for seed in range(50)}
    assert len(kept_shares) > 3, "a stratified sample would have the same share each time"
