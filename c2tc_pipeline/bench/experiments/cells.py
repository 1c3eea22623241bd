"""Cells of an experiment: condense a split with one method, train models on the result, and cache both.

A group of cells shares one encoded table: one table, one split, one column space.
"""

from __future__ import annotations

import inspect
import itertools
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.allocation import ALLOCATION_VERSION, make_allocator
from c2tc_pipeline.allocation.hfils import HfilsAllocator
from c2tc_pipeline.allocation.shares import budget_for_ratio, proportional_counts
from c2tc_pipeline.bench.experiments.grid import OURS, Contender, Experiment
from c2tc_pipeline.bench.experiments.spaces import ENCODED, ORIGINAL, EncodedSplit, encode_split
from c2tc_pipeline.bench.limits import OK, OUT_OF_MEMORY, OUT_OF_TIME, run_limited
from c2tc_pipeline.bench.rivals import make_rival
from c2tc_pipeline.bench.statistics.runs import WHOLE
from c2tc_pipeline.clustering import CLUSTER_VERSION, CURVE_VERSION
from c2tc_pipeline.condensation import CONDENSED_VERSION, EXPANSION_VERSION, WEIGHTS_VERSION
from c2tc_pipeline.condensation.condenser import Condenser
from c2tc_pipeline.condensation.table import PULL, CondensedTable, training_weights
from c2tc_pipeline.evaluation.metrics import ALL_METRICS
from c2tc_pipeline.evaluation.models import make_model
from c2tc_pipeline.evaluation.row_worth import random_set
from c2tc_pipeline.evaluation.trial import LabelledRows, random_rows, run_trial
from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.storage.manifest import hash_json
from c2tc_pipeline.storage.parquet import open_arrays, read_parquet, write_parquet
from c2tc_pipeline.tables.kinds import plain
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline.tables.table import known_codes

# Part of the cache keys: any change of a rival that changes its rows raises its version; ours has those of its steps.
_RIVALS_VERSION = 5
_OURS_VERSION = [
    ALLOCATION_VERSION,
    CURVE_VERSION,
    CLUSTER_VERSION,
    CONDENSED_VERSION,
    WEIGHTS_VERSION,
    EXPANSION_VERSION,
]

# Settings of a contender that concern the training rows and are not parameters of the sampler.
_TRAINING = ("weighted", "pull", "drawn")
BARE = "bare "
_HFILS_SETTINGS = tuple(inspect.signature(HfilsAllocator).parameters)


