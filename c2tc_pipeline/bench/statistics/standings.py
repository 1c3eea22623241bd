"""Cell by cell: who is best, and whether ours is first, tied within one standard deviation, or behind whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.bench.statistics.runs import UNIT, cell_scores, is_whole
from c2tc_pipeline.bench.statistics.significance import DECIMALS


def standings(scores: pd.DataFrame, metric: str, *, ours: str = "ours", ours_space: str | None = None) -> pd.DataFrame:
    """Say for every unit and space where ours stands among the contenders.

    Parameters
    ----------
    scores : DataFrame
        One row a trained model.
    metric : str
        Which score; the higher the better.
    ours : str
        The contender that is looked at.
    ours_space : str or None
        The column space that ours is taken from; None takes that of the rivals.

    Returns
    -------
    DataFrame
        One row a unit and space of the rivals: ``metric``, ``best`` (of all, names joined where they are equal), its
        ``best_mean``, ``ours_mean``, ``ours_std``; ``standing``, which is ``"first"`` when ours is above every rival,
        ``"tied"`` when no rival is ahead by more than one standard deviation, ``"behind"`` otherwise, ``"missing"``
        when ours has no finished run and ``"alone"`` when no rival has; ``behind``, the rivals that are ahead by more,
        the furthest first; ``unfinished``, the rivals without a finished run. One standard deviation is the root of
        the mean of the two variances.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "t", "ratio": 0.1, "model": "mlp", "space": "hcfe",
    ...     "method": ["ours", "ours", "random", "random"], "variant": "", "split": [0, 1] * 2, "seed": 0,
    ...     "model_seed": 0, "status": "ok", "accuracy": [0.78, 0.82, 0.80, 0.82]})
    >>> standings(scores, "accuracy")[["best", "standing", "behind"]].values.tolist()
    [['random', 'tied', '']]
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
    everyone = {**means, **({} if np.isnan(mean) else {ours: mean})}
    best = max(everyone.values(), default=np.nan)
    ahead = np.round((done["mean"] - mean).to_numpy(), DECIMALS)
    spread = np.sqrt((done["std"].to_numpy() ** 2 + std**2) / 2)
    # As many decimals as the lead has: a lead of just one standard deviation is no more than one.
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
        "best": ", ".join(name for name, value in everyone.items() if round(best - value, DECIMALS) == 0),
        "best_mean": best,
        "ours_mean": mean,
        "ours_std": std,
        "standing": standing,
        "behind": ", ".join(beyond.sort_values("ahead", ascending=False, kind="stable")["contender"]),
        "unfinished": ", ".join(rivals[rivals["status"] != "ok"]["contender"]),
    }
