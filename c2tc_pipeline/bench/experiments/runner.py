"""Running an experiment: groups of cells side by side in processes, with progress, and a tidy table at the end.

Every cell is kept in the cache as soon as it is done. An experiment that was stopped goes on from there, and one that
was finished is only put together again.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import queue
import uuid
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.managers import SyncManager
from pathlib import Path
from typing import Any

import pandas as pd

from c2tc_pipeline.bench.experiments.effort import condensation_effort, trial_effort
from c2tc_pipeline.bench.experiments.grid import Experiment
from c2tc_pipeline.bench.experiments.group import Group, groups_of, run_group
from c2tc_pipeline.bench.experiments.limits import die_with_parent
from c2tc_pipeline.bench.experiments.scaling import run_scaling
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.optimisers import one_thread
from c2tc_pipeline.tables.blocks import peek_table
from c2tc_pipeline.tables.spec import TableSpec

COLUMNS = {
    "experiment": "str",
    "table": "str",
    "ratio": "float64",
    "space": "str",
    "method": "str",
    "variant": "str",
    "model": "str",
    "split": "int64",
    "seed": "int64",
    "model_seed": "int64",
    "rows": "int64",
    "status": "str",
    "accuracy": "float64",
    "macro_f1": "float64",
    "objective": "float64",
    "condense_seconds": "float64",
    "fit_seconds": "float64",
    "reason": "str",
}
"""The tidy table: one row a trained model, or a condensation where there was none to train."""

Progress = Callable[[float, float], Any]
"""Told (work done, work in all), in units of :mod:`.effort`."""


def run_experiment(
    experiment: Experiment,
    specs: dict[str, TableSpec],
    *,
    cache_dir: Path | None = None,
    jobs: int | None = None,
    progress: Progress = lambda done, total: None,
) -> pd.DataFrame:
    """Run an experiment and return its scores.

    Parameters
    ----------
    experiment : Experiment
        The grid.
    specs : dict of str to TableSpec
        Its tables, with sources that can be opened.
    cache_dir : path, optional
        Where encoders, condensed rows and scores are kept.
    jobs : int, optional
        Processes, as many as there are cores by default, one where seconds count; 0 runs everything in this one.
    progress : callable, optional
        Told how far it is.

    Returns
    -------
    DataFrame
        With the columns of :data:`COLUMNS`; a cell that ran out of time or memory has that as its ``status`` and no
        scores.
    """
    if experiment.scaling is not None:
        return _tidy(experiment, run_scaling(experiment, progress))
    sizes = {name: _size(spec) for name, spec in specs.items() if name in experiment.tables}
    efforts = [
        (group, _effort(group, *sizes[group.spec.name])) for group in groups_of(experiment, specs, uuid.uuid4().hex)
    ]
    # Seed by seed, so that an experiment that is stopped has whole repetitions; the longest first, so that in the end
    # no process is left alone with one.
    groups = [group for group, _ in sorted(efforts, key=lambda pair: (pair[0].seed, -pair[1]))]
    total = sum(effort for _, effort in efforts)
    done = 0.0

    def tell(more: float) -> None:
        nonlocal done
        done = min(done + more, total)
        progress(done, total)

    progress(0, total)
    if jobs == 0:
        with one_thread():
            results = [run_group(group, cache_dir=cache_dir, told=tell) for group in groups]
    else:
        jobs = 1 if experiment.timed else jobs or os.cpu_count() or 1
        results = _in_processes(groups, cache_dir, jobs, tell)
    progress(total, total)
    return _tidy(experiment, [row for rows in results for row in rows])


def _in_processes(
    groups: list[Group], cache_dir: Path | None, jobs: int, tell: Callable[[float], None]
) -> list[list[dict[str, Any]]]:
    # Fresh processes: a copy of this one could hold locks of threads that it does not have.
    context = multiprocessing.get_context("spawn")
    manager = SyncManager(ctx=context)
    manager.start(die_with_parent)
    with manager:
        news = manager.Queue()
        pool = ProcessPoolExecutor(min(jobs, len(groups)), mp_context=context, initializer=_start, initargs=(news,))
        try:
            running: list[Future[list[dict[str, Any]]]] = [pool.submit(_run_here, group, cache_dir) for group in groups]
            left = set(running)
            while left:
                ended, left = wait(left, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in ended:
                    future.result()
                _pass_on(news, tell)
            return [future.result() for future in running]
        except BrokenProcessPool:
            raise InputError(
                "A process of the experiment was stopped by the system, most likely for want of memory; run it again "
                "with fewer --jobs: what is done is kept."
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list((pool._processes or {}).values()):
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _pass_on(news: Any, tell: Callable[[float], None]) -> None:
    while True:
        try:
            tell(news.get_nowait())
        except queue.Empty:
            return


_news: Any = None


def _start(news: Any) -> None:
    global _news
    die_with_parent()
    _news = news


def _run_here(group: Group, cache_dir: Path | None) -> list[dict[str, Any]]:
    # One thread a process: there are as many processes as cores, and a process that never had threads can be forked.
    with one_thread():
        return run_group(group, cache_dir=cache_dir, told=_news.put)


def _size(spec: TableSpec) -> tuple[int, int]:
    header = peek_table(spec.source)
    return round(0.8 * (header.rows or 50_000)), len(header.columns)


def _effort(group: Group, rows: int, columns: int) -> float:
    experiment = group.experiment
    effort = 0.0
    trials = [(name, seed) for name in experiment.models for seed in group.model_seeds()]
    if experiment.whole:
        effort += sum(trial_effort(name, rows, experiment.recipe) for name, _ in trials)
    for ratio, contender in group.contenders():
        effort += condensation_effort(contender.method, rows, columns, ratio)
        effort += sum(trial_effort(name, round(rows * ratio), experiment.recipe) for name, _ in trials)
    return effort


def _tidy(experiment: Experiment, rows: list[dict[str, Any]]) -> pd.DataFrame:
    # What a row does not say is 0, nothing or unknown.
    absent = {"int64": 0, "str": "", "float64": math.nan}
    filled = [{name: row.get(name, absent[kind]) for name, kind in COLUMNS.items()} for row in rows]
    frame = pd.DataFrame(filled, columns=list(COLUMNS)).astype(COLUMNS)
    # In the order of the grid, however the processes came to an end; variants come as they were made.
    orders = {
        "table": experiment.tables,
        "space": [*experiment.spaces, *(space for contender in experiment.methods for space in contender.spaces)],
        "method": [contender.method for contender in experiment.methods],
        "model": experiment.models,
    }

    def place(column: pd.Series[Any]) -> pd.Series[Any]:
        if column.name not in orders:
            return column
        known = list(dict.fromkeys(orders[str(column.name)]))
        return column.map(lambda value: known.index(value) if value in known else len(known))

    by = ["table", "ratio", "space", "method", "model", "split", "seed", "model_seed"]
    return frame.sort_values(by, key=place, kind="stable", ignore_index=True)
