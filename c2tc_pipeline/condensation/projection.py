"""A plane to look at: source and condensed rows projected on their two main directions."""

from __future__ import annotations

import numpy as np
import pandas as pd

from c2tc_pipeline.clustering.rows import RowSource

_SOURCE_ROWS = 2_000


def project(
    X: np.ndarray,
    edges: np.ndarray,
    condensed: np.ndarray,
    condensed_labels: np.ndarray,
    weight: np.ndarray,
    seed: int,
) -> pd.DataFrame:
    """Return a sample of source rows and all condensed rows in two dimensions.

    Parameters
    ----------
    X : ndarray
        Encoded source rows in the order of their classes.
    edges : ndarray of int
        Where each class begins, and the end.
    condensed : ndarray
        Encoded condensed rows.
    condensed_labels : ndarray
        The numbers of their classes.
    weight : ndarray
        Source rows behind each.
    seed : int
        Determines the sample.

    Returns
    -------
    DataFrame
        Columns ``x``, ``y``, ``label``, ``kind`` ("source" or "condensed") and ``weight``.
    """
    rng = np.random.default_rng([seed, 0xB])
    picked = np.sort(rng.choice(len(X), size=min(_SOURCE_ROWS, len(X)), replace=False))
    # Of a mapped file they are read: looking at them would map whole stretches of the file around each.
    sample = RowSource.of(X).take(picked).astype(np.float64)
    center = sample.mean(axis=0)
    directions = np.linalg.svd(sample - center, full_matrices=False)[2][:2]
    # The sign of a direction is arbitrary; the largest entry is made positive so that reruns agree.
    directions *= np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])[:, None]
    if len(directions) < 2:
        directions = np.vstack([directions, np.zeros((2 - len(directions), X.shape[1]))])
    places = (np.vstack([sample, condensed]) - center) @ directions.T
    kinds = np.repeat(["source", "condensed"], [len(sample), len(condensed)])
    return pd.DataFrame(
        {
            "x": places[:, 0],
            "y": places[:, 1],
            "label": np.concatenate([np.searchsorted(edges, picked, side="right") - 1, condensed_labels]),
            "kind": kinds,
            "weight": np.concatenate([np.ones(len(sample), dtype=np.int64), weight]),
        }
    )
