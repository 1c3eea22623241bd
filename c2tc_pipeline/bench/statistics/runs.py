"""Averages of scores: over models to runs, over runs to cells, and cells against the best, the paper and all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError

WHOLE = "whole"
"""The method that trains on all rows: a reference, never a contender."""
MEAN_OF_MODELS = "mean of models"
UNIT = ["table", "ratio", "model"]
CELL = [*UNIT, "space", "contender"]
RUN = ["split", "seed"]
DECIMALS = 12
"""Differences are rounded to this many decimals: what is smaller is rounding error of equal scores."""

_REQUIRED = [*UNIT, "space", "method", "variant", *RUN, "status"]
_PAPER_SPACES = {"hcfe_paper": "hcfe", "hcfe_minmax": "hcfe"}


def is_whole(contender: str) -> bool:
    """Return whether a contender is the whole table, under whatever variant."""
    return contender == WHOLE or contender.startswith(f"{WHOLE} (")


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

    ``means`` has the mean score over the models of each run with a trained model, by split and condensation seed,
    ``lost`` the runs with a model that was not trained, ``endings`` the statuses of those models.
    """

    means: dict[tuple[int, int], float] = field(default_factory=dict)
    lost: set[tuple[int, int]] = field(default_factory=set)
    endings: Counter[str] = field(default_factory=Counter)

    @property
    def ending(self) -> str:
        """The most frequent ending, the first by name among equals."""
        return min(self.endings, key=lambda name: (-self.endings[name], name))


def runs_by_cell(scores: pd.DataFrame, metric: str) -> dict[tuple[Any, ...], CellRuns]:
    """Return the runs of every cell, in the order of the scores."""
    named = named_contenders(scores, [metric])
    found: dict[tuple[Any, ...], CellRuns] = {}
    values: dict[tuple[Any, ...], dict[tuple[int, int], list[float]]] = {}
    columns = [named[name].tolist() for name in (*CELL, *RUN, "status", metric)]
    for *cell, split, seed, status, value in zip(*columns, strict=True):
        key, run = tuple(cell), (split, seed)
        runs = found.setdefault(key, CellRuns())
        if status == "ok" and not pd.isna(value):
            values.setdefault(key, {}).setdefault(run, []).append(value)
        else:
            runs.lost.add(run)
            # "ok" without a score is a failure.
            runs.endings["failed" if status == "ok" else str(status)] += 1
    for key, by_run in values.items():
        found[key].means.update({run: float(np.mean(several)) for run, several in by_run.items()})
    return found


