"""Ours beside two fixed points: what the paper reports for the same cell, and what the whole table gives."""

from __future__ import annotations

import pandas as pd

from c2tc_pipeline.bench.statistics.runs import CELL, WHOLE, cell_scores

_VARIETIES = {"hcfe_paper": "hcfe", "hcfe_minmax": "hcfe"}


def paper_space(space: str) -> str:
    """Return what the paper calls a column space: its hybrid encoding is one, of which there are several here.

    Examples
    --------
    >>> paper_space("hcfe_minmax"), paper_space("label")
    ('hcfe', 'label')
    """
    return _VARIETIES.get(space, space)


def anchored(
    scores: pd.DataFrame, metric: str, paper: pd.DataFrame | None = None, *, ours: str = "ours"
) -> pd.DataFrame:
    """Set ours against the paper's own method and against the whole table, cell by cell.

    Parameters
    ----------
    scores : DataFrame
        One row a trained model.
    metric : str
        Which score; the higher the better.
    paper : DataFrame, optional
        What :func:`~c2tc_pipeline.bench.experiments.paper_numbers.paper_numbers` returned.
    ours : str
        The contender that is looked at.

    Returns
    -------
    DataFrame
        One row a table, ratio, model and space: ``metric``, ``mean`` and ``std`` of ours, ``paper``, ``whole`` (of the
        same space) and ``share``, which is ours divided by the whole table's. NaN where there is nothing to compare
        with: a number of the paper's stands beside ours in the same column space only. ``"hcfe"``, ``"hcfe_paper"`` and
        ``"hcfe_minmax"`` all are the paper's hybrid encoding.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "t", "ratio": [0.1, 1.0], "model": "mlp", "space": "hcfe",
    ...     "method": ["ours", "whole"], "variant": "", "split": 0, "seed": 0, "model_seed": 0, "status": "ok",
    ...     "accuracy": [0.72, 0.8]})
    >>> anchored(scores, "accuracy")[["mean", "whole", "share"]].round(3).values.tolist()
    [[0.72, 0.8, 0.9]]
    """
    cells = cell_scores(scores, metric)
    names = [name for name in CELL if name != "contender"]
    own = cells[(cells["contender"] == ours) & (cells["status"] == "ok")][[*names, "mean", "std"]]
    keys = [name for name in names if name != "ratio"]
    whole = cells[cells["contender"] == WHOLE][[*keys, "mean"]].rename(columns={"mean": "whole"})
    found = own.merge(whole, on=keys, how="left").assign(metric=metric)
    found["share"] = found["mean"] / found["whole"]
    found["paper_space"] = found["space"].map(paper_space)
    keys = ["table", "ratio", "model", "paper_space"]
    return found.merge(_printed(paper, metric, ours), on=keys, how="left", validate="m:1").drop(columns="paper_space")


def _printed(paper: pd.DataFrame | None, metric: str, ours: str) -> pd.DataFrame:
    if paper is None:
        paper = pd.DataFrame(columns=["table", "ratio", "model", "space", "metric", "method", "variant", "mean"])
        paper = paper.astype({"ratio": float, "mean": float})
    own = paper[(paper["metric"] == metric) & (paper["method"] == ours) & (paper["variant"].fillna("") == "")]
    return own[["table", "ratio", "model", "space", "mean"]].rename(columns={"space": "paper_space", "mean": "paper"})
