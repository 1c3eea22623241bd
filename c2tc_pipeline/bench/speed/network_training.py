"""How long a network trains on a table by a recipe, by all of its epochs or reckoned from some of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from c2tc_pipeline.bench.speed.bench import Bench, Timed
from c2tc_pipeline.evaluation.models.network import MlpClassifier
from c2tc_pipeline.evaluation.training import recipe_named


@dataclass(frozen=True)
class TrainingTime:
    """How long a training takes.

    Parameters
    ----------
    seconds : float
        From rows to a trained network.
    timed : Timed
        What was timed of it.
    done : str
        What training is, and how much of it was timed, in words.
    """

    seconds: float
    timed: Timed[Any]
    done: str


def time_training(
    bench: Bench, X: np.ndarray, codes: np.ndarray, *, recipe: str, epochs: int | None = None
) -> TrainingTime:
    """Time the training of the MLP.

    Parameters
    ----------
    bench : Bench
        Measures.
    X : ndarray of shape (n, d)
        The rows.
    codes : ndarray of shape (n,)
        Their classes.
    recipe : str
        The name of a recipe.
    epochs : int, optional
        Time so many epochs only, and a training of none. All epochs take the same steps on as many rows, so that the
        difference, once for every epoch of the recipe, comes on top of what is done once. Only for recipes whose epochs
        alone say how many steps there are.

    Examples
    --------
    >>> from c2tc_pipeline.bench.speed.noise import NoiseProbe
    >>> bench = Bench(probe=NoiseProbe(lambda: None))
    >>> time_training(bench, np.zeros((9, 2)), np.arange(9) % 2, recipe="paper", epochs=3).done
    '100 epochs, 100 steps of up to 2,048 rows; 3 epochs were timed, the others reckoned from them'
    """
    whole = recipe_named(recipe)
    rows, steps = len(X), whole.steps(len(X))

    def fit(some: int) -> Timed[Any]:
        return bench.once(lambda: MlpClassifier(recipe=replace(whole, epochs=some), device="cpu").fit(X, codes))

    passes = steps / whole.epoch(rows)
    done = f"{passes:.3g} epochs, {steps:,} steps of up to {whole.batch(rows):,} rows"
    if epochs is None or epochs >= whole.epochs:
        timed = fit(whole.epochs)
        return TrainingTime(timed.seconds, timed, done)
    if passes != whole.epochs:
        raise ValueError(f"Recipe {recipe!r} does not end with its epochs, so that some of them do not tell the rest.")
    nothing, timed = fit(0), fit(epochs)
    timed = replace(timed, probe_seconds=max(timed.probe_seconds, nothing.probe_seconds))
    seconds = nothing.seconds + (timed.seconds - nothing.seconds) / epochs * whole.epochs
    return TrainingTime(seconds, timed, f"{done}; {epochs} epochs were timed, the others reckoned from them")
