"""The scores of a condensed table on disk: what was scored, apart from how long it took."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from c2tc_pipeline.storage.manifest import TIMINGS_NAME
from c2tc_pipeline.storage.parquet import read_parquet, write_parquet

SCORES_NAME = "scores.parquet"
# What differs between two runs of the same trials; kept in a file of its own, so that the others are equal.
TIMINGS = ["fit_seconds", "cache_hit"]


def write_scores(scores: pd.DataFrame, directory: Path) -> None:
    """Write what :func:`~c2tc_pipeline.evaluation.scores.evaluate_condensed` returned into an existing directory.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> scores = pd.DataFrame({"model": ["mlp"], "accuracy": [0.5], "fit_seconds": [1.5], "cache_hit": [False]})
    >>> write_scores(scores, folder)
    >>> sorted(path.name for path in folder.iterdir()), read_scores(folder).equals(scores)
    (['scores.parquet', 'timings.json'], True)
    """
    write_parquet(scores.drop(columns=TIMINGS), directory / SCORES_NAME)
    text = json.dumps(scores[TIMINGS].to_dict(orient="list"), indent=1)
    (directory / TIMINGS_NAME).write_text(text + "\n", encoding="utf-8")


def read_scores(directory: Path) -> pd.DataFrame:
    """Read what :func:`write_scores` wrote."""
    scores = read_parquet(directory / SCORES_NAME)
    timings = json.loads((directory / TIMINGS_NAME).read_text(encoding="utf-8"))
    return scores.assign(**timings)
