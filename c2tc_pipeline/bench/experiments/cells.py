"""Cells of an experiment: condense a split with one method, train models on the result, and cache both.

A group of cells shares one encoded table: one table, one split, one column space.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from c2tc_pipeline.allocation import ALLOCATION_VERSION, make_allocator
from c2tc_pipeline.allocation.hfils import HfilsAllocator
from c2tc_pipeline.bench.experiments.grid import OURS, Contender, Experiment
from c2tc_pipeline.bench.experiments.spaces import EncodedSplit, encode_split
from c2tc_pipeline.bench.limits import OK, OUT_OF_MEMORY, OUT_OF_TIME, run_limited
from c2tc_pipeline.bench.rivals import make_rival
from c2tc_pipeline.bench.statistics.runs import WHOLE
from c2tc_pipeline.clustering import CLUSTER_VERSION, CURVE_VERSION
from c2tc_pipeline.condensation.condenser import Condenser
from c2tc_pipeline.condensation.table import PULL, training_weights
from c2tc_pipeline.evaluation.models import make_model
from c2tc_pipeline.evaluation.training import RECIPES
from c2tc_pipeline.evaluation.trial import LabelledRows, run_trial
from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.storage.hashing import hash_json
from c2tc_pipeline.storage.parquet import open_arrays
from c2tc_pipeline.tables.spec import TableSpec

# Part of the cache keys: any change of a rival that changes its rows raises its version; ours has those of its steps.
_RIVALS_VERSION = 5
_OURS_VERSION = [ALLOCATION_VERSION, CURVE_VERSION, CLUSTER_VERSION]

# Settings of a contender about the weights of its rows, which are no parameters of the sampler.
_WEIGHTING = ("weighted", "pull")
_HFILS_SETTINGS = tuple(inspect.signature(HfilsAllocator).parameters)

# Relative cost of models and methods, for the estimate of the time left; no result depends on it. A unit is about one
# training step of the multilayer perceptron.
_STEP_EFFORT = {"mlp_plr": 3, "realmlp": 4, "ft_transformer": 30, "tabnet": 20, "tabr": 15}
_ROWS_PER_UNIT = {"boosting": 30, "logistic": 1_000, "neighbour": 300}
_METHOD_PASSES = {"ours": 6, "cluster_centroids": 30, "herding": 3, "k_center": 3, "minibatch_kmeans": 2}
_MATCHING_EFFORT = {"dm": 60_000, "gm": 200_000, "mtt": 200_000}


@dataclass(frozen=True)
class Condensed:
    """Rows that a method made, or a status other than "ok" with the reason; ``objective`` is the paper's, if known."""

    rows: LabelledRows | None
    status: str
    seconds: float
    objective: float | None = None
    reason: str = ""


def make_sampler(contender: Contender, ratio: float, seed: int) -> Any:
    """Return the sampler of a contender; settings of HFILS, such as ``decay`` or ``soft_step``, make its allocator."""
    settings: dict[str, Any] = {k: v for k, v in contender.settings.items() if k not in _WEIGHTING}
    if contender.method != OURS:
        return make_rival(contender.method, ratio=ratio, seed=seed, **settings)
    search = {name: settings.pop(name) for name in _HFILS_SETTINGS if name in settings}
    if search:
        settings["allocation"] = HfilsAllocator(**search)
    return Condenser(ratio, random_state=seed, **settings)


def sampler_key(contender: Contender, ratio: float, seed: int) -> list[Any]:
    """Return version and settings of a method, defaults included, so that a changed default changes the key."""
    settings = make_sampler(contender, ratio, seed).get_params()
    settings["weighted"] = contender.settings.get("weighted", True)
    if contender.method == OURS:
        allocator = make_allocator(settings["allocation"])
        settings["allocation"] = [allocator.name, vars(allocator)]
        settings["pull"] = contender.settings.get("pull", PULL)
    kept = {name: value for name, value in settings.items() if name not in ("device", "cache_dir")}
    return [_OURS_VERSION if contender.method == OURS else _RIVALS_VERSION, contender.method, kept]


