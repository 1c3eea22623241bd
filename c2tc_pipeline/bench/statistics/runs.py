"""From one row a trained model to one row a run, and from there to one row a cell.

What belongs here: the averaging that everything else in this package starts with. Scores of models that were trained
on the same condensed rows are averaged before anything is counted as evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError

WHOLE = "whole"
"""The method that trains on all rows: a yardstick, never a contender."""
UNIT = ["table", "ratio", "model"]
CELL = [*UNIT, "space", "contender"]
RUN = ["split", "seed"]
NEEDED = [*UNIT, "space", "method", "variant", *RUN, "status"]


def contender_name(method: str, variant: str) -> str:
    """Return what a method is called in results.

    Examples
    --------
    >>> contender_name("ours", ""), contender_name("ours", "gamma=0.5")
    ('ours', 'ours (gamma=0.5)')
    """
    return f"{method} ({variant})" if variant else method


def is_whole(contender: str) -> bool:
    """Say whether a contender is the whole table, under whatever variant.

    Examples
    --------
    >>> is_whole("whole"), is_whole("whole (10:1)"), is_whole("ours (10:1)")
    (True, True, False)
    """
    return contender == WHOLE or contender.startswith(f"{WHOLE} (")


def named_contenders(scores: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the scores with a column ``contender``, after checking that the frame is one.

    Parameters
    ----------
    scores : DataFrame
        One row a trained model.
    metrics : sequence of str
        The columns with scores that are going to be read.

    Raises
    ------
    InputError
        When a column is missing.

    Examples
    --------
    >>> named_contenders(pd.DataFrame({"table": ["t"]}), [])
    Traceback (most recent call last):
    ...
    c2tc_pipeline.common.errors.InputError: The scores have no column 'ratio'; give the frame that an experiment wrote.
    """
    for name in [*NEEDED, *metrics]:
        if name not in scores.columns:
            raise InputError(f"The scores have no column {name!r}; give the frame that an experiment wrote.")
    # An empty string may come back as missing from a file.
    scores = scores.assign(**{name: scores[name].fillna("") for name in ("model", "space", "variant")})
    names = [contender_name(*pair) for pair in zip(scores["method"], scores["variant"], strict=True)]
    return scores.assign(contender=pd.Series(names, index=scores.index, dtype=object))


def run_scores(scores: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Average over model seeds: one row a table, ratio, model, space, contender, split and condensation seed.

    Parameters
    ----------
    scores : DataFrame
        One row a trained model.
    metric : str
        Which score.

    Returns
    -------
    DataFrame
        The columns named above and ``score``; only runs of which a model was trained.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "t", "ratio": 0.1, "model": "mlp", "space": "hcfe", "method": "ours",
    ...     "variant": "", "split": 0, "seed": [0, 0, 1], "model_seed": [0, 1, 0], "status": "ok",
    ...     "accuracy": [0.5, 0.7, 0.9]})
    >>> run_scores(scores, "accuracy")[["seed", "score"]].round(3).values.tolist()
    [[0.0, 0.6], [1.0, 0.9]]
    """
    rows = [
        (*cell, *run, score)
        for cell, found in runs_by_cell(scores, metric).items()
        for run, score in found.means.items()
    ]
    return pd.DataFrame(rows, columns=[*CELL, *RUN, "score"])


def cell_scores(scores: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Average over runs: one row a table, ratio, model, space and contender.

    Parameters
    ----------
    scores : DataFrame
        One row a trained model.
    metric : str
        Which score.

    Returns
    -------
    DataFrame
        The columns named above, ``mean`` and ``std`` over the runs (divided by their number), ``runs``,
        ``unfinished`` (runs of which some model was not trained) and ``status``: ``"ok"`` where any run finished,
        else what most runs ended in.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "t", "ratio": 0.1, "model": "mlp", "space": "hcfe", "method": ["ours", "mtt"],
    ...     "variant": "", "split": 0, "seed": 0, "model_seed": 0, "status": ["ok", "OOT"],
    ...     "accuracy": [0.5, float("nan")]})
    >>> cell_scores(scores, "accuracy")[["contender", "mean", "runs", "unfinished", "status"]].values.tolist()
    [['ours', 0.5, 1, 0, 'ok'], ['mtt', nan, 0, 1, 'OOT']]
    """
    rows = []
    for cell, found in runs_by_cell(scores, metric).items():
        values = list(found.means.values())
        mean, std = (np.mean(values), np.std(values)) if values else (np.nan, np.nan)
        rows.append((*cell, mean, std, len(values), len(found.lost), "ok" if values else found.ending))
    return pd.DataFrame(rows, columns=[*CELL, "mean", "std", "runs", "unfinished", "status"])


@dataclass
class CellRuns:
    """The runs of one cell.

    Parameters
    ----------
    means : dict
        The mean score over the models of each run of which one was trained, by split and condensation seed.
    lost : set
        Runs of which some model was not trained.
    endings : Counter
        What the models that were not trained ended in.
    """

    means: dict[tuple[int, int], float] = field(default_factory=dict)
    lost: set[tuple[int, int]] = field(default_factory=set)
    endings: Counter[str] = field(default_factory=Counter)

    @property
    def ending(self) -> str:
        """The most frequent ending, by name among equals."""
        return min(self.endings, key=lambda name: (-self.endings[name], name))


def runs_by_cell(scores: pd.DataFrame, metric: str) -> dict[tuple[Any, ...], CellRuns]:
    """Return the runs of every table, ratio, model, space and contender, as they appear.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "t", "ratio": 0.1, "model": "mlp", "space": "hcfe", "method": "ours",
    ...     "variant": "", "split": 7, "seed": 3, "model_seed": [0, 1], "status": "ok", "accuracy": [0.25, 0.75]})
    >>> runs_by_cell(scores, "accuracy")["t", 0.1, "mlp", "hcfe", "ours"].means
    {(7, 3): 0.5}
    """
    named = named_contenders(scores, [metric])
    found: dict[tuple[Any, ...], CellRuns] = {}
    values: dict[tuple[Any, ...], dict[tuple[int, int], list[float]]] = {}
    # Plain loops: frames of scores are small, and grouping them costs more than reading them.
    columns = [named[name].tolist() for name in (*CELL, *RUN, "status", metric)]
    for *cell, split, seed, status, value in zip(*columns, strict=True):
        key, run = tuple(cell), (split, seed)
        runs = found.setdefault(key, CellRuns())
        if status == "ok" and not pd.isna(value):
            values.setdefault(key, {}).setdefault(run, []).append(value)
        else:
            runs.lost.add(run)
            # Without a score "ok" is no ending.
            runs.endings["failed" if status == "ok" else str(status)] += 1
    for key, by_run in values.items():
        found[key].means.update({run: float(np.mean(several)) for run, several in by_run.items()})
    return found
