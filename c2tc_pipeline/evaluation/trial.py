"""Trials: a model fitted to some rows and tested on others, with its score in the cache."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from c2tc_pipeline.common.optimisers import one_thread
from c2tc_pipeline.evaluation import SCORES_VERSION
from c2tc_pipeline.evaluation.training import Recipe
from c2tc_pipeline.storage.cache import CacheLookup, ContentCache
from c2tc_pipeline.storage.hashing import hash_array, hash_json


def class_codes(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the class code of each label; an unknown label gets the code after the last."""
    known = np.isin(labels, classes)
    codes = np.full(len(labels), len(classes), dtype=np.int64)
    codes[known] = np.searchsorted(classes, labels[known])
    return codes


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


@dataclass(frozen=True)
class Scores:
    """Accuracy, F1 of each class (None for a class that no row has), and its mean over the classes of the rows.

    A class that is predicted but has no row counts only through the errors it makes.
    """

    accuracy: float
    macro_f1: float
    class_f1: tuple[float | None, ...]


def score_predictions(truth: np.ndarray, predicted: np.ndarray, classes: int) -> Scores:
    """Score predicted class codes; codes from ``classes`` on are classes that no model can know."""
    size = max(classes, int(truth.max()) + 1, int(predicted.max()) + 1)
    rows = np.bincount(truth, minlength=size)
    found = np.bincount(truth[truth == predicted], minlength=size)
    named = np.bincount(predicted, minlength=size)
    # A class with rows makes rows + named positive, so that its F1 is always defined.
    f1 = [
        2 * hits / (have + predictions) if have else None
        for hits, have, predictions in zip(*map(np.ndarray.tolist, (found, rows, named)), strict=True)
    ]
    return Scores(
        accuracy=float(found.sum() / rows.sum()),
        macro_f1=float(np.mean([value for value in f1 if value is not None])),
        class_f1=tuple(f1[:classes]),
    )


@dataclass(frozen=True)
class LabelledRows:
    """Encoded rows, their class codes and weights; without weights all rows count equally."""

    X: np.ndarray
    codes: np.ndarray
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def digest(self) -> list[str | None]:
        """Hashes of the three arrays, computed once."""
        return [None if array is None else hash_array(array) for array in (self.X, self.codes, self.weights)]


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
            model.fit(training.X, training.codes, sample_weight=training.weights)
            seconds = time.perf_counter() - started
            predicted = model.predict(test.X)
        return Trial(score_predictions(test.codes, predicted, classes), seconds)

    if cache is None:
        return CacheLookup(compute(), hit=False)
    return cache.fetch(
        "scores", trial_key(model, training, test, classes=classes), compute=compute, write=_write, read=_read
    )


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
    scores = values["scores"]
    return Trial(Scores(scores["accuracy"], scores["macro_f1"], tuple(scores["class_f1"])), values["fit_seconds"])
