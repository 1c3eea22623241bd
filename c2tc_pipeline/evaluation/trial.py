"""One trial: a model fitted to some rows and tested on others, with its score in the cache.

What belongs here: what determines a score, and keeping it. Which rows are worth a trial is decided elsewhere.
"""

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
from c2tc_pipeline.evaluation.metrics import Scores, score_predictions
from c2tc_pipeline.evaluation.training import Recipe
from c2tc_pipeline.storage.cache import CacheLookup, ContentCache
from c2tc_pipeline.storage.hashing import hash_array, hash_json

# Part of every key: raised by any change of a model, of the trainer or of a metric that changes scores.


def class_codes(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the number of each label's class; one that is not known gets the number after the last.

    Examples
    --------
    >>> class_codes(np.array(["b", "a", "z"]), np.array(["a", "b"])).tolist()
    [1, 0, 2]
    """
    known = np.isin(labels, classes)
    codes = np.full(len(labels), len(classes), dtype=np.int64)
    codes[known] = np.searchsorted(classes, labels[known])
    return codes


@dataclass(frozen=True)
class LabelledRows:
    """Encoded rows, their class numbers and how much they count.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Encoded rows.
    codes : ndarray of int of shape (n,)
        Class numbers.
    weights : ndarray of shape (n,), optional
        How much each row counts; all count alike by default.
    """

    X: np.ndarray
    codes: np.ndarray
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def digest(self) -> list[str | None]:
        """Hashes of the three arrays; large tables are read for it, so that it is made once."""
        return [None if array is None else hash_array(array) for array in (self.X, self.codes, self.weights)]


@runtime_checkable
class HasRecipe(Protocol):
    """A model that is trained by a recipe."""

    def own_recipe(self) -> Recipe:
        """Return the recipe with what the model changes about it."""


@dataclass(frozen=True)
class Trial:
    """What a model scored.

    Parameters
    ----------
    scores : Scores
        On the test rows.
    fit_seconds : float
        How long the fit took when it was made.
    """

    scores: Scores
    fit_seconds: float


def run_trial(
    model: Any, training: LabelledRows, test: LabelledRows, *, classes: int, cache: ContentCache | None = None
) -> CacheLookup[Trial]:
    """Fit a model and test it, on one thread, or look up how it did before.

    Parameters
    ----------
    model : classifier
        Unfitted; see :mod:`c2tc_pipeline.evaluation.models`.
    training : LabelledRows
        What it is fitted to, with class numbers below ``classes``.
    test : LabelledRows
        What it is tested on, once; their weights play no part.
    classes : int
        How many classes there are to know.
    cache : ContentCache, optional
        Where the score is kept.

    Returns
    -------
    CacheLookup of Trial
        The score, and whether it was looked up.

    Examples
    --------
    >>> from c2tc_pipeline.evaluation.models import make_model
    >>> rows = LabelledRows(np.array([[0.1], [0.2], [0.9]], dtype=np.float32), np.array([0, 0, 1]))
    >>> found = run_trial(make_model("boosting"), rows, rows, classes=2)
    >>> found.value.scores.accuracy, found.hit
    (1.0, False)
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
    """Return the hash of everything that determines a score.

    A recipe counts by what it says to that model, not by its name; where a model is trained does not count.
    """
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
