"""How much of what condensing can lose a method does lose: relative regret.

What belongs here: (whole - score) / (whole - random) per unit, and its summary. 0 is as good as the whole table, 1 as
bad as random rows of the same number, below 0 better than the whole table.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from c2tc_pipeline.bench.statistics.runs import UNIT, WHOLE, cell_scores, is_whole


def relative_regret(
    scores: pd.DataFrame, metric: str, *, random: str = "random", reference_space: str | None = None
) -> pd.DataFrame:
    """Return the relative regret of every contender in every unit.

    Parameters
    ----------
    scores : DataFrame
        One row a trained model; the rows of method ``"whole"`` hold for every ratio of their table.
    metric : str
        Which score.
    random : str
        The contender that a regret of 1 stands for.
    reference_space : str or None
        The space that whole and random are taken from; None takes each contender's own.

    Returns
    -------
    DataFrame
        ``table``, ``ratio``, ``model``, ``space``, ``contender``, ``score``, ``whole``, ``random``, ``regret`` and
        ``status``: ``"ok"``; ``"no gap"`` where whole is no better than random and the regret is NaN; ``"no
        reference"`` where whole or random was not run; else what the contender's runs ended in.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "t", "ratio": [0.1, 0.1, 1.0], "model": "mlp", "space": "hcfe",
    ...     "method": ["ours", "random", "whole"], "variant": "", "split": 0, "seed": 0, "model_seed": 0,
    ...     "status": "ok", "accuracy": [0.85, 0.8, 0.9]})
    >>> relative_regret(scores, "accuracy")[["contender", "regret"]].round(3).values.tolist()
    [['ours', 0.5], ['random', 1.0]]
    """
    cells = cell_scores(scores, metric)
    whole = cells[cells["contender"] == WHOLE].set_index(["table", "model", "space"])["mean"]
    baseline = cells[cells["contender"] == random].set_index([*UNIT, "space"])["mean"]
    found = cells[~cells["contender"].map(is_whole)].rename(columns={"mean": "score"}).reset_index(drop=True)
    spaces = found["space"] if reference_space is None else pd.Series(reference_space, found.index)
    found["whole"] = _looked_up(whole, found["table"], found["model"], spaces)
    found["random"] = _looked_up(baseline, found["table"], found["ratio"], found["model"], spaces)
    gap = found["whole"] - found["random"]
    found["regret"] = (found["whole"] - found["score"]) / gap.where(gap > 0)
    done = found["status"] == "ok"
    found.loc[done & (gap <= 0), "status"] = "no gap"
    found.loc[done & gap.isna(), "status"] = "no reference"
    return found[[*UNIT, "space", "contender", "score", "whole", "random", "regret", "status"]]


def _looked_up(values: pd.Series, *keys: pd.Series) -> np.ndarray:
    known = values.to_dict()
    return np.array([known.get(key, np.nan) for key in zip(*keys, strict=True)], dtype=np.float64)


def summarise_regret(regrets: pd.DataFrame) -> pd.DataFrame:
    """Average the relative regret over units.

    Parameters
    ----------
    regrets : DataFrame
        What :func:`relative_regret` returned.

    Returns
    -------
    DataFrame
        One row a space and contender: ``units`` averaged over, ``no_gap`` (units left out because whole is no better
        than random), ``unfinished`` (units left out because no run finished or a reference is missing), ``mean`` and
        ``median``; the smallest mean first.

    Examples
    --------
    >>> regrets = pd.DataFrame({"space": "hcfe", "contender": "ours", "regret": [0.2, 0.4, float("nan")],
    ...                         "status": ["ok", "ok", "no gap"]})
    >>> summarise_regret(regrets).round(3).values.tolist()
    [['hcfe', 'ours', 2, 1, 0, 0.3, 0.3]]
    """
    rows = []
    for (space, contender), part in regrets.groupby(["space", "contender"], sort=False):
        counted = part["status"] == "ok"
        rows.append(
            {
                "space": space,
                "contender": contender,
                "units": int(counted.sum()),
                "no_gap": int((part["status"] == "no gap").sum()),
                "unfinished": int((~part["status"].isin(["ok", "no gap"])).sum()),
                "mean": part.loc[counted, "regret"].mean(),
                "median": part.loc[counted, "regret"].median(),
            }
        )
    return pd.DataFrame(rows).sort_values("mean", kind="stable", ignore_index=True)
