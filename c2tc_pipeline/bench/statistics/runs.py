"""Averages of scores: over models to runs, over runs to cells, and cells against the best, the paper and all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.row_worth import multiple_of

WHOLE = "whole"
"""The method that trains on all rows: a reference, never a contender."""
MEAN_OF_MODELS = "mean of models"
UNIT = ["table", "ratio", "model"]
CELL = [*UNIT, "space", "contender"]
RUN = ["split", "seed"]
DECIMALS = 12
"""Differences are rounded to this many decimals: what is smaller is rounding error of equal scores."""

_REQUIRED = [*UNIT, "space", "method", "variant", *RUN, "model_seed", "status"]
_PAPER_SPACES = {"hcfe_paper": "hcfe", "hcfe_minmax": "hcfe"}


def is_sample(contender: str) -> bool:
    """Return whether a contender is a random sample of another size than the condensed table, whatever its variant."""
    return multiple_of(contender.partition(" (")[0]) not in (None, 1)


def is_reference(contender: str) -> bool:
    """Return whether a contender is the whole table or a random sample of another size, whatever its variant."""
    return contender.partition(" (")[0] == WHOLE or is_sample(contender)


def named_contenders(scores: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Return the scores with a column ``contender``, such as "ours" or "ours (gamma=0.5)"; missing texts become empty.

    Raises InputError when a column is missing.
    """
    for name in [*_REQUIRED, *metrics]:
        if name not in scores.columns:
            raise InputError(f"The scores have no column {name!r}; give the frame that an experiment wrote.")
    # An empty string may come back as missing from a file.
    scores = scores.assign(**{name: scores[name].fillna("") for name in ("model", "space", "variant")})
    pairs = zip(scores["method"], scores["variant"], strict=True)
    names = [f"{method} ({variant})" if variant else method for method, variant in pairs]
    return scores.assign(contender=pd.Series(names, index=scores.index, dtype=object))


@dataclass
class CellRuns:
    """The runs of one cell.

    ``scores`` are those of each trained model by split, condensation seed and model seed, ``means`` their means over
    the models of each run, by split and condensation seed, ``lost`` the runs with a model that was not trained,
    ``endings`` the statuses of those models.
    """

    scores: dict[tuple[int, int, int], float] = field(default_factory=dict)
    means: dict[tuple[int, int], float] = field(default_factory=dict)
    lost: set[tuple[int, int]] = field(default_factory=set)
    endings: Counter[str] = field(default_factory=Counter)

    @property
    def ending(self) -> str:
        """The most frequent ending, the first by name among equals."""
        return min(self.endings, key=lambda name: (-self.endings[name], name))

    def less(self, other: CellRuns, *, every_model: bool = False) -> np.ndarray:
        """Return the differences to another cell over the runs that both have, or over their models."""
        own: Mapping[Any, float] = self.scores if every_model else self.means
        others: Mapping[Any, float] = other.scores if every_model else other.means
        paired = [own[run] - score for run, score in others.items() if run in own]
        return np.round(np.array(paired, dtype=np.float64), DECIMALS)


def runs_by_cell(scores: pd.DataFrame, metric: str) -> dict[tuple[Any, ...], CellRuns]:
    """Return the runs of every cell, in the order of the scores."""
    named = named_contenders(scores, [metric])
    found: dict[tuple[Any, ...], CellRuns] = {}
    values: dict[tuple[Any, ...], dict[tuple[int, int], list[float]]] = {}
    columns = [named[name].tolist() for name in (*CELL, *RUN, "model_seed", "status", metric)]
    for *cell, split, seed, model_seed, status, value in zip(*columns, strict=True):
        key, run = tuple(cell), (split, seed)
        runs = found.setdefault(key, CellRuns())
        if status == "ok" and not pd.isna(value):
            values.setdefault(key, {}).setdefault(run, []).append(value)
            runs.scores[*run, model_seed] = value
        else:
            runs.lost.add(run)
            # "ok" without a score is a failure.
            runs.endings["failed" if status == "ok" else str(status)] += 1
    for key, by_run in values.items():
        found[key].means.update({run: float(np.mean(several)) for run, several in by_run.items()})
    return found


