"""Describe how the scores of an experiment came about: seeds, splits, threads and the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping

import pandas as pd

from c2tc_pipeline.bench.experiments.grid import Experiment, Scaling
from c2tc_pipeline.bench.statistics.comparisons import TEST_TO_TRAIN
from c2tc_pipeline.reports import wording
from c2tc_pipeline.tables.spec import SplitSettings


def protocol(
    experiment: Experiment,
    scores: pd.DataFrame,
    *,
    splits: Mapping[str, SplitSettings] | None = None,
    jobs: int | None = None,
) -> str:
    """Describe in one sentence how the scores came about, and on what machine.

    Without ``splits``, or where these differ, the shares are left out; ``jobs`` is the number of processes, 0 or 1 for
    one, None where it is not known.
    """
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    ending = f"{len(scores):,} results on {machine}."
    several = experiment.seeds > 1
    spread = "; mean ± standard deviation over them" if several else ""
    seeds = wording.counted(experiment.seeds, "seed", "seeds")
    if experiment.scaling is not None:
        return f"{seeds}{', each' if several else ':'} {_parts(experiment.scaling)}{spread}; {ending}"
    shares = _shares(experiment, splits or {})
    steps = [f"a split of its own{f' ({shares})' if shares else ''}", "a condensation"]
    steps += [] if not experiment.models else ["a start of the models"]
    each = ", ".join(steps[:-1]) + f" and {steps[-1]}"
    if experiment.first_seed:
        seeds += f", the first {experiment.first_seed}"
    judged = f"; networks trained with recipe {experiment.recipe!r}" if experiment.models else ""
    if experiment.judged_on == "validation":
        judged += "; scored on validation rows, on which settings are chosen"
    return f"{seeds}, each {each}{spread}{judged}; {_processes(experiment, jobs)}; {ending}"


def most_test_to_train(splits: Mapping[str, SplitSettings] | None) -> float:
    """Return test rows divided by training rows, the largest over all tables, or the default split's without any."""
    shares = [round(split.test / (1 - split.validation - split.test), 9) for split in (splits or {}).values()]
    return max(shares, default=TEST_TO_TRAIN)


def _parts(scaling: Scaling) -> str:
    rows, columns = (wording.count(size) for size in (scaling.shape.rows, scaling.shape.columns))
    return (
        f"a condensation of every part of a made table of {rows} rows and {columns} columns, one after the other, with "
        "as many threads as the libraries take; nothing is split, no model is trained"
    )


def _shares(experiment: Experiment, splits: Mapping[str, SplitSettings]) -> str:
    parts = []
    shares = {(split.validation, split.test) for split in splits.values()}
    if len(shares) == 1:
        validation, test = shares.pop()
        train, *others = (f"{100 * share:.4g} %" for share in (1 - validation - test, validation, test))
        parts.append(f"{train} training, {others[0]} validation, {others[1]} test rows")
    grouped = [name for name, split in splits.items() if split.group_duplicates]
    if experiment.group_duplicates or (grouped and len(grouped) == len(splits)):
        parts.append("rows with equal features on one side")
    elif grouped:
        parts.append(f"rows of {', '.join(grouped)} with equal features on one side")
    return ", ".join(parts)


def _processes(experiment: Experiment, jobs: int | None) -> str:
    if experiment.timed or jobs in (0, 1):
        return "every trial on one thread, one after the other"
    if jobs is None:
        return "every trial on one thread"
    return f"every trial on one thread, {jobs} processes side by side"
