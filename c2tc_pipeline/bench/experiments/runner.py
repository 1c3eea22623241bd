"""Run an experiment: groups of cells in parallel processes, with progress, and a tidy table of scores at the end.

Every cell is cached as soon as it is done, so that an experiment that was stopped goes on from there.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import multiprocessing
import os
import queue
import signal
import uuid
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.bench.experiments.cells import Group, condense_split, groups_of, run_group
from c2tc_pipeline.bench.experiments.grid import Experiment
from c2tc_pipeline.bench.experiments.spaces import ORIGINAL, EncodedSplit, synthetic_rows
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.optimisers import one_thread
from c2tc_pipeline.common.processes import end_with_parent
from c2tc_pipeline.evaluation.trial import LabelledRows
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
    "auc": "float64",
    "log_loss": "float64",
    "brier": "float64",
    "objective": "float64",
    "condense_seconds": "float64",
    "fit_seconds": "float64",
    "reason": "str",
}
"""The tidy table: one row per trained model, or per condensation where there was none to train."""

Progress = Callable[[int, int], Any]
"""Called with (training sets done, training sets in all)."""


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
        Cache of encoders, condensed rows and scores.
    jobs : int, optional
        Processes, by default one per core, or one where seconds count; 0 runs everything in this process.
    progress : callable, optional
        Called with training sets done and training sets in all.

    Returns
    -------
    DataFrame
        With the columns of :data:`COLUMNS`; a cell that ran out of time or memory has that as its ``status`` and no
        scores.
    """
    if experiment.scaling is not None:
        return _tidy(experiment, _run_scaling(experiment, progress))
    groups = groups_of(experiment, specs, uuid.uuid4().hex)
    total = sum(group.training_sets() for group in groups)
    finished = itertools.count(1)

    def done() -> None:
        progress(next(finished), total)

    progress(0, total)
    if jobs == 0:
        with one_thread():
            results = [run_group(group, cache_dir=cache_dir, done=done) for group in groups]
    else:
        jobs = 1 if experiment.timed else jobs or os.cpu_count() or 1
        results = _in_processes(groups, cache_dir, jobs, done)
    progress(total, total)
    return _tidy(experiment, [row for rows in results for row in rows])


def _in_processes(
    groups: list[Group], cache_dir: Path | None, jobs: int, done: Callable[[], None]
) -> list[list[dict[str, Any]]]:
    # Spawned processes: a fork could inherit locks of threads that it does not have.
    context = multiprocessing.get_context("spawn")
    before = set(multiprocessing.active_children())
    news = context.Queue()
    pool = ProcessPoolExecutor(min(jobs, len(groups)), mp_context=context, initializer=_start, initargs=(news,))
    try:
        futures = [pool.submit(_run_in_worker, group, cache_dir) for group in groups]
        left = set(futures)
        while left:
            ended, left = wait(left, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in ended:
                future.result()
            with contextlib.suppress(queue.Empty):
                while True:
                    news.get_nowait()
                    done()
        return [future.result() for future in futures]
    except BrokenProcessPool:
        raise InputError(
            "A process of the experiment was stopped by the system, most likely for lack of memory; run it again with "
            "fewer --jobs: finished work is cached."
        ) from None
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        news.close()


_news: Any = None


def _start(news: Any) -> None:
    global _news
    end_with_parent(signal.SIGKILL)
    _news = news


def _run_in_worker(group: Group, cache_dir: Path | None) -> list[dict[str, Any]]:
    # One thread per process: there are as many processes as cores, and a process without threads can be forked.
    with one_thread():
        return run_group(group, cache_dir=cache_dir, done=lambda: _news.put(None))


def _run_scaling(experiment: Experiment, progress: Progress) -> list[dict[str, Any]]:
    """Condense parts of a synthetic table, smallest first, with every method, and without a cache."""
    scaling = experiment.scaling
    assert scaling is not None
    X, y = synthetic_rows(scaling.shape, seed=0)
    order = np.random.default_rng(1).permutation(len(X))
    cells = [
        (share, ratio, contender, seed)
        for share in sorted(scaling.shares)
        for ratio in experiment.ratios
        for contender in experiment.methods
        for seed in range(experiment.seeds)
    ]
    results = []
    for done, (share, ratio, contender, seed) in enumerate(cells):
        progress(done, len(cells))
        if scaling.vary == "columns":
            size = max(1, round(share * X.shape[1]))
            part = LabelledRows(np.ascontiguousarray(X[:, :size]), y)
        else:
            size = round(share * len(X))
            kept = np.sort(order[:size])
            part = LabelledRows(X[kept], y[kept])
        empty = LabelledRows(part.X[:0], part.codes[:0])
        made = condense_split(
            contender,
            EncodedSplit(part, empty, empty, len(scaling.shape.classes)),
            ratio,
            seed,
            time_limit=experiment.time_limit,
            memory_limit=experiment.memory_limit,
        )
        results.append(
            {
                "experiment": experiment.name,
                "table": scaling.like,
                "ratio": ratio,
                "method": contender.method,
                "variant": ", ".join(filter(None, [contender.variant, f"{scaling.vary}={size}"])),
                "seed": seed,
                "rows": made.size,
                "status": made.status,
                "reason": made.reason,
                "objective": made.objective,
                "condense_seconds": made.seconds,
            }
        )
    progress(len(cells), len(cells))
    return results


def _tidy(experiment: Experiment, rows: list[dict[str, Any]]) -> pd.DataFrame:
    absent = {"int64": 0, "str": "", "float64": math.nan}
    filled = [{name: row.get(name, absent[kind]) for name, kind in COLUMNS.items()} for row in rows]
    frame = pd.DataFrame(filled, columns=list(COLUMNS)).astype(COLUMNS)
    # In the order of the grid, however the processes came to an end; variants stay as they were made.
    orders = {
        "table": list(experiment.tables),
        "space": [*experiment.encodings, ORIGINAL],
        "method": list(dict.fromkeys(contender.method for contender in experiment.methods)),
        "model": list(experiment.models),
    }

    def position(column: pd.Series[Any]) -> pd.Series[Any]:
        if column.name not in orders:
            return column
        known = orders[str(column.name)]
        return column.map(lambda value: known.index(value) if value in known else len(known))

    by = ["table", "ratio", "space", "method", "model", "split", "seed", "model_seed"]
    return frame.sort_values(by, key=position, kind="stable", ignore_index=True)