def cell_scores(scores: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Average over runs: one row a cell.

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
    """Append one row a run whose model is "mean of models"; every model counts once, however many seeds it has.

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
            # A mean without its hardest model would flatter.
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
    """Compare ours with the paper's own method and with the whole table, one row a unit and space.

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


def standings(scores: pd.DataFrame, metric: str, *, ours: str = "ours", ours_space: str | None = None) -> pd.DataFrame:
    """Compare ours, of ``ours_space`` or of the rivals' own space, with the rivals of each unit and space.

    Columns: ``best`` (names joined where they are equal), ``best_mean``, ``ours_mean``, ``ours_std``, ``standing``,
    ``behind`` (the rivals that are ahead by more than one standard deviation, the furthest first) and ``unfinished``.
    A standing is "first" when ours is above every rival, "tied" when no rival is ahead by more than one standard
    deviation (the root of the mean of the two variances), "behind" otherwise, "missing" when ours has no finished run
    and "alone" when no rival has.
    """
    cells = cell_scores(scores, metric)
    cells = cells[~cells["contender"].map(is_whole)]
    own = {
        tuple(cell[name] for name in (*UNIT, "space")): cell
        for cell in cells[cells["contender"] == ours].to_dict("records")
    }
    rows: list[dict[str, Any]] = []
    for key, part in cells.groupby([*UNIT, "space"], sort=False):
        rivals = part[part["contender"] != ours]
        if rivals.empty:
            continue
        found = own.get(key if ours_space is None else (*key[:-1], ours_space))
        named = dict(zip((*UNIT, "space"), key, strict=True))
        rows.append({**named, "metric": metric, **_standing(ours, found, rivals)})
    return pd.DataFrame(rows)


def _standing(ours: str, found: Mapping[Any, Any] | None, rivals: pd.DataFrame) -> dict[str, Any]:
    mean, std = (found["mean"], found["std"]) if found else (np.nan, np.nan)
    done = rivals[rivals["status"] == "ok"]
    means = {str(name): value for name, value in zip(done["contender"], done["mean"], strict=True)}
    if not np.isnan(mean):
        means[ours] = mean
    best = max(means.values(), default=np.nan)
    ahead = np.round((done["mean"] - mean).to_numpy(), DECIMALS)
    spread = np.sqrt((done["std"].to_numpy() ** 2 + std**2) / 2)
    # Rounded like the lead: a lead of just one standard deviation is no more than one.
    beyond = done.assign(ahead=ahead)[ahead > np.round(spread, DECIMALS)]
    if np.isnan(mean):
        standing = "missing"
    elif done.empty:
        standing = "alone"
    elif (ahead < 0).all():
        standing = "first"
    else:
        standing = "behind" if len(beyond) else "tied"
    return {
        "best": ", ".join(name for name, value in means.items() if round(best - value, DECIMALS) == 0),
        "best_mean": best,
        "ours_mean": mean,
        "ours_std": std,
        "standing": standing,
        "behind": ", ".join(beyond.sort_values("ahead", ascending=False, kind="stable")["contender"]),
        "unfinished": ", ".join(rivals[rivals["status"] != "ok"]["contender"]),
    }


def relative_regret(
    scores: pd.DataFrame, metric: str, *, random: str = "random", reference_space: str | None = None
) -> pd.DataFrame:
    """Return (whole - score) / (whole - random) of every cell; 0 is as good as the whole table, 1 as bad as random.

    Whole and random are taken from ``reference_space``, or from each contender's own space. ``status`` is "ok", "no
    gap" where whole is no better than random, "no reference" where one of them is missing, or the ending of the runs.
    """
    cells = cell_scores(scores, metric)
    found = cells[~cells["contender"].map(is_whole)].rename(columns={"mean": "score"})
    found["of"] = found["space"] if reference_space is None else reference_space
    for name, contender, keys in (("whole", WHOLE, ["table", "model"]), ("random", random, UNIT)):
        reference = cells.loc[cells["contender"] == contender, [*keys, "space", "mean"]]
        reference = reference.rename(columns={"space": "of", "mean": name})
        found = found.merge(reference, on=[*keys, "of"], how="left")
    gap = found["whole"] - found["random"]
    found["regret"] = (found["whole"] - found["score"]) / gap.where(gap > 0)
    done = found["status"] == "ok"
    found.loc[done & (gap <= 0), "status"] = "no gap"
    found.loc[done & gap.isna(), "status"] = "no reference"
    return found[[*UNIT, "space", "contender", "score", "whole", "random", "regret", "status"]]


def summarise_regret(regrets: pd.DataFrame) -> pd.DataFrame:
    """Average the relative regret over units: one row a space and contender, the smallest mean first.

    ``units`` are averaged over; ``no_gap`` and ``unfinished`` units are left out.
    """
    rows = []
    for (space, contender), part in regrets.groupby(["space", "contender"], sort=False):
        counted = part.loc[part["status"] == "ok", "regret"]
        no_gap = int((part["status"] == "no gap").sum())
        rows.append(
            {
                "space": space,
                "contender": contender,
                "units": len(counted),
                "no_gap": no_gap,
                "unfinished": len(part) - len(counted) - no_gap,
                "mean": counted.mean(),
                "median": counted.median(),
            }
        )
    return pd.DataFrame(rows).sort_values("mean", kind="stable", ignore_index=True)
