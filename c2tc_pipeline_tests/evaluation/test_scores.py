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
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    f1_score,
    log_loss,
    precision_recall_fscore_support,
    roc_auc_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_info

from c2tc_pipeline import CondensedTable, condense
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.metrics import score_predictions
from c2tc_pipeline.evaluation.models import MODELS, make_model
from c2tc_pipeline.evaluation.row_worth import mean_scores
from c2tc_pipeline.evaluation.scores import evaluate
from c2tc_pipeline.evaluation.training import RECIPES, Recipe
from c2tc_pipeline.evaluation.trial import LabelledRows, random_rows, run_trial, trial_key
from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.storage.manifest import hash_array
from c2tc_pipeline_tests.tools.made_tables import mixed_table

pytestmark = pytest.mark.filterwarnings("ignore::c2tc_pipeline.condensation.clusters.SingletonWarning")

COLUMNS = ["training_set", "model", "columns", "seed", "rows", "accuracy", "macro_f1", "auc", "log_loss", "brier"]
COLUMNS += ["class_precision", "class_recall", "class_f1", "class_auc", "fit_seconds", "cache_hit"]
# The training sets of twelve condensed rows of 300, and their sizes.
SETS = {"condensed": 12, "random": 12, "random_same_classes": 12, "random_x5": 60, "random_x20": 240, "whole": 300}


class Nearest(ClassifierMixin, BaseEstimator):
    """A model that fits at once on the condensed rows themselves and remembers what it was given."""

    gains_from_expansion = False
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


def encoded_training(train: pd.DataFrame, small: CondensedTable) -> np.ndarray:
    return small.encoder.encode_training(train, train["outcome"].astype(str), row_ids=np.arange(len(train)))


def test_the_rows_of_the_result(parts: Parts, nearest: type[Nearest]) -> None:
    train, test, small = parts
    told: list[tuple[str, int, int]] = []
    scores = evaluate(
        small, test, train, models=["nearest", "twin"], seeds=(3, 4), listener=lambda *news: told.append(news)
    )
    assert scores.columns.tolist() == COLUMNS
    keys = product(SETS, [3, 4], ["nearest", "twin"])
    assert [tuple(key) for key in scores[["training_set", "seed", "model"]].to_numpy().tolist()] == list(keys)
    assert scores["rows"].tolist() == scores["training_set"].map(SETS).tolist()
    assert not scores["cache_hit"].any()
    assert told == [("evaluate", done, 24) for done in range(25)]


def test_scores_are_those_of_the_model_by_hand(parts: Parts) -> None:
    train, test, small = parts
    scores = evaluate(small, test, train, models=["logistic", "neighbour"], seeds=[3])
    scores = scores.set_index(["model", "training_set"])
    encoded = small.encoder.encode_rows(test)
    drawn = small.expand(space="encoded", random_state=3)
    bare = (small.X, small.y, small.training_weight)
    whole = (encoded_training(train, small), train["outcome"], None)
    members = pd.DataFrame(whole[0]).groupby(small.membership["condensed_row"].to_numpy())
    np.testing.assert_allclose(members.mean(), small.X, atol=1e-6)
    by_hand = {
        "logistic": {"condensed": drawn, "condensed_bare": bare, "whole": whole},
        "neighbour": {"condensed": bare, "whole": whole},
    }
    for model, sets in by_hand.items():
        for name, (X, y, weight) in sets.items():
            weights = None if weight is None else weight.to_numpy()
            predicted = make_model(model).fit(np.asarray(X), y.to_numpy().astype(str), weights).predict_proba(encoded)
            auc = roc_auc_score(test["outcome"], predicted, multi_class="ovr")
            assert scores.loc[(model, name), "auc"] == pytest.approx(auc)
    assert ("neighbour", "condensed_bare") not in scores.index
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
        evaluate(small, rows, train, models=["nearest"], seeds=(0, 1))
        fits.append(nearest.fits)
        predictions.append(nearest.predictions)
    assert fits[0] == fits[1]
    assert len(fits[0]) == 12
    condensed, again, one, other, *_, whole, _ = fits[0]
    assert condensed == again
    assert condensed[0] == hash_array(small.X.to_numpy(dtype=np.float32))
    assert whole[0] == hash_array(encoded_training(train, small))
    assert one != other, "each seed draws another sample"
    np.testing.assert_array_equal(predictions[0][0], small.encoder.encode_rows(test))
    assert all(not np.array_equal(clean, bad) for clean, bad in zip(*predictions, strict=True))
    assert all(len(rows) == len(test) for rows in predictions[0])
    assert len(predictions[0]) == 12, "one look at the test rows for each trained model"
    assert [hash_array(small.X.to_numpy()), hash_array(small.encoder.encode_rows(train))] == before


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