@dataclass(frozen=True)
class Condensed:
    """Rows that a method made, by kind of columns, or a status other than "ok" with the reason.

    Where rows were drawn from condensed rows, these are there too, under the kind with :data:`BARE` before it. ``size``
    is the number of condensed rows; ``objective`` is the paper's, if known.
    """

    rows: Mapping[str, LabelledRows]
    status: str
    seconds: float
    size: int = 0
    objective: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class ClassMix:
    """Rows and total training weight of each class."""

    counts: tuple[int, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(cls, rows: LabelledRows, classes: int) -> ClassMix:
        """Return the class mix of condensed rows."""
        counts, weights = (np.bincount(rows.codes, each, minlength=classes) for each in (None, rows.weights))
        return cls(tuple(counts.tolist()), tuple(weights.astype(np.float64).tolist()))

    @classmethod
    def equal(cls, sizes: np.ndarray, budget: int) -> ClassMix:
        """Return equal rows of each class, as far as the class has rows, all of the same weight."""
        counts = proportional_counts(np.ones(len(sizes)), budget, sizes)
        return cls(tuple(counts.tolist()), tuple(counts.astype(np.float64).tolist()))

    def weighted(self, rows: LabelledRows) -> LabelledRows:
        """Return rows whose weights add up to those of the mix in every class, in the same proportions as before."""
        own = np.ones(len(rows)) if rows.weights is None else rows.weights
        totals = np.bincount(rows.codes, own, minlength=len(self.weights))
        scales = np.divide(self.weights, totals, out=np.ones_like(totals), where=totals > 0)
        return replace(rows, weights=own * scales[rows.codes])


def make_sampler(contender: Contender, ratio: float, seed: int, mix: ClassMix | None = None) -> Any:
    """Return the sampler of a contender; settings of HFILS, such as ``decay`` or ``soft_step``, make its allocator."""
    settings: dict[str, Any] = {k: v for k, v in contender.settings.items() if k not in _TRAINING}
    if contender.method != OURS:
        counts = None if mix is None else mix.counts
        return make_rival(contender.method, ratio=ratio, seed=seed, class_counts=counts, **settings)
    search = {name: settings.pop(name) for name in _HFILS_SETTINGS if name in settings}
    if search:
        settings["allocation"] = HfilsAllocator(**search)
    return Condenser(ratio, random_state=seed, **settings)


def sampler_key(contender: Contender, ratio: float, seed: int, mix: ClassMix | None = None) -> list[Any]:
    """Return version and settings of a method, defaults included, so that a changed default changes the key."""
    settings = make_sampler(contender, ratio, seed, mix).get_params()
    settings["weighted"] = contender.settings.get("weighted", True)
    if contender.method == OURS:
        settings["drawn"] = contender.settings.get("drawn", True)
        allocator = make_allocator(settings["allocation"])
        settings["allocation"] = [allocator.name, vars(allocator)]
        settings["pull"] = contender.settings.get("pull", PULL)
    kept = {name: value for name, value in settings.items() if name not in ("device", "cache_dir")}
    weights = None if mix is None else mix.weights
    return [_OURS_VERSION if contender.method == OURS else _RIVALS_VERSION, contender.method, kept, weights]


def condense_split(
    contender: Contender,
    split: EncodedSplit,
    ratio: float,
    seed: int,
    *,
    time_limit: float,
    memory_limit: float,
    alike: str = "",
    mix: ClassMix | None = None,
    cache: ContentCache | None = None,
) -> Condensed:
    """Condense the training rows of a split within limits in seconds and gigabytes, or look the result up.

    A method gets the training rows; ours may also use validation rows, to choose ``gamma: auto``, and a rival the class
    ``mix`` of ours. A method that ran out of time or memory is not tried again on splits with the same ``alike``.
    """

    def compute() -> Condensed:
        started = time.perf_counter()
        outcome = run_limited(
            lambda: _condense(contender, split, ratio, seed, mix), seconds=time_limit, gigabytes=memory_limit
        )
        if outcome.value is None:
            return Condensed({}, outcome.status, time.perf_counter() - started, reason=outcome.reason)
        return outcome.value

    if cache is None:
        return compute()
    key = sampler_key(contender, ratio, seed, mix)
    entry = hash_json([*key, split.visible])
    found = cache.get("condensed_rows", entry, read=_read)
    if found is None:
        ending = hash_json([*key[:2], contender.settings, ratio, alike, time_limit, memory_limit])
        known = cache.get("endings", ending, read=_read)
        if known is not None:
            return replace(known, reason=f"{known.reason} on another split of this table")
        found = compute()
        if found.status == OK:
            cache.put("condensed_rows", entry, found, write=_write)
        elif found.status in (OUT_OF_TIME, OUT_OF_MEMORY):
            cache.put("endings", ending, found, write=_write)
    if found.status == OK and found.seconds > time_limit:
        # It was made under a longer limit.
        return Condensed({}, OUT_OF_TIME, found.seconds, reason=f"it took more than {time_limit:g} seconds")
    return found


def _condense(contender: Contender, split: EncodedSplit, ratio: float, seed: int, mix: ClassMix | None) -> Condensed:
    sampler = make_sampler(contender, ratio, seed, mix)
    if contender.method == OURS and split.source is not None:
        small, seconds = split.condensed(sampler)
        kinds = [ENCODED, *([ORIGINAL] if split.original else [])]
        rows = {BARE + kind: _bare_rows(small, contender, split, kind) for kind in kinds}
        if contender.settings.get("drawn", True):
            rows |= {kind: _drawn_rows(small, contender, split, kind, seed) for kind in kinds}
        else:
            rows = {kind: rows[BARE + kind] for kind in kinds}
        return Condensed(rows, OK, seconds, len(small), float(small.allocation.objective))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        X, codes = sampler.fit_resample(split.train.X, split.train.codes)
        seconds = time.perf_counter() - started
    weights = sampler.weights_ if contender.settings.get("weighted", True) else None
    weights = None if weights is None else np.asarray(weights, dtype=np.float64)
    made = LabelledRows(np.ascontiguousarray(X, dtype=np.float32), np.asarray(codes, dtype=np.int64), weights)
    rows = {ENCODED: made}
    chosen = getattr(sampler, "sample_indices_", None)
    if split.original and chosen is not None:
        rows[ORIGINAL] = split.original["train"].take(chosen, weights)
    if mix is not None:
        rows = {kind: mix.weighted(own) for kind, own in rows.items()}
    return Condensed(rows, OK, seconds, len(made))


def _bare_rows(small: CondensedTable, contender: Contender, split: EncodedSplit, kind: str) -> LabelledRows:
    """Return the condensed rows with their training weights."""
    weights = None
    if contender.settings.get("weighted", True):
        pull = float(contender.settings.get("pull", PULL))
        weights = training_weights(small.weight.to_numpy(), plain(small.y).to_numpy(), pull)
    return _labelled(small, split, kind, small.X if kind == ENCODED else small.original, small.y, weights)


def _drawn_rows(small: CondensedTable, contender: Contender, split: EncodedSplit, kind: str, seed: int) -> LabelledRows:
    """Return rows drawn from a condensed table; the setting ``pull`` gives classes the weights of the bare rows."""
    X, y, weight = small.expand(space=kind, random_state=seed)
    weights = weight.to_numpy() if contender.settings.get("weighted", True) else None
    drawn = _labelled(small, split, kind, X, y, weights)
    if "pull" not in contender.settings:
        return drawn
    mix = ClassMix.of(_bare_rows(small, contender, split, kind), split.classes)
    scale = len(drawn) / sum(mix.weights)
    return replace(mix, weights=tuple(scale * weight for weight in mix.weights)).weighted(drawn)


def _labelled(
    small: CondensedTable, split: EncodedSplit, kind: str, X: pd.DataFrame, y: Any, weights: np.ndarray | None
) -> LabelledRows:
    columns = small.X.columns if kind == ENCODED else split.original["train"].X.columns
    rows: Any = X[list(columns)]
    if kind == ENCODED:
        rows = np.ascontiguousarray(rows, dtype=np.float32)
    return LabelledRows(rows, known_codes(y, np.asarray(small.classes)), weights)


def _write(made: Condensed, directory: Path) -> None:
    values = {name: value for name, value in vars(made).items() if name != "rows"}
    (directory / "condensed.json").write_text(json.dumps({**values, "kinds": list(made.rows)}), encoding="utf-8")
    for kind, rows in made.rows.items():
        arrays: dict[str, Any] = {"codes": rows.codes}
        if rows.weights is not None:
            arrays["weights"] = rows.weights
        if kind.endswith(ENCODED):
            arrays["X"] = rows.X
        else:
            write_parquet(rows.X, directory / f"{kind}.parquet")
        np.savez(directory / f"{kind}.npz", **arrays)


def _read(directory: Path) -> Condensed:
    values = json.loads((directory / "condensed.json").read_text(encoding="utf-8"))
    rows = {}
    for kind in values.pop("kinds"):
        with open_arrays(directory / f"{kind}.npz") as arrays:
            X = arrays["X"] if kind.endswith(ENCODED) else read_parquet(directory / f"{kind}.parquet")
            rows[kind] = LabelledRows(X, arrays["codes"], arrays.get("weights"))
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

    @property
    def original(self) -> bool:
        """Whether models are trained on the source's columns, too."""
        return ORIGINAL in self.experiment.spaces and self.space == self.experiment.encodings[0]

    def contenders(self) -> Iterator[tuple[float, Contender]]:
        """Yield the ratio and the contender of each condensation."""
        return itertools.product(self.experiment.ratios, self.experiment.contenders)

    def trials(self) -> list[tuple[str, int]]:
        """Return models and their seeds, other seeds in every group of another seed."""
        count = self.experiment.model_seeds
        seeds = range(self.seed * count, (self.seed + 1) * count)
        return [(name, seed) for name in self.experiment.models for seed in seeds]

    def has_whole(self) -> bool:
        """Whether the models are trained on the whole table."""
        whole = self.experiment.whole
        wanted = whole if isinstance(whole, bool) else self.seed < self.experiment.first_seed + whole
        return bool(self.experiment.models) and wanted

    def training_sets(self) -> int:
        """Return how many training sets are made and scored."""
        samples = len(self.experiment.ratios) * len(self.experiment.multiples)
        return self.has_whole() + samples + sum(1 for _ in self.contenders())

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
            original=self.original,
            cache_dir=cache_dir,
        )


