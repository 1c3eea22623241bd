"""Describe how the scores of an experiment came about: seeds, splits, threads and the machine."""

from __future__ import annotations

import os
import platform

import pandas as pd

from c2tc_pipeline.bench.experiments.grid import Experiment, Scaling
from c2tc_pipeline.reports import wording


def protocol(experiment: Experiment, scores: pd.DataFrame, *, jobs: int | None = None) -> str:
    """Describe in one sentence how the scores came about, and on what machine.

    ``jobs`` is the number of processes, 0 or 1 for one, None where it is not known.
    """
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    ending = f"{len(scores):,} results on {machine}."
    several = experiment.seeds > 1
    spread = "; mean ± standard deviation over them" if several else ""
    seeds = wording.counted(experiment.seeds, "seed", "seeds")
    if experiment.scaling is not None:
        return f"{seeds}{', each' if several else ':'} {_parts(experiment.scaling)}{spread}; {ending}"
    steps = ["a split of its own (70 % training, 10 % validation rows)", "a condensation"]
    steps += [] if not experiment.models else ["a start of the models"]
    each = ", ".join(steps[:-1]) + f" and {steps[-1]}"
    if experiment.first_seed:
        seeds += f", the first {experiment.first_seed}"
    for table, fewer in experiment.fewer_seeds.items():
        seeds += f", {fewer} on {table}" if table in experiment.tables and fewer < experiment.seeds else ""
    judged = "; the same fifth of the rows for testing in all of them"
    if experiment.group_duplicates:
        judged += ", rows with equal features on one side"
    judged += f"; networks trained with recipe {experiment.recipe!r}" if experiment.models else ""
    if experiment.judged_on == "validation":
        judged += "; scored on validation rows, on which settings are chosen"
    return f"{seeds}, each {each}{spread}{judged}; {_processes(experiment, jobs)}; {ending}"


def _parts(scaling: Scaling) -> str:
    rows, columns = (wording.count(size) for size in (scaling.shape.rows, scaling.shape.columns))
    return (
        f"a condensation of every part of a synthetic table of {rows} rows and {columns} columns, one after the other, "
        "with as many threads as the libraries take; nothing is split, no model is trained"
    )


def _processes(experiment: Experiment, jobs: int | None) -> str:
    if experiment.timed or jobs in (0, 1):
        return "every trial on one thread, one after the other"
    if jobs is None:
        return "every trial on one thread"
    return f"every trial on one thread, {jobs} processes side by side"