def condense_split(
    contender: Contender,
    split: EncodedSplit,
    ratio: float,
    seed: int,
    *,
    time_limit: float,
    memory_limit: float,
    alike: str = "",
    cache: ContentCache | None = None,
) -> Condensed:
    """Condense the training rows of a split within limits in seconds and gigabytes, or look the result up.

    A method sees the training rows; ours may also use validation rows, to choose ``gamma: auto``. A method that ran out
    of time or memory is not tried again on splits with the same ``alike``.
    """

    def compute() -> Condensed:
        started = time.perf_counter()
        outcome = run_limited(
            lambda: _condense(contender, split, ratio, seed), seconds=time_limit, gigabytes=memory_limit
        )
        if outcome.value is None:
            return Condensed(None, outcome.status, time.perf_counter() - started, reason=outcome.reason)
        return outcome.value

    if cache is None:
        return compute()
    key = sampler_key(contender, ratio, seed)
    ending_key = hash_json([*key[:2], contender.settings, ratio, alike, time_limit, memory_limit])

    def compute_or_end() -> Condensed:
        known = _known_ending(cache, ending_key)
        if known is not None:
            raise _Ended(dataclasses.replace(known, reason=f"{known.reason} on another split of this table"))
        made = compute()
        if made.status == OK:
            return made
        if made.status in (OUT_OF_TIME, OUT_OF_MEMORY):
            cache.fetch("endings", ending_key, compute=lambda: made, write=_write, read=_read)
        raise _Ended(made)

    try:
        entry = hash_json([*key, split.visible])
        found = cache.fetch("condensed_rows", entry, compute=compute_or_end, write=_write, read=_read).value
    except _Ended as ended:
        return ended.made
    if found.seconds > time_limit:
        # It was made under a longer limit.
        return Condensed(None, OUT_OF_TIME, found.seconds, reason=f"it took more than {time_limit:g} seconds")
    return found


class _Ended(Exception):
    """A condensation gave no rows, so that there is nothing to keep under its key."""

    def __init__(self, made: Condensed) -> None:
        super().__init__()
        self.made = made


def _known_ending(cache: ContentCache, key: str) -> Condensed | None:
    def absent() -> Condensed:
        raise LookupError

    try:
        return cache.fetch("endings", key, compute=absent, write=_write, read=_read).value
    except LookupError:
        return None


def _condense(contender: Contender, split: EncodedSplit, ratio: float, seed: int) -> Condensed:
    sampler = make_sampler(contender, ratio, seed)
    known = split.known_validation
    extra = {"validation": (known.X, known.codes)} if contender.method == OURS and len(known) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        X, codes = sampler.fit_resample(split.train.X, split.train.codes, **extra)
        seconds = time.perf_counter() - started
    allocation = getattr(sampler, "allocation_", None)
    weights = sampler.weights_ if contender.settings.get("weighted", True) else None
    if weights is not None and contender.method == OURS:
        weights = training_weights(weights, codes, float(contender.settings.get("pull", PULL)))
    rows = LabelledRows(
        np.ascontiguousarray(X, dtype=np.float32),
        np.asarray(codes, dtype=np.int64),
        None if weights is None else np.asarray(weights, dtype=np.float64),
    )
    return Condensed(rows, OK, seconds, None if allocation is None else float(allocation.objective))


def _write(made: Condensed, directory: Path) -> None:
    values = {name: value for name, value in asdict(made).items() if name != "rows"}
    (directory / "condensed.json").write_text(json.dumps(values), encoding="utf-8")
    if made.rows is not None:
        arrays: dict[str, Any] = {"X": made.rows.X, "codes": made.rows.codes}
        if made.rows.weights is not None:
            arrays["weights"] = made.rows.weights
        np.savez(directory / "rows.npz", **arrays)


def _read(directory: Path) -> Condensed:
    values = json.loads((directory / "condensed.json").read_text(encoding="utf-8"))
    rows = None
    if values["status"] == OK:
        with open_arrays(directory / "rows.npz") as arrays:
            rows = LabelledRows(arrays["X"], arrays["codes"], arrays.get("weights"))
    return Condensed(rows, **values)


@dataclass(frozen=True)
class Group:
    """Cells that share an encoded table; ``seed`` is that of the split, of condensing, and the first of the models.

    ``level`` is how skewed a feature is made first. ``run`` identifies one run of the experiment: what ran out of time
    in another may be tried again.
    """

    experiment: Experiment
    spec: TableSpec
    seed: int
    space: str
    level: float | None = None
    run: str = ""

    def contenders(self) -> Iterator[tuple[float, Contender]]:
        """Yield the ratio and the contender of each condensation."""
        for ratio in self.experiment.ratios:
            for contender in self.experiment.methods:
                if self.space in (contender.spaces or self.experiment.spaces):
                    yield ratio, contender

    def trials(self) -> list[tuple[str, int]]:
        """Return models and their seeds, other seeds in every group of another seed."""
        count = self.experiment.model_seeds
        seeds = range(self.seed * count, (self.seed + 1) * count)
        return [(name, seed) for name in self.experiment.models for seed in seeds]

    def encoded(self, cache_dir: Path | None) -> EncodedSplit:
        """Read, split and encode the table."""
        skew = None
        if self.experiment.imbalance is not None and self.level is not None:
            skew = (self.experiment.imbalance.columns[self.spec.name], self.level)
        return encode_split(
            self.spec,
            self.space,
            seed=self.seed,
            group_duplicates=self.experiment.group_duplicates,
            skew=skew,
            cache_dir=cache_dir,
        )

    def effort(self, rows: int, columns: int) -> float:
        """Return the relative cost of all cells for that many training rows."""
        recipe, trials = self.experiment.recipe, self.trials()
        total = sum(trial_effort(name, rows, recipe) for name, _ in trials) if self.experiment.whole else 0.0
        for ratio, contender in self.contenders():
            total += condensation_effort(contender.method, rows, columns, ratio)
            total += sum(trial_effort(name, round(rows * ratio), recipe) for name, _ in trials)
        return total


