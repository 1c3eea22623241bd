"""The allocation plan: how many condensed rows each class gets, decided from loss curves.

Gamma says how far small classes are favoured, and can be chosen on validation rows. Each candidate's allocation is
tried: its classes are clustered and the validation rows are classified by their nearest centre. One nearest neighbour
is a judge that trains in no time, works with any number of rows, and sees what the condensed table holds. The score is
the mean of accuracy and macro-F1, because gamma trades one for the other.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, f1_score

from c2tc_pipeline.allocation import Allocator, make_allocator
from c2tc_pipeline.allocation.problem import Allocation, AllocationProblem, CurveLosses
from c2tc_pipeline.allocation.shares import proportional_counts
from c2tc_pipeline.clustering.class_kmeans import ClassKMeans
from c2tc_pipeline.clustering.engines import Engine, open_engine
from c2tc_pipeline.clustering.loss_curves import LossCurve, measure_curves, read_curves, write_curves
from c2tc_pipeline.clustering.rows import RowSource
from c2tc_pipeline.common.defaults import check_gamma
from c2tc_pipeline.common.devices import check_engine
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.stages import StageClock
from c2tc_pipeline.storage.cache import ContentCache

# The paper tunes over 0.25 to 1; 0 is the unweighted objective. The first of equals wins.
CANDIDATES = (0.25, 0.5, 0.75, 1.0, 0.0)
_VALIDATION_SHARE = 0.1
_VALIDATION_ROWS = 10_000
# Rows of a class that a trial clusters; more would make the choice cost more than the condensation.
_TRIAL_ROWS = 20_000


@dataclass(frozen=True)
class ClusterSettings:
    """Settings of clustering."""

    budget: int
    allocation: str | Allocator = "hfils"
    gamma: float | str = 0.25
    device: str = "auto"
    seed: int = 0
    min_rows: int = 1
    engine: str = "local"

    def __post_init__(self) -> None:
        check_engine(self.engine)
        check_gamma(self.gamma)
        make_allocator(self.allocation)


@dataclass(frozen=True)
class AllocationPlan:
    """A split of the budget over the classes, with the loss curves and gamma scores behind it."""

    allocation: Allocation
    measured: list[LossCurve]
    gamma_scores: list[GammaScore] = field(default_factory=list)
    gamma_trials: int = 0
    curves_cached: bool = False
    curves_damaged: bool = False

    def write_files(self, directory: Path) -> None:
        """Write the plan into an existing directory."""
        values = {
            "allocation": self.allocation.to_dict(),
            "gamma_scores": [asdict(score) for score in self.gamma_scores],
            "gamma_trials": self.gamma_trials,
        }
        (directory / "plan.json").write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
        write_curves(self.measured, directory)

    @classmethod
    def read_files(cls, directory: Path) -> AllocationPlan:
        """Read what :meth:`write_files` wrote."""
        values: dict[str, Any] = json.loads((directory / "plan.json").read_text(encoding="utf-8"))
        scores = [GammaScore(**{**score, "counts": tuple(score["counts"])}) for score in values["gamma_scores"]]
        return cls(
            allocation=Allocation.from_dict(values["allocation"]),
            measured=read_curves(directory),
            gamma_scores=scores,
            gamma_trials=values["gamma_trials"],
        )


def plan_allocation(
    X: np.ndarray | RowSource,
    edges: np.ndarray,
    settings: ClusterSettings,
    *,
    validation: tuple[np.ndarray, np.ndarray] | None = None,
    cache: ContentCache | None = None,
    clock: StageClock | None = None,
) -> AllocationPlan:
    """Measure loss curves and split the budget over the classes."""
    clock = clock or StageClock()
    sizes = np.diff(edges)
    check_room(sizes, settings.budget, settings.min_rows)
    with open_engine(settings.engine) as engine:
        classes = class_rows(X, edges, settings, engine)
        with clock.stage("curves") as tick:
            largest = _largest_of_interest(sizes // settings.min_rows, sizes, settings.budget)
            found = measure_curves(classes, largest.tolist(), seed=settings.seed, cache=cache, progress=tick)
        losses = CurveLosses(found.value)
        allocator = make_allocator(settings.allocation)
        scores: list[GammaScore] = []
        trials = 0
        with clock.stage("allocate"):
            gamma = settings.gamma
            if isinstance(gamma, str):
                gamma, scores, trials = choose_gamma(
                    classes,
                    settings.budget,
                    losses,
                    allocator,
                    validation=validation,
                    seed=settings.seed,
                    min_rows=settings.min_rows,
                )
            problem = AllocationProblem(sizes, settings.budget, losses, gamma, settings.min_rows)
            allocation = allocator.allocate(problem, random_state=settings.seed)
        return AllocationPlan(allocation, found.value, scores, trials, found.hit, found.damaged)


def class_rows(
    X: np.ndarray | RowSource, edges: np.ndarray, settings: ClusterSettings, engine: Engine
) -> list[ClassKMeans]:
    """Return the rows of each class, ready for k-means where the settings say."""
    kernel = engine.kernel(settings.device)
    rows = RowSource.of(X)
    return [ClassKMeans(rows.part(start, end), kernel, engine) for start, end in itertools.pairwise(edges.tolist())]


def _largest_of_interest(room: np.ndarray, sizes: np.ndarray, budget: int) -> np.ndarray:
    """Return how far each curve needs to reach: its proportional share, or twice an equal one, whichever is more."""
    upper = np.minimum(budget - (len(sizes) - 1), room)
    return np.minimum(upper, np.maximum(proportional_counts(sizes, budget, upper), 2 * budget // len(sizes)))


def check_room(sizes: Sequence[int] | np.ndarray, budget: int, least: int, names: Iterable[Any] | None = None) -> None:
    """Raise InputError if a class, or the budget, leaves no room for the minimum."""
    sizes = np.asarray(sizes, dtype=np.int64)
    small = np.flatnonzero(sizes < least)
    if len(small):
        listed = list(range(len(sizes)) if names is None else names)
        name = listed[small[0]]
        name = name.item() if isinstance(name, np.generic) else name
        classes = "1 more class has" if len(small) == 2 else f"{len(small) - 1:,} more classes have"
        others = f", and {classes} too few" if len(small) > 1 else ""
        rows = "1 row" if sizes[small[0]] == 1 else f"{sizes[small[0]]} rows"
        raise InputError(
            f"Class {name!r} has {rows}, fewer than min_rows_per_condensed_row={least}{others}; leave its rows out, "
            "join it with another class, or choose a smaller minimum."
        )
    room = int((sizes // least).sum())
    if budget > room:
        raise InputError(
            f"With min_rows_per_condensed_row={least} the table has room for at most {room:,} condensed rows, but "
            f"{budget:,} are asked for; choose a smaller ratio or a smaller minimum."
        )


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