def cell_scores(scores: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Average over runs: one row per cell.

    Columns: those of ``CELL``, ``mean`` and ``std`` over the runs (ddof 0), ``runs``, ``unfinished`` (runs with a model
    that was not trained) and ``status``: "ok" where any run finished, else the most frequent ending.
    """
    rows = []
    for cell, found in runs_by_cell(scores, metric).items():
        values = list(found.means.values())
        mean, std = (np.mean(values), np.std(values)) if values else (np.nan, np.nan)
        rows.append((*cell, mean, std, len(values), len(found.lost), "ok" if values else found.ending))
    return pd.DataFrame(rows, columns=[*CELL, "mean", "std", "runs", "unfinished", "status"])


def with_mean_of_models(scores: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Append one row per run whose model is "mean of models"; every model counts once, however many seeds it has.

    A run that some model did not finish has that model's status and no mean; one that some model never saw is left out.
    """
    keys = ["table", "ratio", "space", "method", "variant", *RUN]
    models = set(scores["model"])
    rows: list[dict[str, Any]] = []
    for key, run in scores.fillna({"variant": "", "space": ""}).groupby(keys, sort=False):
        if set(run["model"]) != models:
            continue
        ended = run.loc[run["status"] != "ok", "status"]
        row = dict(zip(keys, key, strict=True)) | {"model": MEAN_OF_MODELS, "model_seed": 0}
        row["status"] = "ok" if ended.empty else ended.iloc[0]
        for metric in metrics:
            # A mean without its hardest model would be too high.
            mean = run.groupby("model")[metric].mean().mean(skipna=False)
            row[metric] = float(mean) if ended.empty else np.nan
        rows.append(row)
    return pd.concat([scores, pd.DataFrame(rows)], ignore_index=True) if rows else scores


def paper_space(space: str) -> str:
    """Return what the paper calls a column space: its hybrid encoding has several variants here."""
    return _PAPER_SPACES.get(space, space)


def anchored(
    scores: pd.DataFrame, metric: str, paper: pd.DataFrame | None = None, *, ours: str = "ours"
) -> pd.DataFrame:
    """Compare ours with the paper's own method and with the whole table, one row per unit and space.

    Columns: ``mean`` and ``std`` of ours, ``paper``, ``whole`` and ``share``, which is ours divided by whole; both
    references are of the same column space, and NaN where there are none.
    """
    cells = cell_scores(scores, metric)
    keys = [name for name in CELL if name != "contender"]
    own = cells[(cells["contender"] == ours) & (cells["status"] == "ok")][[*keys, "mean", "std"]]
    keys.remove("ratio")
    whole = cells[cells["contender"] == WHOLE][[*keys, "mean"]].rename(columns={"mean": "whole"})
    found = own.merge(whole, on=keys, how="left").assign(metric=metric)
    found["share"] = found["mean"] / found["whole"]
    if paper is None:
        return found.assign(paper=np.nan)
    printed = paper[(paper["metric"] == metric) & (paper["method"] == ours) & (paper["variant"].fillna("") == "")]
    printed = printed.rename(columns={"space": "paper_space", "mean": "paper"})
    keys = ["table", "ratio", "model", "paper_space"]
    found = found.assign(paper_space=found["space"].map(paper_space))
    found = found.merge(printed[[*keys, "paper"]], on=keys, how="left", validate="m:1")
    return found.drop(columns="paper_space")


ERRORS = 2
"""A rival is ahead when the mean paired difference is more than that many standard errors."""


def standings(scores: pd.DataFrame, metric: str, *, ours: str = "ours") -> pd.DataFrame:
    """Compare ours with the rivals of each unit and space.

    Columns: ``best`` (names joined where they are equal), ``best_mean``, ``ours_mean``, ``ours_std``, ``difference``
    (ours less the best rival, paired over the runs) and its standard ``error`` (NaN for a single pair), ``standing``,
    ``behind`` (the rivals that are ahead, the furthest first) and ``unfinished``. A standing is "first" when ours is
    above every rival, "tied" when no rival is ahead by more than :data:`ERRORS` standard errors of the paired
    difference, "behind" otherwise, "missing" when ours has no finished run and "alone" when no rival has.
    """
    by_cell = {key: runs for key, runs in runs_by_cell(scores, metric).items() if not is_reference(key[-1])}
    rows: list[dict[str, Any]] = []
    for key in dict.fromkeys(key[:-1] for key in by_cell):
        rivals = {cell[-1]: runs for cell, runs in by_cell.items() if cell[:-1] == key and cell[-1] != ours}
        own = by_cell.get((*key, ours), CellRuns())
        if rivals:
            named = dict(zip((*UNIT, "space"), key, strict=True))
            rows.append({**named, "metric": metric, **_standing(ours, own, rivals)})
    return pd.DataFrame(rows)


def _standing(ours: str, own: CellRuns, rivals: Mapping[str, CellRuns]) -> dict[str, Any]:
    done = {name: runs for name, runs in rivals.items() if runs.means}
    means = {name: float(np.mean(list(runs.means.values()))) for name, runs in done.items()}
    mean = float(np.mean(list(own.means.values()))) if own.means else np.nan
    differences = {name: mean_and_error(own.less(runs)) for name, runs in done.items()}
    ahead = {
        name: difference
        for name, (difference, error) in differences.items()
        if difference < 0 and not -difference <= ERRORS * error
    }
    if not own.means:
        standing = "missing"
    elif not done:
        standing = "alone"
    elif all(difference > 0 for difference, _ in differences.values()):
        standing = "first"
    else:
        standing = "behind" if ahead else "tied"
    difference, error = differences[max(means, key=means.__getitem__)] if means else (np.nan, np.nan)
    contending = {**means, **({ours: mean} if own.means else {})}
    best = max(contending.values(), default=np.nan)
    return {
        "best": ", ".join(name for name, value in contending.items() if round(best - value, DECIMALS) == 0),
        "best_mean": best,
        "ours_mean": mean,
        "ours_std": float(np.std(list(own.means.values()))) if own.means else np.nan,
        "difference": difference,
        "error": error,
        "standing": standing,
        "behind": ", ".join(sorted(ahead, key=ahead.__getitem__)),
        "unfinished": ", ".join(name for name, runs in rivals.items() if not runs.means),
    }


def mean_and_error(differences: np.ndarray) -> tuple[float, float]:
    """Return the mean and its standard error; NaN where there are too few differences."""
    if not len(differences):
        return np.nan, np.nan
    error = differences.std(ddof=1) / np.sqrt(len(differences)) if len(differences) > 1 else np.nan
    return round(float(differences.mean()), DECIMALS), float(error)