def groups_of(experiment: Experiment, specs: dict[str, TableSpec], run: str = "") -> list[Group]:
    """Return the groups of an experiment, seed by seed, so that one that is stopped has whole repetitions."""
    levels: tuple[float | None, ...] = (None,) if experiment.imbalance is None else experiment.imbalance.levels
    return [
        Group(experiment, specs[table], seed, space, level, run)
        for seed in range(experiment.first_seed, experiment.first_seed + experiment.seeds)
        for table in experiment.tables
        if seed - experiment.first_seed < experiment.fewer_seeds.get(table, experiment.seeds)
        for space in experiment.encodings
        for level in levels
    ]


def run_group(group: Group, *, cache_dir: Path | None, done: Callable[[], Any] = lambda: None) -> list[dict[str, Any]]:
    """Condense and score all cells of a group; ``done`` is called after each training set.

    Returns one entry per trained model, or per condensation where there is no model to train.
    """
    experiment = group.experiment
    split = group.encoded(cache_dir)
    judged = split.part(experiment.judged_on)
    # Measured seconds never come from the cache.
    cache = None if cache_dir is None or experiment.timed else ContentCache(cache_dir)
    level = "" if group.level is None else f"{group.level:g}:1"
    shared: dict[str, Any] = {"experiment": experiment.name, "table": group.spec.name}
    shared |= {"split": group.seed, "seed": group.seed}
    results: list[dict[str, Any]] = []

    def score(
        made: Condensed, method: str, variant: str, ratio: float, trials: Sequence[tuple[str, int]] = group.trials()
    ) -> None:
        about: dict[str, Any] = {
            **shared,
            "space": group.space,
            "method": method,
            "variant": ", ".join(filter(None, [variant, level])),
            "ratio": ratio,
            "status": made.status,
            "reason": made.reason,
            "condense_seconds": made.seconds,
            "objective": made.objective,
            "rows": made.size,
        }
        if not made.rows or not experiment.models:
            results.extend({**about, "model": name} for name in experiment.models or ("",))
        kinds = [kind for kind in (ENCODED, ORIGINAL) if kind in made.rows]
        for (name, seed), kind in itertools.product(trials, kinds):
            model = make_model(name, recipe=experiment.recipe, seed=seed)
            rows = (
                made.rows[kind]
                if getattr(model, "gains_from_expansion", True)
                else made.rows.get(BARE + kind, made.rows[kind])
            )
            if kind == ENCODED or model.takes_original:
                trial = run_trial(model, rows, judged[kind], classes=split.classes, cache=cache).value
                scores = {name: getattr(trial.scores, name) for name in ALL_METRICS}
                own = {"space": group.space if kind == ENCODED else kind, "model": name, "model_seed": seed}
                results.append({**about, **own, **scores, "fit_seconds": trial.fit_seconds})
        done()

    def condense(contender: Contender, ratio: float, mix: ClassMix | None = None) -> Condensed:
        return condense_split(
            contender,
            split,
            ratio,
            group.seed,
            time_limit=experiment.time_limit,
            memory_limit=experiment.memory_limit,
            alike=f"{group.run}, {group.spec.name}, {group.space}, {group.level}",
            mix=mix,
            cache=cache,
        )

    for ratio, contender in group.contenders():
        mix = None
        if contender.has_our_classes:
            # How ours weighs its classes is the only setting that the mix depends on.
            pull = {name: value for name, value in contender.settings.items() if name == "pull"}
            ours = condense(Contender(method=OURS, settings={"drawn": False, **pull}), ratio)
            if not ours.rows:
                score(ours, contender.method, contender.variant, ratio)
                continue
            mix = ClassMix.of(ours.rows[ENCODED], split.classes)
        elif contender.class_mix == "equal":
            sizes = np.bincount(split.train.codes, minlength=split.classes)
            mix = ClassMix.equal(sizes, budget_for_ratio(ratio, len(split.train), split.classes))
        score(condense(contender, ratio, mix), contender.method, contender.variant, ratio)
    train, taken = split.part("train"), {contender.method for contender in experiment.contenders}
    for ratio, multiple in itertools.product(experiment.ratios, experiment.multiples):
        size = round(multiple * budget_for_ratio(ratio, len(split.train), split.classes))
        if split.classes <= size < len(split.train) and random_set(multiple) not in taken:
            places = random_rows(split.train.codes, size, seed=group.seed)
            most = experiment.most_multiple
            trials = [trial for trial in group.trials() if multiple <= most.get(trial[0], multiple)]
            sample = Condensed({kind: rows.take(places) for kind, rows in train.items()}, OK, 0.0, size)
            score(sample, random_set(multiple), "", ratio, trials)
        else:
            done()
    if group.has_whole():
        score(Condensed(train, OK, 0.0, len(split.train)), WHOLE, "", 1.0)
    return results
