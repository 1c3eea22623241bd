"""Trials: a model fitted to some rows and tested on others, with its score in the cache."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from sklearn.utils.validation import has_fit_parameter

from c2tc_pipeline.common.optimisers import one_thread
from c2tc_pipeline.evaluation import SCORES_VERSION
from c2tc_pipeline.evaluation.metrics import Scores, score_predictions
from c2tc_pipeline.evaluation.models.base import ProbabilityClassifier
from c2tc_pipeline.evaluation.training import Recipe
from c2tc_pipeline.storage.cache import CacheLookup, ContentCache
from c2tc_pipeline.storage.manifest import hash_array, hash_json


def random_rows(codes: np.ndarray, rows: int, *, seed: int) -> np.ndarray:
    """Draw rows uniformly at random, with at least one of each class.

    A class that was not drawn gets one of its rows, in the place of the row drawn last of the classes that have
    several. Otherwise the sample is uniform, as in the paper. Returns sorted positions, none twice.
    """
    order = np.random.default_rng([seed, 0x5A]).permutation(len(codes))
    drawn, left = order[:rows].copy(), order[rows:]
    counts = np.bincount(codes[drawn], minlength=int(codes.max()) + 1)
    for absent in np.setdiff1d(codes, codes[drawn]).tolist():
        giving = int(np.flatnonzero(counts[codes[drawn]] > 1)[-1])
        counts[codes[drawn[giving]]] -= 1
        drawn[giving] = left[codes[left] == absent][0]
        counts[absent] = 1
    return np.sort(drawn)


def _hash_frame(frame: pd.DataFrame) -> str:
    values = pd.util.hash_pandas_object(frame, index=False, categorize=True).to_numpy()
    return hash_json([[[str(name), str(dtype)] for name, dtype in frame.dtypes.items()], hash_array(values)])


def random_rows_by_class(codes: np.ndarray, counts: np.ndarray, *, seed: int) -> np.ndarray:
    """Draw as many rows of each class as ``counts`` says, at most all it has, uniformly; return sorted positions."""
    order = np.random.default_rng([seed, 0x5B]).permutation(len(codes))
    drawn = [order[codes[order] == code][:count] for code, count in enumerate(counts.tolist())]
    return np.sort(np.concatenate(drawn))


@dataclass(frozen=True)
class LabelledRows:
    """Rows, encoded or in the original columns, their class codes and weights; without weights all count equally."""

    X: Any
    codes: np.ndarray
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, places: np.ndarray, weights: np.ndarray | None = None) -> LabelledRows:
        """Return some of the rows, with weights of their own."""
        rows = self.X.iloc[places] if isinstance(self.X, pd.DataFrame) else self.X[places]
        return LabelledRows(rows, self.codes[places], weights)

    @cached_property
    def digest(self) -> list[str | None]:
        """Hashes of rows, codes and weights, computed once."""
        rows = _hash_frame(self.X) if isinstance(self.X, pd.DataFrame) else hash_array(self.X)
        return [rows, *(None if array is None else hash_array(array) for array in (self.codes, self.weights))]


@runtime_checkable
class HasRecipe(Protocol):
    """A model that is trained by a recipe."""

    def own_recipe(self) -> Recipe:
        """Return the recipe with what the model changes about it."""


@dataclass(frozen=True)
class Trial:
    """Scores of a model on the test rows, and the seconds of its fit."""

    scores: Scores
    fit_seconds: float


def run_trial(
    model: Any, training: LabelledRows, test: LabelledRows, *, classes: int, cache: ContentCache | None = None
) -> CacheLookup[Trial]:
    """Fit a model and test it on one thread, or look its score up in the cache.

    Class codes of training rows are below ``classes``; weights of test rows are ignored.
    """

    def compute() -> Trial:
        with one_thread():
            started = time.perf_counter()
            if training.weights is None or not has_fit_parameter(model, "sample_weight"):
                model.fit(training.X, training.codes)
            else:
                model.fit(training.X, training.codes, sample_weight=training.weights)
            seconds = time.perf_counter() - started
            predicted, probabilities = predict(model, test.X, classes)
        return Trial(score_predictions(test.codes, predicted, classes, probabilities), seconds)

    if cache is None:
        return CacheLookup(compute(), hit=False)
    return cache.fetch(
        "scores", trial_key(model, training, test, classes=classes), compute=compute, write=_write, read=_read
    )


def predict(model: Any, X: Any, classes: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the predicted class codes, and the probabilities of all classes where the model can give them.

    A class that the model was not trained on has probability 0.
    """
    found = None
    # Some classifiers have the method without supporting it, and raise errors of several kinds.
    with contextlib.suppress(NotImplementedError, AttributeError, ValueError, TypeError, RuntimeError):
        found = np.asarray(model.predict_proba(X), dtype=np.float64) if hasattr(model, "predict_proba") else None
    if found is None:
        return np.asarray(model.predict(X)), None
    probabilities = np.zeros((len(found), classes))
    probabilities[:, np.asarray(model.classes_)] = found
    if isinstance(model, ProbabilityClassifier):
        return np.asarray(model.classes_)[found.argmax(axis=1)], probabilities
    return np.asarray(model.predict(X)), probabilities


def trial_key(model: Any, training: LabelledRows, test: LabelledRows, *, classes: int) -> str:
    """Return the hash of everything that determines a score: the contents of a recipe, not its name or the device."""
    parameters = {name: value for name, value in model.get_params().items() if name != "device"}
    if isinstance(model, HasRecipe):
        parameters["recipe"] = asdict(model.own_recipe())
    return hash_json([SCORES_VERSION, type(model).__name__, parameters, training.digest, test.digest[:2], classes])


def _write(trial: Trial, directory: Path) -> None:
    (directory / "trial.json").write_text(json.dumps(asdict(trial)), encoding="utf-8")


def _read(directory: Path) -> Trial:
    values = json.loads((directory / "trial.json").read_text(encoding="utf-8"))
    scores: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values["scores"].items()
    }
    return Trial(Scores(**scores), values["fit_seconds"])
