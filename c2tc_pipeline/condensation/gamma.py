"""Choosing gamma on validation rows: how far small classes are favoured.

Each candidate's allocation is tried: its classes are clustered and the validation rows are classified by their nearest
centre. This 1-nearest-neighbour classifier needs no training and works with any number of rows. The score is the mean
of accuracy and macro-F1, because gamma trades one for the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import accuracy_score, f1_score

from c2tc_pipeline.allocation import Allocator
from c2tc_pipeline.allocation.problem import AllocationProblem, CurveLosses
from c2tc_pipeline.clustering.class_kmeans import ClassKMeans

# The paper tunes over 0.25 to 1; 0 is the unweighted objective. The first of equals wins.
CANDIDATES = (0.25, 0.5, 0.75, 1.0, 0.0)
_VALIDATION_SHARE = 0.1
_VALIDATION_ROWS = 10_000
# Rows of a class that a trial clusters; more would make the choice cost more than the condensation.
_TRIAL_ROWS = 20_000


@dataclass(frozen=True)
class GammaScore:
    """Scores of one gamma on the validation rows."""

    gamma: float
    counts: tuple[int, ...]
    accuracy: float
    macro_f1: float

    @property
    def score(self) -> float:
        """The mean of both metrics."""
        return (self.accuracy + self.macro_f1) / 2


def choose_gamma(
    classes: Sequence[ClassKMeans],
    budget: int,
    losses: CurveLosses,
    allocator: Allocator,
    *,
    validation: tuple[np.ndarray, np.ndarray] | None,
    seed: int,
    min_rows: int = 1,
) -> tuple[float, list[GammaScore], int]:
    """Return the gamma whose condensed rows classify validation rows best, all scores, and the k-means runs."""
    rng = np.random.default_rng([seed, 0xA])
    sizes = np.array([len(rows) for rows in classes])
    if validation is None:
        trials, validation = _keep_aside(classes, rng)
    else:
        trials = [rows.sample(_positions(len(rows), _TRIAL_ROWS, rng)) for rows in classes]
        picked = _positions(len(validation[0]), _VALIDATION_ROWS, rng)
        validation = validation[0][picked], validation[1][picked]
    centers: dict[tuple[int, int], np.ndarray] = {}
    scores: list[GammaScore] = []
    for gamma in CANDIDATES:
        problem = AllocationProblem(sizes, budget, losses, gamma, min_rows)
        counts = allocator.allocate(problem, random_state=seed).counts
        for index, k in enumerate(counts.tolist()):
            if (index, k) not in centers:
                possible = min(k, len(trials[index]))
                centers[index, k] = trials[index].cluster(possible, seed=seed, relocate=0, tol=3e-3).centers
        chosen = [centers[index, k] for index, k in enumerate(counts.tolist())]
        owner = np.repeat(np.arange(len(chosen)), [len(c) for c in chosen])
        kernel = classes[0].kernel
        predicted = owner[kernel.assign(kernel.load(validation[0], None), np.vstack(chosen))]
        accuracy = float(accuracy_score(validation[1], predicted))
        macro_f1 = float(f1_score(validation[1], predicted, average="macro", zero_division=0))
        scores.append(GammaScore(gamma, tuple(counts.tolist()), accuracy, macro_f1))
    best = max(scores, key=lambda score: score.score)
    return best.gamma, scores, len(centers)


def _keep_aside(
    classes: Sequence[ClassKMeans], rng: np.random.Generator
) -> tuple[list[ClassKMeans], tuple[np.ndarray, np.ndarray]]:
    """Split each class into trial rows and validation rows; a class of one row serves as both."""
    total = sum(len(rows) for rows in classes)
    share = min(_VALIDATION_SHARE, _VALIDATION_ROWS / total)
    trials, kept, labels = [], [], []
    for index, rows in enumerate(classes):
        order = rng.permutation(len(rows))
        aside = max(1, round(share * len(rows)))
        kept.append(rows.source.take(order[:aside]))
        labels.append(np.full(aside, index))
        rest = order[aside:][:_TRIAL_ROWS] if len(rows) > 1 else order
        trials.append(rows.sample(np.sort(rest)))
    return trials, (np.vstack(kept), np.concatenate(labels))


def _positions(n: int, most: int, rng: np.random.Generator) -> np.ndarray:
    return np.arange(n) if n <= most else np.sort(rng.choice(n, size=most, replace=False))
