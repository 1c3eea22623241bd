"""All cells of an experiment that share an encoded table: one table, one split, one column space."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c2tc_pipeline.bench.experiments.contest import Condensed, condense_split
from c2tc_pipeline.bench.experiments.grid import Contender, Experiment
from c2tc_pipeline.bench.experiments.imbalance import imbalanced_rows
from c2tc_pipeline.bench.experiments.limits import OK
from c2tc_pipeline.bench.experiments.spaces import EncodedSplit, encode_split
from c2tc_pipeline.bench.statistics.runs import WHOLE
from c2tc_pipeline.evaluation.models import make_model
from c2tc_pipeline.evaluation.trial import LabelledRows, run_trial
from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.tables.blocks import read_table
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline.tables.validated import validate_table

Told = Callable[[float], Any]
"""Told how much of the work is done, in units of :mod:`.effort`."""


@dataclass(frozen=True)
class Group:
    """Cells that share an encoded table.

    Parameters
    ----------
    experiment : Experiment
        What they belong to.
    spec : TableSpec
        The table, with a source that can be opened.
    seed : int
        Of the split, of everything random in condensing, and the first one of the models.
    space : str
        The column space.
    level : float, optional
        How one-sided a feature is made first.
    run : str
        Which run of the experiment this is: what ran out of time in another may be tried again.
    """

    experiment: Experiment
    spec: TableSpec
    seed: int
    space: str
    level: float | None = None
    run: str = ""

    def contenders(self) -> Iterator[tuple[float, Contender]]:
        """Yield who condenses, at every ratio."""
        for ratio in self.experiment.ratios:
            for contender in self.experiment.methods:
                if self.space in (contender.spaces or self.experiment.spaces):
                    yield ratio, contender

    def model_seeds(self) -> range:
        """Return the seeds of the models, other ones in every group of another seed."""
        count = self.experiment.model_seeds
        return range(self.seed * count, (self.seed + 1) * count)


def groups_of(experiment: Experiment, specs: dict[str, TableSpec], run: str = "") -> list[Group]:
    """Return the groups of an experiment.

    Parameters
    ----------
    experiment : Experiment
        The grid.
    specs : dict of str to TableSpec
        Its tables.
    run : str
        Which run of the experiment this is.
    """
    levels: tuple[float | None, ...] = (None,) if experiment.imbalance is None else experiment.imbalance.levels
    spaces = dict.fromkeys([*experiment.spaces, *(space for c in experiment.methods for space in c.spaces)])
    return [
        Group(experiment, specs[table], seed, space, level, run)
        for table in experiment.tables
        for seed in range(experiment.first_seed, experiment.first_seed + experiment.seeds)
        for space in spaces
        for level in levels
    ]


def run_group(group: Group, *, cache_dir: Path | None, told: Told = lambda done: None) -> list[dict[str, Any]]:
    """Condense and judge all cells of a group; what is in the cache is not computed again.

    Returns
    -------
    list of dict
        One entry a trained model, or a condensation where no model is asked for or none can be trained.
    """
    from c2tc_pipeline.bench.experiments.effort import condensation_effort, trial_effort

    experiment = group.experiment
    split = encoded_group(group, cache_dir)
    judged = split.test if experiment.judged_on == "test" else split.validation
    # Seconds from another day are not to be compared with today's.
    cache = None if cache_dir is None or experiment.timed else ContentCache(cache_dir)
    results: list[dict[str, Any]] = []

    def judge(made: Condensed, **about: Any) -> None:
        about |= {"status": made.status, "reason": made.reason, "condense_seconds": made.seconds}
        about |= {"objective": made.objective, "rows": 0 if made.rows is None else len(made.rows)}
        models = [(name, seed) for name in experiment.models for seed in group.model_seeds()]
        if made.rows is None or not models:
            results.extend({**about, "model": name} for name in experiment.models or ("",))
        for name, seed in models:
            if made.rows is not None:
                results.append(
                    {**about, **_scored(made.rows, judged, split.classes, name, seed, experiment.recipe, cache)}
                )
            told(trial_effort(name, about["rows"], experiment.recipe))

    if experiment.whole and experiment.models:
        judge(Condensed(split.train, OK, 0.0), method=WHOLE, variant=_variant(group, ""), ratio=1.0)
    for ratio, contender in group.contenders():
        found = condense_split(
            contender,
            split,
            ratio,
            group.seed,
            time_limit=experiment.time_limit,
            memory_limit=experiment.memory_limit,
            alike=f"{group.run}, {group.spec.name}, {group.space}, {group.level}",
            cache=cache,
        )
        told(condensation_effort(contender.method, len(split.train), split.train.X.shape[1], ratio))
        judge(found.value, method=contender.method, variant=_variant(group, contender.variant), ratio=ratio)
    shared = {"experiment": experiment.name, "table": group.spec.name, "space": group.space}
    return [{**shared, "split": group.seed, "seed": group.seed, **result} for result in results]


def encoded_group(group: Group, cache_dir: Path | None) -> EncodedSplit:
    """Read, split and encode the table of a group."""
    grouped = group.experiment.group_duplicates or group.spec.split.group_duplicates
    settings = group.spec.split.model_copy(update={"seed": group.seed, "group_duplicates": grouped})
    validated = validate_table(read_table(group.spec.source), group.spec.model_copy(update={"split": settings}))
    train = None
    if group.experiment.imbalance is not None and group.level is not None:
        column = group.experiment.imbalance.columns[group.spec.name]
        train = imbalanced_rows(validated.part("train"), group.spec.label, column, group.level, seed=group.seed)
    return encode_split(validated, group.space, seed=group.seed, cache_dir=cache_dir, train=train)


def _scored(
    rows: LabelledRows,
    judged: LabelledRows,
    classes: int,
    name: str,
    seed: int,
    recipe: str,
    cache: ContentCache | None,
) -> dict[str, Any]:
    model = make_model(name, recipe=recipe, seed=seed)
    trial = run_trial(model, rows, judged, classes=classes, cache=cache).value
    return {
        "model": name,
        "model_seed": seed,
        "accuracy": trial.scores.accuracy,
        "macro_f1": trial.scores.macro_f1,
        "fit_seconds": trial.fit_seconds,
    }


def _variant(group: Group, variant: str) -> str:
    level = "" if group.level is None else f"{group.level:g}:1"
    return ", ".join(part for part in (variant, level) if part)