def test_models_side_by_side_score_as_one_after_the_other(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks share torch's random generator; with two cores other models are trained beside them."""
    train, test, small = parts
    monkeypatch.setitem(RECIPES, "default", Recipe("adamw", 0.01, 0.0, epochs=2, batch_size=64))
    frames = []
    for cores in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", cores)
        before = torch.get_num_threads()
        frames.append(evaluate(small, test, train, models=["boosting", "mlp", "logistic"], seeds=[3, 4]))
        assert torch.get_num_threads() == before
    one, two = (frame.drop(columns="fit_seconds") for frame in frames)
    pd.testing.assert_frame_equal(one, two)


def test_condensed_rows_count_by_their_training_weights(parts: Parts, nearest: type[Nearest]) -> None:
    train, test, small = parts
    for weighted in (False, True):
        evaluate(small, test, train, models=["nearest"], weighted=weighted)
    assert [fit[2] == "none" for fit in nearest.fits] == [True] * 6 + [False, True, False, True, True, True]
    assert nearest.fits[6][2] == hash_array(small.training_weight.to_numpy())


def test_scores_are_looked_up_the_second_time(
    parts: Parts, nearest: type[Nearest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, test, small = parts
    monkeypatch.setitem(RECIPES, "default", Recipe("adamw", 0.01, 0.0, epochs=1, batch_size=2048))
    cache = ContentCache(tmp_path)
    settings: dict[str, Any] = {"models": ["nearest", "mlp"], "cache": cache}
    first, second = (evaluate(small, test, train, **settings) for _ in range(2))
    assert not first["cache_hit"].any()
    assert second["cache_hit"].all()
    assert len(nearest.fits) == 6
    pd.testing.assert_frame_equal(first.drop(columns="cache_hit"), second.drop(columns="cache_hit"))
    # One test row more: nothing that was known applies.
    assert not evaluate(small, test.iloc[1:], train, **settings)["cache_hit"].any()
    # Another seed: the models, and the random samples, are others.
    assert not evaluate(small, test, train, **{**settings, "seeds": [9]})["cache_hit"].any()


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
    scores = evaluate(small, partly, train, models=["nearest"])
    assert len(nearest.predictions[0]) == 90
    assert (scores["accuracy"] <= 40 / 90).all()
    known = scores["class_f1"].map(sum)
    np.testing.assert_allclose(scores["macro_f1"], known / 4)


@pytest.mark.parametrize("dtype", ["category", "bool", "object"])
def test_labels_of_every_kind(dtype: str, nearest: type[Nearest], tmp_path: Path) -> None:
    frame = mixed_table(200, classes=2).sample(frac=1, random_state=1)
    numbers = (frame["outcome"] == "class b").astype(int)
    labels = numbers.map({0: 7, 1: "seven"}) if dtype == "object" else numbers.astype(dtype)  # type: ignore[call-overload]
    frame = frame.assign(outcome=labels)
    small = condense(frame.iloc[:150], "outcome", rows=6)
    small.save(tmp_path / "small")
    for table in (small, CondensedTable.load(tmp_path / "small")):
        scores = evaluate(table, frame.iloc[150:], frame.iloc[:150], models=["nearest"])
        assert scores["accuracy"].between(0.3, 1).all()


def test_settings_and_rows_that_can_not_be_used(parts: Parts) -> None:
    train, test, small = parts
    wrong: list[dict[str, Any]] = [
        {"models": ["svm"]},
        {"models": []},
        {"seeds": []},
        {"seeds": 1},
        {"device": "abacus"},
    ]
    for change in [*wrong, {"recipe": "papr"}]:
        with pytest.raises(InputError):
            evaluate(small, test, train, **change)
    for rows, named in [(test.drop(columns=name), f"'{name}'") for name in ("outcome", "amount")] + [(test[:0], "")]:
        with pytest.raises(InputError, match=named):
            evaluate(small, rows, train)
    with pytest.raises(InputError):
        evaluate(small, test, train.assign(outcome="new"))


def test_means_are_over_seeds_and_models_stay_together(parts: Parts, nearest: type[Nearest]) -> None:
    train, test, small = parts
    scores = evaluate(small, test, train, models=["nearest", "twin"], seeds=(0, 1, 2))
    means = mean_scores(scores)
    assert means["model"].tolist() == ["nearest"] * 6 + ["twin"] * 6
    assert means["training_set"].tolist() == list(SETS) * 2
    of_random = scores.query("model == 'nearest' and training_set == 'random'")
    row = means.iloc[1]
    assert row["seeds"] == 3
    assert row["accuracy"] == pytest.approx(of_random["accuracy"].mean())
    assert row["macro_f1_std"] == pytest.approx(np.std(of_random["macro_f1"]))
    assert row["accuracy_std"] > 0


def test_random_rows_with_the_classes_and_weights_of_the_condensed_rows(parts: Parts) -> None:
    train, test, small = parts
    fitted: list[pd.DataFrame] = []

    class Watching(Nearest):
        def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Nearest:
            fitted.append(pd.DataFrame({"y": y, "weight": 1.0 if sample_weight is None else sample_weight}))
            return super().fit(X, y, sample_weight)

    evaluate(small, test, train, models=[Watching()], multiples=[1])
    condensed, random, same, _ = (frame.groupby("y")["weight"].agg(["size", "sum"]) for frame in fitted)
    pd.testing.assert_frame_equal(same, condensed)
    assert (random["size"] != condensed["size"]).any()


def test_a_classifier_of_ones_own(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    train, test, small = parts
    bayes = GaussianNB()
    scores = evaluate(small, test, train, models=[bayes, LinearSVC()], multiples=[1])
    assert scores["model"].unique().tolist() == ["GaussianNB", "LinearSVC"]
    by_model = dict(iter(scores.groupby("model")))
    probabilities = ["auc", "log_loss", "brier"]
    assert by_model["GaussianNB"][[*probabilities, "accuracy"]].notna().all(axis=None)
    assert by_model["LinearSVC"][probabilities].isna().all(axis=None)
    assert by_model["LinearSVC"]["accuracy"].notna().all()
    assert "LinearSVC" in caplog.text
    bayes.fit(encoded_training(train, small), train["outcome"].astype(str))
    expected = bayes.predict_proba(small.encoder.encode_rows(test))
    auc = roc_auc_score(test["outcome"].astype(str), expected, multi_class="ovr")
    assert by_model["GaussianNB"]["auc"].iloc[-1] == pytest.approx(auc)


def test_classifiers_of_one_class_are_told_apart(parts: Parts) -> None:
    train, test, small = parts
    models = [GaussianNB(), GaussianNB(var_smoothing=1.0)]
    both = evaluate(small, test, train, models=models, multiples=[1])
    for model, name in zip(models, both["model"].unique(), strict=True):
        alone = evaluate(small, test, train, models=[model], multiples=[1])
        assert both.loc[both["model"] == name, "log_loss"].tolist() == alone["log_loss"].tolist()


def test_original_columns_are_read_as_when_they_were_condensed() -> None:
    rng = np.random.default_rng(0)
    price = rng.lognormal(8, 1, 900)
    price_text = pd.Series([f"${value:,.2f}" for value in price]).where(rng.random(900) > 0.05, "unknown")
    label = np.where(price > np.median(price), "dear", "cheap")
    table = pd.DataFrame({"price": price_text, "shop": rng.choice(["a", "b"], 900), "label": label})
    small = condense(table[:600], "label", 0.05, missing=["unknown"])
    scores = evaluate(small, table[600:], table[:600], models=["boosting"], multiples=[1])
    whole = scores[scores["training_set"] == "whole"].set_index("columns")["auc"]
    assert whole["original"] > 0.9


def test_samples_smaller_than_the_number_of_classes_are_left_out(parts: Parts, nearest: type[Nearest]) -> None:
    train, test, small = parts
    scores = evaluate(small, test, train, models=[nearest()], multiples=[0.1, 0.5, 1, 1])
    assert scores["training_set"].value_counts().drop("condensed").to_dict() == dict.fromkeys(
        ["random_x0.5", "random", "random_same_classes", "whole"], 1
    )


class Unsure(GaussianNB):
    """A classifier that has the method for probabilities without supporting it."""

    def predict_proba(self, X: Any) -> np.ndarray:
        raise AttributeError


def test_classes_without_rows_are_named_and_the_rest_is_scored(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    train, test, small = parts
    scores = evaluate(
        small,
        test[test["outcome"] != "class c"],
        train[train["outcome"] == "class a"],
        models=["logistic", Unsure()],
        multiples=[1],
    )
    assert scores["accuracy"].notna().all()
    assert (scores["auc"].notna() == (scores["model"] == "logistic")).all()
    absent, untaught, unsure = caplog.messages
    assert "test rows" in absent
    assert "'class c'" in absent
    assert "training rows" in untaught
    assert "'class b'" in untaught
    assert "Unsure" in unsure
    with pytest.raises(InputError, match="'b'"):
        evaluate(small, test.assign(outcome="b"))


def test_a_failing_classifier_leaves_the_other_scores(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    train, test, small = parts
    few = LinearDiscriminantAnalysis(priors=[0.5, 0.5])
    scores = evaluate(small, test, train, models=[few, "logistic"], multiples=[1])
    assert (scores["accuracy"].isna() == (scores["model"] == "LinearDiscriminantAnalysis")).all()
    assert "LinearDiscriminantAnalysis" in caplog.text


def test_without_training_rows_only_the_condensed_rows_are_scored(parts: Parts, nearest: type[Nearest]) -> None:
    _, test, small = parts
    scores = evaluate(small, test, models=["nearest", "logistic"])
    assert scores["training_set"].tolist() == ["condensed", "condensed", "condensed_bare"]


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
    by_class = precision_recall_fscore_support(truth, predicted, labels=range(4), average=None, zero_division=0)
    ours = (scores.class_precision, scores.class_recall, scores.class_f1)
    for own, expected in zip(ours, by_class, strict=False):
        assert list(own) == [pytest.approx(value) if c in present else None for c, value in enumerate(expected)]


@given(st.integers(2, 5), st.integers(6, 40), st.integers(0, 99))
def test_scores_of_probabilities_are_scikit_learns(classes: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.concatenate([np.arange(classes), rng.integers(0, classes, rows)])
    probabilities = rng.dirichlet(np.ones(classes), len(truth))
    scores = score_predictions(truth, probabilities.argmax(axis=1), classes, probabilities)
    given = probabilities[:, 1] if classes == 2 else probabilities
    assert scores.auc == pytest.approx(roc_auc_score(truth, given, multi_class="ovr"))
    assert scores.log_loss == pytest.approx(log_loss(truth, probabilities))
    assert scores.brier == pytest.approx(brier_score_loss(truth, given, scale_by_half=True))


def test_probabilities_of_classes_that_test_rows_lack_or_models_do_not_know() -> None:
    truth = np.array([0, 1, 1, 3])
    probabilities = np.array([[0.6, 0.4, 0], [0.2, 0.8, 0], [0.7, 0.3, 0], [0.5, 0.5, 0]])
    scores = score_predictions(truth, probabilities.argmax(axis=1), 3, probabilities)
    assert list(scores.class_auc[:2]) == pytest.approx([2 / 3, 0.5])
    assert scores.class_auc[2] is None
    assert scores.log_loss == pytest.approx(-np.log([0.6, 0.8, 0.3]).mean())
    one_class = score_predictions(np.zeros(3, dtype=int), np.zeros(3, dtype=int), 2, np.tile([0.9, 0.1], (3, 1)))
    assert (one_class.auc, one_class.accuracy) == (None, 1.0)


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