def groups_of(experiment: Experiment, specs: dict[str, TableSpec], run: str = "") -> list[Group]:
    """Return the groups of an experiment."""
    levels: tuple[float | None, ...] = (None,) if experiment.imbalance is None else experiment.imbalance.levels
    return [
        Group(experiment, specs[table], seed, space, level, run)
        for table in experiment.tables
        for seed in range(experiment.first_seed, experiment.first_seed + experiment.seeds)
        for space in experiment.all_spaces
        for level in levels
    ]


def run_group(
    group: Group, *, cache_dir: Path | None, done: Callable[[float], Any] = lambda effort: None
) -> list[dict[str, Any]]:
    """Condense and score all cells of a group; ``done`` is called with the effort of each piece of work.

    Returns one entry per trained model, or per condensation where there is no model to train.
    """
    experiment = group.experiment
    split = group.encoded(cache_dir)
    judged = split.test if experiment.judged_on == "test" else split.validation
    # Measured seconds never come from the cache.
    cache = None if cache_dir is None or experiment.timed else ContentCache(cache_dir)
    level = "" if group.level is None else f"{group.level:g}:1"
    shared: dict[str, Any] = {"experiment": experiment.name, "table": group.spec.name, "space": group.space}
    shared |= {"split": group.seed, "seed": group.seed}
    results: list[dict[str, Any]] = []

    def score(made: Condensed, method: str, variant: str, ratio: float) -> None:
        about: dict[str, Any] = {
            **shared,
            "method": method,
            "variant": ", ".join(filter(None, [variant, level])),
            "ratio": ratio,
            "status": made.status,
            "reason": made.reason,
            "condense_seconds": made.seconds,
            "objective": made.objective,
            "rows": 0 if made.rows is None else len(made.rows),
        }
        if made.rows is None or not experiment.models:
            results.extend({**about, "model": name} for name in experiment.models or ("",))
        for name, seed in group.trials():
            if made.rows is not None:
                model = make_model(name, recipe=experiment.recipe, seed=seed)
                trial = run_trial(model, made.rows, judged, classes=split.classes, cache=cache).value
                scores = {"accuracy": trial.scores.accuracy, "macro_f1": trial.scores.macro_f1}
                results.append({**about, "model": name, "model_seed": seed, **scores, "fit_seconds": trial.fit_seconds})
            done(trial_effort(name, about["rows"], experiment.recipe))

    if experiment.whole and experiment.models:
        score(Condensed(split.train, OK, 0.0), WHOLE, "", 1.0)
    for ratio, contender in group.contenders():
        made = condense_split(
            contender,
            split,
            ratio,
            group.seed,
            time_limit=experiment.time_limit,
            memory_limit=experiment.memory_limit,
            alike=f"{group.run}, {group.spec.name}, {group.space}, {group.level}",
            cache=cache,
        )
        done(condensation_effort(contender.method, len(split.train), split.train.X.shape[1], ratio))
        score(made, contender.method, contender.variant, ratio)
    return results


def trial_effort(model: str, rows: int, recipe: str) -> float:
    """Return the relative cost of training a model on that many rows."""
    if model in _ROWS_PER_UNIT:
        return 100 + rows / _ROWS_PER_UNIT[model]
    return float(RECIPES[recipe].steps(max(rows, 1)) * _STEP_EFFORT.get(model, 1))


def condensation_effort(method: str, rows: int, columns: int, ratio: float) -> float:
    """Return the relative cost of condensing that many rows."""
    if method in _MATCHING_EFFORT:
        return float(_MATCHING_EFFORT[method])
    return 10 + _METHOD_PASSES.get(method, 0) * rows * (rows * ratio) * columns / 8e7
